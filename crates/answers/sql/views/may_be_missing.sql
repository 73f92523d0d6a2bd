-- How much of the trace may be missing: one row.
--
-- What remains at the end of a trace is a leak only if its release was not lost. So findings compare both numbers with what remains.
-- Columns:
-- gap_ns: Time in which records of one processor may be missing, of the processor that has most of it (table `unobserved`).
-- events: Events that were lost, by the counters of the trace; those of lost buffers by the mean of the others.
SELECT gaps.ns AS gap_ns,
       lost.events AS events
FROM (SELECT coalesce(max(g.ns), 0) AS ns FROM (SELECT u.cpu AS cpu, sum(u.dur_ns) AS ns FROM unobserved u GROUP BY u.cpu) g) gaps
CROSS JOIN (SELECT coalesce(sum(t.events_lost), 0) + CASE WHEN coalesce(sum(t.buffers), 0) > 0 THEN 1.0 * sum(t.buffers_lost) * (SELECT coalesce(sum(e.count), 0) AS n FROM event_type e) / sum(t.buffers) ELSE 0 END AS events FROM trace t) lost
