-- CPU time by process and function.
--
-- Sampled time with a function on the stack (inclusive, once per stack) and in the function itself (exclusive).
-- Columns:
-- process: Image name.
-- pid: Process id.
-- class: thread, dpc or isr.
-- module: Module.
-- function: `module!function`.
-- inclusive_ns: CPU time with the function on the stack.
-- exclusive_ns: CPU time in the function itself.
-- samples: Samples with the function on the stack.
SELECT p.name AS process,
       p.pid AS pid,
       c.class AS class,
       c.module AS module,
       c.function AS function,
       c.inclusive_ns AS inclusive_ns,
       c.exclusive_ns AS exclusive_ns,
       c.samples AS samples
FROM function_cost c
LEFT JOIN process p ON p.upid = c.upid
