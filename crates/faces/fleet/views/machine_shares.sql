-- What each culprit takes of each machine's time, with what makes machines alike.
--
-- Kind machine, culprit [busy] is all busy time. Traces that could tell only (those whose clock is broken cannot).
--
-- Columns:
-- machine_id: The machine.
-- computer: Its name, where recorded.
-- model: Manufacturer and model, where recorded.
-- os_build: Windows build, of the latest trace.
-- kind: machine, process, driver, product or category.
-- culprit: Its name.
-- share_percent: CPU time as share of the observed time of the machine's processors.
-- traces: Traces of the machine that could tell.
WITH fact AS (
    SELECT machine_id, max(computer) AS computer, max(model) AS model, max(os_build) AS os_build
    FROM recording
    GROUP BY machine_id
),
able AS (
    SELECT b.trace_id, b.machine_id, b.kind, max(m.capacity_ns) AS capacity_ns
    FROM bill AS b
    JOIN machine AS m ON m.trace_id = b.trace_id AND m.duration_ns < 8640000000000000
    JOIN recording AS t ON t.trace_id = b.trace_id AND (t.clock_broken IS NULL OR NOT t.clock_broken)
    WHERE b.source = 'sample' OR (b.source = 'cswitch' AND b.kind <> 'driver')
    GROUP BY b.trace_id, b.machine_id, b.kind
),
of_machine AS (
    SELECT machine_id, kind, sum(1e0 * capacity_ns) AS capacity_ns, count(*) AS traces
    FROM able
    GROUP BY machine_id, kind
    HAVING sum(1e0 * capacity_ns) > 0
),
cost AS (
    SELECT b.machine_id, b.kind, coalesce(p.name, b.culprit) AS culprit, sum(1e0 * b.total_cpu_ns) AS cpu_ns
    FROM bill AS b
    JOIN able AS a ON a.trace_id = b.trace_id AND a.kind = b.kind
    LEFT JOIN process AS p ON p.trace_id = b.trace_id AND p.upid = b.upid
    WHERE b.part = 'culprit' AND NOT b.is_idle AND NOT b.is_unattributed
    GROUP BY b.machine_id, b.kind, coalesce(p.name, b.culprit)
),
busy AS (
    SELECT m.machine_id, sum(1e0 * m.capacity_ns) AS capacity_ns, sum(1e0 * m.busy_ns) AS busy_ns, count(*) AS traces
    FROM machine AS m
    JOIN recording AS t ON t.trace_id = m.trace_id AND (t.clock_broken IS NULL OR NOT t.clock_broken)
    WHERE m.busy_ns IS NOT NULL AND m.duration_ns < 8640000000000000
    GROUP BY m.machine_id
    HAVING sum(1e0 * m.capacity_ns) > 0
)
SELECT c.machine_id, f.computer, f.model, f.os_build, c.kind, c.culprit, 100e0 * c.cpu_ns / m.capacity_ns AS share_percent, m.traces
FROM cost AS c
JOIN of_machine AS m ON m.machine_id = c.machine_id AND m.kind = c.kind
JOIN fact AS f ON f.machine_id = c.machine_id
UNION ALL
SELECT b.machine_id, f.computer, f.model, f.os_build, 'machine' AS kind, '[busy]' AS culprit,
    100e0 * b.busy_ns / b.capacity_ns AS share_percent, b.traces
FROM busy AS b
JOIN fact AS f ON f.machine_id = b.machine_id
