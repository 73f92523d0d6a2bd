-- Who costs most: processes, drivers, products and categories over all machines.
--
-- A share is one of the observed time of the processors of all traces that could tell: with CPU samples, for processes and products also with
-- context switches, and a clock that is not broken. Idle time and what is nobody's are no culprits. Percentiles are over the machines that have the culprit.
--
-- Columns:
-- kind: process, driver, product or category.
-- culprit: Its name.
-- vendor: Its vendor, as this program knows it, else as the traces say.
-- category: What it is for.
-- share_percent: CPU time as share of the time of all machines that could tell.
-- cpu_ns: CPU time.
-- machines: Machines where it cost something.
-- machines_able: Machines that could tell.
-- traces: Traces where it cost something.
-- p50_percent: Median over its machines of its share of their time.
-- p95_percent: The same for the machine that only one in twenty exceeds.
-- imposed_wait_ns: Waiting that it imposed on others, where recorded.
-- wh_per_day: Energy above idle in watt-hours for a day of one of its machines, if all of the day is as the time that was observed.
WITH able AS (
    SELECT b.trace_id, b.kind, max(b.machine_id) AS machine_id
    FROM bill AS b
    JOIN recording AS t ON t.trace_id = b.trace_id AND (t.clock_broken IS NULL OR NOT t.clock_broken)
    WHERE b.source = 'sample' OR (b.source = 'cswitch' AND b.kind <> 'driver')
    GROUP BY b.trace_id, b.kind
),
of_machine AS (
    SELECT a.machine_id, a.kind, sum(1e0 * m.capacity_ns) AS capacity_ns,
        sum(coalesce(1e0 * m.capacity_ns / nullif(m.cpus, 0), 1e0 * m.duration_ns)) AS observed_ns
    FROM able AS a
    JOIN machine AS m ON m.trace_id = a.trace_id AND m.duration_ns < 8640000000000000
    GROUP BY a.machine_id, a.kind
),
of_kind AS (
    SELECT kind, count(*) AS machines, sum(1e0 * capacity_ns) AS capacity_ns
    FROM of_machine
    GROUP BY kind
),
cost AS (
    SELECT b.machine_id, b.kind, coalesce(p.name, b.culprit) AS culprit, max(b.vendor) AS vendor, max(b.category) AS category,
        count(DISTINCT b.trace_id) AS traces, sum(1e0 * b.total_cpu_ns) AS cpu_ns, sum(1e0 * b.imposed_wait_ns) AS imposed_wait_ns,
        sum(b.energy_wh) AS energy_wh
    FROM bill AS b
    JOIN machine AS m ON m.trace_id = b.trace_id AND m.duration_ns < 8640000000000000
    JOIN recording AS t ON t.trace_id = b.trace_id AND (t.clock_broken IS NULL OR NOT t.clock_broken)
    LEFT JOIN process AS p ON p.trace_id = b.trace_id AND p.upid = b.upid
    WHERE b.part = 'culprit' AND NOT b.is_idle AND NOT b.is_unattributed AND (b.source = 'sample' OR (b.source = 'cswitch' AND b.kind <> 'driver'))
    GROUP BY b.machine_id, b.kind, coalesce(p.name, b.culprit)
),
share AS (
    SELECT c.machine_id, c.kind, c.culprit, c.vendor, c.category, c.traces, c.cpu_ns, c.imposed_wait_ns, c.energy_wh, m.observed_ns,
        100e0 * c.cpu_ns / m.capacity_ns AS percent
    FROM cost AS c
    JOIN of_machine AS m ON m.machine_id = c.machine_id AND m.kind = c.kind
    WHERE m.capacity_ns > 0
),
place AS (
    SELECT s.kind, s.culprit, s.vendor, s.category, s.traces, s.cpu_ns, s.imposed_wait_ns, s.energy_wh, s.observed_ns, s.percent,
        row_number() OVER (PARTITION BY s.kind, s.culprit ORDER BY s.percent) AS place,
        count(*) OVER (PARTITION BY s.kind, s.culprit) AS places
    FROM share AS s
)
SELECT p.kind, p.culprit, coalesce(max(k.vendor), max(p.vendor)) AS vendor, coalesce(max(k.category), max(p.category)) AS category,
    100e0 * sum(1e0 * p.cpu_ns) / max(o.capacity_ns) AS share_percent, CAST(sum(1e0 * p.cpu_ns) AS BIGINT) AS cpu_ns, count(*) AS machines,
    max(o.machines) AS machines_able, sum(p.traces) AS traces,
    min(CASE WHEN 2 * p.place >= p.places THEN p.percent END) AS p50_percent,
    min(CASE WHEN 20 * p.place >= 19 * p.places THEN p.percent END) AS p95_percent,
    CAST(sum(1e0 * p.imposed_wait_ns) AS BIGINT) AS imposed_wait_ns,
    sum(p.energy_wh) * 86400e9 / sum(CASE WHEN p.energy_wh IS NOT NULL THEN p.observed_ns END) AS wh_per_day
FROM place AS p
JOIN of_kind AS o ON o.kind = p.kind
LEFT JOIN knowledge AS k ON k.kind = p.kind AND k.name = lower(p.culprit)
GROUP BY p.kind, p.culprit
ORDER BY share_percent DESC, p.kind, p.culprit
