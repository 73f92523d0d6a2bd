-- What each culprit takes in each trace: the runs of a benchmark, one by one.
--
-- Kind machine, culprit [busy] is all busy time. Traces that could tell only (those whose clock is broken cannot); a trace in which a culprit cost nothing has no row of it.
--
-- Columns:
-- trace_id: The trace.
-- path: Its first file.
-- captured_unix_ns: When it began.
-- kind: machine, process, driver, product or category.
-- culprit: Its name.
-- share_percent: CPU time as share of the observed time of the processors.
WITH able AS (
    SELECT b.trace_id, b.kind, max(t.path) AS path, max(t.captured_unix_ns) AS captured_unix_ns, max(m.capacity_ns) AS capacity_ns
    FROM bill AS b
    JOIN machine AS m ON m.trace_id = b.trace_id AND m.duration_ns < 8640000000000000
    JOIN recording AS t ON t.trace_id = b.trace_id AND (t.clock_broken IS NULL OR NOT t.clock_broken)
    WHERE b.source = 'sample' OR (b.source = 'cswitch' AND b.kind <> 'driver')
    GROUP BY b.trace_id, b.kind
    HAVING max(m.capacity_ns) > 0
)
SELECT a.trace_id, max(a.path) AS path, max(a.captured_unix_ns) AS captured_unix_ns, b.kind, coalesce(p.name, b.culprit) AS culprit,
    100e0 * sum(1e0 * b.total_cpu_ns) / max(a.capacity_ns) AS share_percent
FROM bill AS b
JOIN able AS a ON a.trace_id = b.trace_id AND a.kind = b.kind
LEFT JOIN process AS p ON p.trace_id = b.trace_id AND p.upid = b.upid
WHERE b.part = 'culprit' AND NOT b.is_idle AND NOT b.is_unattributed
GROUP BY a.trace_id, b.kind, coalesce(p.name, b.culprit)
UNION ALL
SELECT m.trace_id, t.path, t.captured_unix_ns, 'machine' AS kind, '[busy]' AS culprit, 100e0 * m.busy_ns / m.capacity_ns AS share_percent
FROM machine AS m
JOIN recording AS t ON t.trace_id = m.trace_id AND (t.clock_broken IS NULL OR NOT t.clock_broken)
WHERE m.busy_ns IS NOT NULL AND m.duration_ns < 8640000000000000 AND m.capacity_ns > 0
