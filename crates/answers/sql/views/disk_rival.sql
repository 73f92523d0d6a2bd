-- Processes whose transfers mostly wait for a disk behind those of another process.
--
-- Of a disk that one process has at least half of (by service time), the others with less than half. Their time in its queue is not theirs:
-- without that process their transfers would take as long as the disk serves them.
-- Columns:
-- upid: Process that waits; null where it is not known.
-- queue_ns: Time of its transfers less what the disks served them.
-- rival: Name of the process that has these disks.
SELECT d.upid AS upid, sum(d.total_ns - d.service_ns) AS queue_ns, max(r.name) AS rival
FROM disk_cost d
JOIN disk_cost x ON x.level = 'disk' AND x.disk = d.disk
JOIN (SELECT c.disk AS disk, coalesce(p.name, '[unknown]') AS name, c.upid AS upid, c.service_ns AS service_ns,
             row_number() OVER (PARTITION BY c.disk ORDER BY c.service_ns DESC, c.upid) AS place
      FROM disk_cost c LEFT JOIN process p ON p.upid = c.upid WHERE c.level = 'process') r
  ON r.disk = d.disk AND r.place = 1 AND coalesce(r.upid, -1) <> coalesce(d.upid, -1)
WHERE d.level = 'process' AND 2 * d.service_ns < x.service_ns AND 2 * r.service_ns >= x.service_ns
GROUP BY d.upid
