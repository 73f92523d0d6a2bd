-- DPC and ISR time by module.
--
-- How long drivers held processors, with Microsoft's limits of 100 µs (DPC) and 25 µs (ISR).
-- Columns:
-- class: dpc or isr.
-- module: Module of the routine.
-- count: Number of DPCs or ISRs.
-- exclusive_ns: Time without the interrupts nested in them.
-- share: Part of the observed processor time, 0 to 1.
-- mean_ns: Mean duration.
-- p95_ns: 95 % took this long or less.
-- max_ns: Longest duration.
-- over_limit: Number longer than the limit.
SELECT i.class,
       i.module,
       i.count,
       i.exclusive_ns,
       1.0 * i.exclusive_ns / m.event_capacity_ns AS share,
       i.mean_ns,
       i.p95_ns,
       i.max_ns,
       i.over_limit
FROM interrupt_cost i
CROSS JOIN machine m
WHERE i.level = 'module' AND m.event_capacity_ns > 0
