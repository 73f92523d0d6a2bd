-- Registry operations by key and process.
--
-- Repeats are reads of a value that the same process had read before.
-- Columns:
-- key: Registry key.
-- process: Image name.
-- operations: Number of operations.
-- failed: Operations that failed.
-- repeats: Reads of a value that the process had read before.
-- total_ns: Total time of the operations.
SELECT r.key AS key,
       p.name AS process,
       sum(r.count) AS operations,
       sum(r.failed) AS failed,
       sum(coalesce(r.repeats, 0)) AS repeats,
       sum(r.total_ns) AS total_ns
FROM registry_usage r
LEFT JOIN process p ON p.upid = r.upid
GROUP BY r.key, p.name
