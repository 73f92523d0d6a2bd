-- Disk time by disk and process.
--
-- Service time is what the disk worked, total time also holds the queue.
-- Columns:
-- disk: Number of the disk.
-- process: Image name.
-- transfers: Reads, writes and flushes.
-- read_bytes: Bytes read.
-- written_bytes: Bytes written.
-- service_ns: Time that the disk worked for it.
-- total_ns: Time from request to end.
-- p95_ns: 95 % took no longer.
-- max_ns: Longest.
SELECT d.disk AS disk,
       p.name AS process,
       d.count AS transfers,
       d.read_bytes AS read_bytes,
       d.written_bytes AS written_bytes,
       d.service_ns AS service_ns,
       d.total_ns AS total_ns,
       d.p95_ns AS p95_ns,
       d.max_ns AS max_ns
FROM disk_cost d
LEFT JOIN process p ON p.upid = d.upid
WHERE d.level = 'process'
