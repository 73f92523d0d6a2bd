-- When the whole machine stood still: one row, or none.
--
-- What seems to have run through it, a wait, a transfer or a DPC, is not charged with it: findings take it off.
-- Columns:
-- start_ns: Begin. Absent if only the length is known.
-- end_ns: End, one sample interval later than the last moment without samples: what was late because of it ends there.
-- ns: How long it was (table `machine`, `stood_still_ns`).
SELECT m.stood_still_start_ns AS start_ns,
       m.stood_still_start_ns + m.stood_still_ns + coalesce(m.sample_interval_ns, 1000000) AS end_ns,
       m.stood_still_ns AS ns
FROM machine m WHERE m.stood_still_ns > 0
