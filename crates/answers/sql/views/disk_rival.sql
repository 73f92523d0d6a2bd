-- Processes whose transfers mostly wait for a disk behind those of another program.
--
-- Of a disk that one program has at least half of (by service time, all of its processes together), the others with less than half. Their time
-- in its queue is not theirs: without that program their transfers would take as long as the disk serves them.
-- Columns:
-- upid: Process that waits; null where it is not known.
-- queue_ns: Time of its transfers less what the disks served them.
-- rival: Name of the program that has these disks.
WITH used AS (
  SELECT d.disk AS disk, d.upid AS upid, coalesce(g.program, '?') AS program, coalesce(g.name, '[unknown]') AS name, d.total_ns AS total_ns, d.service_ns AS service_ns,
         sum(d.service_ns) OVER (PARTITION BY d.disk, coalesce(g.program, '?')) AS program_ns
  FROM disk_cost d
  LEFT JOIN process_or_program g ON g.upid = d.upid AND g.alone = 1
  WHERE d.level = 'process'
), ranked AS (
  SELECT u.disk AS disk, u.program AS program, u.name AS name, u.program_ns AS program_ns, row_number() OVER (PARTITION BY u.disk ORDER BY u.program_ns DESC, u.program, u.upid) AS place
  FROM used u
)
SELECT u.upid AS upid, sum(u.total_ns - u.service_ns) AS queue_ns, max(r.name) AS rival
FROM used u
JOIN disk_cost x ON x.level = 'disk' AND x.disk = u.disk
JOIN ranked r ON r.disk = u.disk AND r.place = 1 AND r.program <> u.program
WHERE 2 * u.program_ns < x.service_ns AND 2 * r.program_ns >= x.service_ns
GROUP BY u.upid
