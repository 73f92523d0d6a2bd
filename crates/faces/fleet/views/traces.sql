-- Traces with their machine, their verdict and what was found.
--
-- Columns:
-- trace_id: The trace.
-- machine_id: Its machine.
-- computer: Computer name, where recorded.
-- model: Manufacturer and model, where recorded.
-- os: Windows version and build.
-- captured_utc: Start, UTC.
-- duration_ns: From the first to the last event.
-- path: Its first file.
-- files: Its files.
-- critical: Findings that are critical.
-- warning: Warnings.
-- notice: Notices.
-- sentence: The verdict in one sentence.
WITH found AS (
    SELECT trace_id, sum(CASE WHEN severity = 'critical' THEN 1 ELSE 0 END) AS critical,
        sum(CASE WHEN severity = 'warning' THEN 1 ELSE 0 END) AS warning,
        sum(CASE WHEN severity = 'notice' THEN 1 ELSE 0 END) AS notice
    FROM finding
    WHERE answer = 'found'
    GROUP BY trace_id
)
SELECT t.trace_id, t.machine_id, t.computer, t.model, t.os, t.captured_utc, t.duration_ns, t.path, t.files,
    coalesce(f.critical, 0) AS critical, coalesce(f.warning, 0) AS warning, coalesce(f.notice, 0) AS notice, t.sentence
FROM recording AS t
LEFT JOIN found AS f ON f.trace_id = t.trace_id
ORDER BY t.captured_unix_ns, t.trace_id
