-- DPC and ISR time by module.
--
-- What drivers held processors for, with Microsoft's limits of 100 µs (DPC) and 25 µs (ISR).
-- Columns:
-- class: dpc or isr.
-- module: Module of the routine.
-- count: How many.
-- exclusive_ns: Time without what interrupted them.
-- share: Part of the observed time of the processors, 0 to 1.
-- mean_ns: Mean duration.
-- p95_ns: 95 % took no longer.
-- max_ns: The longest.
-- over_limit: Longer than the limit.
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
