-- Registry operations by key and process.
--
-- Repeats are reads of a value of the key that had been read before.
-- Columns:
-- key: Key.
-- process: Image name.
-- operations: Operations.
-- failed: Of these failed.
-- repeats: Reads of a value that the process had read before.
-- total_ns: Their time.
SELECT r.key AS key,
       p.name AS process,
       sum(r.count) AS operations,
       sum(r.failed) AS failed,
       sum(coalesce(r.repeats, 0)) AS repeats,
       sum(r.total_ns) AS total_ns
FROM registry_usage r
LEFT JOIN process p ON p.upid = r.upid
GROUP BY r.key, p.name
