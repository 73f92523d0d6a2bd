-- Which version of each file was loaded where.
--
-- Columns:
-- trace_id: The trace.
-- machine_id: Its machine.
-- name: Name of the file.
-- file_version: Its version, where recorded.
SELECT trace_id, machine_id, name, file_version
FROM module
WHERE file_version IS NOT NULL
GROUP BY trace_id, machine_id, name, file_version
