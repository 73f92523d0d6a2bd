-- File cost by process: what each process did with each file.
--
-- Durations are those of the lowest layer that file events see. The filters above it are in file_by_filter, their CPU
-- time is in cpu_by_driver.
-- Columns:
-- process: Image name.
-- path: File path.
-- opens: Number of opens.
-- failed_opens: Opens that failed.
-- reads: Number of reads.
-- read_bytes: Bytes read.
-- writes: Number of writes.
-- written_bytes: Bytes written.
-- open_ns: Total time of opens.
-- total_ns: Total time of all operations.
SELECT p.name AS process,
       f.path AS path,
       f.opens AS opens,
       f.failed_opens AS failed_opens,
       f.reads AS reads,
       f.read_bytes AS read_bytes,
       f.writes AS writes,
       f.written_bytes AS written_bytes,
       f.open_ns AS open_ns,
       f.total_ns AS total_ns
FROM file_usage f
LEFT JOIN process p ON p.upid = f.upid
