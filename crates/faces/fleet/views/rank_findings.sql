-- How often each finding is true, of the traces that could tell.
--
-- Columns:
-- finding_id: The finding.
-- title: Its title.
-- found_percent: Traces where it is true, as share of those that could tell.
-- found: Traces where it is true.
-- could_tell: Traces that say whether it is true.
-- traces: Traces that it was asked of.
-- machines_found: Machines where it is true.
-- machines_able: Machines with a trace that could tell.
-- critical: Traces where it is critical.
-- warning: Traces where it is a warning.
-- cost_ns: Cost of the costliest culprit of each trace, added up where the clock can be believed.
-- culprit: The culprit on most machines.
-- culprit_machines: Machines with this culprit.
WITH hit AS (
    SELECT finding_id, culprit, count(DISTINCT machine_id) AS machines
    FROM finding_hit
    GROUP BY finding_id, culprit
),
first_hit AS (
    SELECT finding_id, culprit, machines,
        row_number() OVER (PARTITION BY finding_id ORDER BY machines DESC, culprit) AS place
    FROM hit
),
believed AS (
    SELECT t.trace_id
    FROM recording AS t
    JOIN machine AS m ON m.trace_id = t.trace_id AND m.duration_ns < 8640000000000000
    WHERE t.clock_broken IS NULL OR NOT t.clock_broken
),
answer AS (
    SELECT f.finding_id AS finding_id, max(title) AS title, count(*) AS traces,
        sum(CASE WHEN answer = 'found' THEN 1 ELSE 0 END) AS found,
        sum(CASE WHEN answer <> 'cannot_tell' THEN 1 ELSE 0 END) AS could_tell,
        count(DISTINCT CASE WHEN answer = 'found' THEN machine_id END) AS machines_found,
        count(DISTINCT CASE WHEN answer <> 'cannot_tell' THEN machine_id END) AS machines_able,
        sum(CASE WHEN severity = 'critical' THEN 1 ELSE 0 END) AS critical,
        sum(CASE WHEN severity = 'warning' THEN 1 ELSE 0 END) AS warning,
        CAST(sum(CASE WHEN believed.trace_id IS NOT NULL THEN 1e0 * f.cost_ns END) AS BIGINT) AS cost_ns
    FROM finding AS f
    LEFT JOIN believed ON believed.trace_id = f.trace_id
    GROUP BY f.finding_id
)
SELECT a.finding_id, a.title, 100e0 * a.found / a.could_tell AS found_percent, a.found, a.could_tell, a.traces, a.machines_found,
    a.machines_able, a.critical, a.warning, a.cost_ns, h.culprit, h.machines AS culprit_machines
FROM answer AS a
LEFT JOIN first_hit AS h ON h.finding_id = a.finding_id AND h.place = 1
WHERE a.could_tell > 0
ORDER BY a.machines_found DESC, found_percent DESC, a.finding_id
