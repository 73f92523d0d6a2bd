-- What processes did that others need not notice: CPU time, and time of disks, with what tells whether anybody waited for it.
--
-- Rows for the CPU time of each process, and one for each disk that it used. Whether a disk's time counts depends on who is asked about:
-- transfers of others are those of all processes less theirs.
-- Columns:
-- upid: Process.
-- cpu_ns: CPU time by samples.
-- idle_ns: CPU time of its threads with a base priority of 4 or less, which Windows runs when nobody else wants the processor
--   (Microsoft, Scheduling Priorities: a thread of normal priority in a process of the idle class has 4).
-- disk: Disk; null in the row for CPU time.
-- disk_ns: Time for which its transfers kept the disk busy.
-- low_ns: Part of it for transfers of low priority, which Windows lets wait.
-- disk_bytes: Bytes read and written.
-- total_ns: Time of its transfers, with the queue.
-- all_ns: Time of the transfers of all processes but System on this disk, with the queue.
-- urgent_mean_ns: Mean time of a read or write on this disk that is not of low priority.
WITH everybody AS (
  SELECT d.disk AS disk, sum(d.total_ns) AS all_ns
  FROM disk_cost d
  LEFT JOIN process p ON p.upid = d.upid AND p.pid = 4
  WHERE d.level = 'process' AND p.upid IS NULL
  GROUP BY d.disk
)
SELECT c.upid AS upid, sum(c.weight_ns) AS cpu_ns, 0 AS idle_ns, CAST(NULL AS BIGINT) AS disk, 0 AS disk_ns, 0 AS low_ns, 0 AS disk_bytes, 0 AS total_ns, CAST(NULL AS BIGINT) AS all_ns, CAST(NULL AS DOUBLE) AS urgent_mean_ns
FROM stack_cost c
WHERE c.class = 'thread'
GROUP BY c.upid
UNION ALL
SELECT t.upid AS upid, 0 AS cpu_ns, sum(t.cpu_ns + t.open_run_ns) AS idle_ns, CAST(NULL AS BIGINT) AS disk, 0 AS disk_ns, 0 AS low_ns, 0 AS disk_bytes, 0 AS total_ns, CAST(NULL AS BIGINT) AS all_ns, CAST(NULL AS DOUBLE) AS urgent_mean_ns
FROM thread_time t
JOIN thread h ON h.utid = t.utid AND h.base_priority <= 4
GROUP BY t.upid
UNION ALL
SELECT d.upid AS upid, 0 AS cpu_ns, 0 AS idle_ns, d.disk AS disk, d.service_ns AS disk_ns, coalesce(d.low_service_ns, 0) AS low_ns, d.read_bytes + d.written_bytes AS disk_bytes, d.total_ns AS total_ns,
       CASE WHEN q.disk IS NOT NULL THEN coalesce(e.all_ns, 0) END AS all_ns,
       CASE WHEN q.reads + q.writes > q.low THEN 1.0 * (q.total_ns - q.flush_ns - q.low_total_ns) / (q.reads + q.writes - q.low) WHEN q.low IS NOT NULL THEN 0.0 END AS urgent_mean_ns
FROM disk_cost d
LEFT JOIN disk_cost q ON q.level = 'disk' AND q.disk = d.disk
LEFT JOIN everybody e ON e.disk = d.disk
WHERE d.level = 'process'
