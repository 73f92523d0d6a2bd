-- Readings that count: the latest of each file.
--
-- A trace that was read again, by a newer program or because another file of its recording came, has rows of both readings. One is current
-- if none of its files was read later. The other views see rows of current readings only.
--
-- Columns:
-- trace_id: The trace.
-- extract_id: Its current reading.
WITH reading AS (
    SELECT trace_id, extract_id, max(batch) AS batch
    FROM run
    WHERE outcome IN ('read', 'in_part')
    GROUP BY trace_id, extract_id
),
member AS (
    SELECT f.file_id, f.trace_id, f.extract_id, r.batch
    FROM trace_file AS f
    JOIN reading AS r ON r.trace_id = f.trace_id AND r.extract_id = f.extract_id
),
latest AS (
    SELECT file_id, max(batch) AS batch
    FROM member
    GROUP BY file_id
)
SELECT m.trace_id, m.extract_id
FROM member AS m
JOIN latest AS l ON l.file_id = m.file_id
GROUP BY m.trace_id, m.extract_id
HAVING min(m.batch - l.batch) = 0
