-- What each culprit takes of the time of all machines, day by day.
--
-- Kind machine, culprit [busy] is all busy time. Traces that could tell only (those whose clock is broken cannot); a day on which a culprit cost nothing has no row of it.
--
-- Columns:
-- captured_day: Day, UTC.
-- kind: machine, process, driver, product or category.
-- culprit: Its name.
-- share_percent: CPU time as share of the observed time of the processors of that day.
-- traces: Traces of that day that could tell.
-- machines: Machines of that day that could tell.
WITH able AS (
    SELECT b.trace_id, b.machine_id, b.kind, max(t.captured_day) AS captured_day, max(m.capacity_ns) AS capacity_ns
    FROM bill AS b
    JOIN machine AS m ON m.trace_id = b.trace_id AND m.duration_ns < 8640000000000000
    JOIN recording AS t ON t.trace_id = b.trace_id AND (t.clock_broken IS NULL OR NOT t.clock_broken)
    WHERE b.source = 'sample' OR (b.source = 'cswitch' AND b.kind <> 'driver')
    GROUP BY b.trace_id, b.machine_id, b.kind
),
of_day AS (
    SELECT captured_day, kind, sum(1e0 * capacity_ns) AS capacity_ns, count(*) AS traces, count(DISTINCT machine_id) AS machines
    FROM able
    GROUP BY captured_day, kind
    HAVING sum(1e0 * capacity_ns) > 0
),
cost AS (
    SELECT a.captured_day, b.kind, coalesce(p.name, b.culprit) AS culprit, sum(1e0 * b.total_cpu_ns) AS cpu_ns
    FROM bill AS b
    JOIN able AS a ON a.trace_id = b.trace_id AND a.kind = b.kind
    LEFT JOIN process AS p ON p.trace_id = b.trace_id AND p.upid = b.upid
    WHERE b.part = 'culprit' AND NOT b.is_idle AND NOT b.is_unattributed
    GROUP BY a.captured_day, b.kind, coalesce(p.name, b.culprit)
),
busy AS (
    SELECT t.captured_day, sum(1e0 * m.capacity_ns) AS capacity_ns, sum(1e0 * m.busy_ns) AS busy_ns, count(*) AS traces,
        count(DISTINCT m.machine_id) AS machines
    FROM machine AS m
    JOIN recording AS t ON t.trace_id = m.trace_id AND (t.clock_broken IS NULL OR NOT t.clock_broken)
    WHERE m.busy_ns IS NOT NULL AND m.duration_ns < 8640000000000000
    GROUP BY t.captured_day
    HAVING sum(1e0 * m.capacity_ns) > 0
)
SELECT c.captured_day, c.kind, c.culprit, 100e0 * c.cpu_ns / d.capacity_ns AS share_percent, d.traces, d.machines
FROM cost AS c
JOIN of_day AS d ON d.captured_day = c.captured_day AND d.kind = c.kind
UNION ALL
SELECT captured_day, 'machine' AS kind, '[busy]' AS culprit, 100e0 * busy_ns / capacity_ns AS share_percent, traces, machines
FROM busy
