-- Disk time by disk and process.
--
-- Service time is the time that the disk worked on requests; total time also includes queueing.
-- Columns:
-- disk: Disk number.
-- process: Image name.
-- transfers: Reads, writes and flushes.
-- read_bytes: Bytes read.
-- written_bytes: Bytes written.
-- service_ns: Time that the disk worked for the process.
-- total_ns: Time from request to completion.
-- p95_ns: 95 % of the transfers took this long or less.
-- max_ns: Longest transfer.
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
