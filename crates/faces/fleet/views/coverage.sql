-- What could be told where, and what to record for the rest.
--
-- Columns:
-- finding_id: The finding.
-- title: Its title.
-- could_tell_percent: Traces that could tell, as share of all.
-- could_tell: Traces that could tell.
-- traces: Traces that it was asked of.
-- machines_able: Machines with a trace that could tell.
-- machines: Machines.
-- reason: Why the most traces could not tell.
-- reason_traces: Traces with this reason.
-- record: The command that prints the recording that would tell.
WITH reason AS (
    SELECT finding_id, reason, max(record) AS record, count(*) AS traces
    FROM finding
    WHERE answer = 'cannot_tell'
    GROUP BY finding_id, reason
),
first_reason AS (
    SELECT finding_id, reason, record, traces,
        row_number() OVER (PARTITION BY finding_id ORDER BY traces DESC, reason) AS place
    FROM reason
),
answer AS (
    SELECT finding_id, max(title) AS title, count(*) AS traces,
        sum(CASE WHEN answer <> 'cannot_tell' THEN 1 ELSE 0 END) AS could_tell,
        count(DISTINCT CASE WHEN answer <> 'cannot_tell' THEN machine_id END) AS machines_able,
        count(DISTINCT machine_id) AS machines
    FROM finding
    GROUP BY finding_id
)
SELECT a.finding_id, a.title, 100e0 * a.could_tell / a.traces AS could_tell_percent, a.could_tell, a.traces, a.machines_able, a.machines,
    r.reason, r.traces AS reason_traces, r.record
FROM answer AS a
LEFT JOIN first_reason AS r ON r.finding_id = a.finding_id AND r.place = 1
ORDER BY could_tell_percent, a.finding_id
