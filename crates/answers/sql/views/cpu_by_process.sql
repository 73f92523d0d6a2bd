-- CPU time by process.
--
-- Sampled time of all threads of a process. Time in DPCs and ISRs has its own row, because the processes that
-- they interrupt did not cause them.
-- Columns:
-- process: Image name, or [DPC and ISR].
-- pid: Process id; null for DPCs and ISRs.
-- upid: Instance (table process).
-- cpu_ns: CPU time.
-- share: Part of the observed processor time, 0 to 1.
-- samples: Samples.
SELECT coalesce(p.name, '[unknown]') AS process,
       p.pid AS pid,
       s.upid AS upid,
       sum(s.weight_ns) AS cpu_ns,
       1.0 * sum(s.weight_ns) / m.capacity_ns AS share,
       sum(s.samples) AS samples
FROM stack_cost s
LEFT JOIN process p ON p.upid = s.upid
CROSS JOIN machine m
WHERE s.class = 'thread' AND m.capacity_ns > 0
GROUP BY coalesce(p.name, '[unknown]'), p.pid, s.upid, m.capacity_ns
UNION ALL
SELECT '[DPC and ISR]' AS process,
       NULL AS pid,
       NULL AS upid,
       sum(s.weight_ns) AS cpu_ns,
       1.0 * sum(s.weight_ns) / m.capacity_ns AS share,
       sum(s.samples) AS samples
FROM stack_cost s
CROSS JOIN machine m
WHERE s.class <> 'thread' AND m.capacity_ns > 0
GROUP BY m.capacity_ns
