-- The same machine before and after a file got another version: what it cost as share of the machine's time.
--
-- Drivers by `bill` of kind driver, programs by kind process; traces that could tell, and in which it cost something. A machine that went back to a version it had before
-- is compared in the order in which the versions came first.
--
-- Columns:
-- kind: driver or process.
-- culprit: The file, in lower case.
-- machine_id: The machine.
-- version_before: The version before.
-- version_after: The version that came next.
-- share_before: Median over the traces with the version before of its CPU time as share of the machine's time, 0 to 1; of an even number the
-- lower of the two in the middle.
-- upper_before: The upper of the two.
-- share_after: As share_before, with the next version.
-- upper_after: As upper_before, with the next version.
-- traces_before: Traces with the version before.
-- traces_after: Traces with the next one.
-- first_after_unix_ns: Start of the first trace with the next one.
WITH able AS (
    SELECT b.trace_id, b.machine_id, b.kind, max(m.capacity_ns) AS capacity_ns, max(t.captured_unix_ns) AS captured_unix_ns
    FROM bill AS b
    JOIN machine AS m ON m.trace_id = b.trace_id AND m.duration_ns < 8640000000000000
    JOIN recording AS t ON t.trace_id = b.trace_id AND (t.clock_broken IS NULL OR NOT t.clock_broken)
    WHERE (b.kind = 'driver' AND b.source = 'sample') OR (b.kind = 'process' AND b.source <> 'none')
    GROUP BY b.trace_id, b.machine_id, b.kind
    HAVING max(m.capacity_ns) > 0
),
version AS (
    SELECT trace_id, CASE WHEN kind = 'kernel' THEN 'driver' ELSE 'process' END AS kind, lower(name) AS culprit,
        max(file_version) AS file_version
    FROM module
    WHERE file_version IS NOT NULL
    GROUP BY trace_id, CASE WHEN kind = 'kernel' THEN 'driver' ELSE 'process' END, lower(name)
    HAVING count(DISTINCT file_version) = 1
),
cost AS (
    SELECT b.trace_id, b.kind, lower(coalesce(p.name, b.culprit)) AS culprit, sum(1e0 * b.total_cpu_ns) AS cpu_ns
    FROM bill AS b
    LEFT JOIN process AS p ON p.trace_id = b.trace_id AND p.upid = b.upid
    WHERE b.part = 'culprit' AND NOT b.is_idle AND NOT b.is_unattributed
    GROUP BY b.trace_id, b.kind, lower(coalesce(p.name, b.culprit))
),
sample AS (
    SELECT a.machine_id, v.kind, v.culprit, v.file_version, a.captured_unix_ns, 1e0 * c.cpu_ns / a.capacity_ns AS share
    FROM version AS v
    JOIN able AS a ON a.trace_id = v.trace_id AND a.kind = v.kind
    JOIN cost AS c ON c.trace_id = v.trace_id AND c.kind = v.kind AND c.culprit = v.culprit
),
place AS (
    SELECT machine_id, kind, culprit, file_version, captured_unix_ns, share,
        row_number() OVER (PARTITION BY machine_id, kind, culprit, file_version ORDER BY share) AS place,
        count(*) OVER (PARTITION BY machine_id, kind, culprit, file_version) AS places
    FROM sample
),
had AS (
    SELECT machine_id, kind, culprit, file_version, count(*) AS traces, min(captured_unix_ns) AS first_unix_ns,
        min(CASE WHEN 2 * place >= places THEN share END) AS share, min(CASE WHEN 2 * place > places THEN share END) AS upper
    FROM place
    GROUP BY machine_id, kind, culprit, file_version
),
following AS (
    SELECT kind, culprit, machine_id, file_version AS version_after, share AS share_after, upper AS upper_after, traces AS traces_after,
        first_unix_ns AS first_after_unix_ns,
        lag(file_version) OVER (PARTITION BY machine_id, kind, culprit ORDER BY first_unix_ns, file_version) AS version_before,
        lag(share) OVER (PARTITION BY machine_id, kind, culprit ORDER BY first_unix_ns, file_version) AS share_before,
        lag(upper) OVER (PARTITION BY machine_id, kind, culprit ORDER BY first_unix_ns, file_version) AS upper_before,
        lag(traces) OVER (PARTITION BY machine_id, kind, culprit ORDER BY first_unix_ns, file_version) AS traces_before
    FROM had
)
SELECT kind, culprit, machine_id, version_before, version_after, share_before, upper_before, share_after, upper_after, traces_before,
    traces_after, first_after_unix_ns
FROM following
WHERE version_before IS NOT NULL
ORDER BY kind, culprit, machine_id, first_after_unix_ns
