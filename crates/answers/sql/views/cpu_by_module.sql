-- CPU time by process and module.
--
-- Sampled time with a module on the stack (inclusive) and in the module itself (exclusive).
-- Columns:
-- process: Image name.
-- pid: Process id.
-- class: thread, dpc or isr.
-- module: Module.
-- vendor: Vendor, if known.
-- product: Product, if known.
-- category: Kind of product, if known.
-- inclusive_ns: CPU time with the module on the stack.
-- exclusive_ns: CPU time in the module itself.
-- samples: Samples with the module on the stack.
SELECT p.name AS process,
       p.pid AS pid,
       c.class AS class,
       c.module AS module,
       c.vendor AS vendor,
       c.product AS product,
       c.category AS category,
       c.inclusive_ns AS inclusive_ns,
       c.exclusive_ns AS exclusive_ns,
       c.samples AS samples
FROM module_cost c
LEFT JOIN process p ON p.upid = c.upid
