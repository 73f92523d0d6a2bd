-- What was found, trace by trace: one row for each culprit of a finding.
--
-- Columns:
-- trace_id: The trace.
-- machine_id: Its machine.
-- finding_id: The finding.
-- title: Its title.
-- number: Number among the culprits of the finding, the worst first.
-- severity: critical, warning, notice or info.
-- culprit: Who.
-- culprit_kind: What that is: process, driver, file, …
-- headline: One sentence with numbers.
-- cost_ns: Time that it cost, if the finding says.
-- confidence: high, medium or low, if the finding says.
SELECT h.trace_id, h.machine_id, h.finding_id, f.title, h.number, h.severity, h.culprit, h.culprit_kind, h.headline, h.cost_ns, h.confidence
FROM finding_hit AS h
JOIN finding AS f ON f.trace_id = h.trace_id AND f.finding_id = h.finding_id
