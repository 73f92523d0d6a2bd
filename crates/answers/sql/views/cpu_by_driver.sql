-- CPU time by driver, whichever process it ran in.
--
-- Each sample is charged to at most one driver: the innermost module in the kernel part of its stack that is not
-- part of Windows.
-- Columns:
-- driver: File name.
-- vendor: Vendor, if known.
-- product: Product, if known.
-- category: Kind of product, if known.
-- charged_ns: CPU time of the driver and of the Windows code that it called.
-- share: Part of the observed processor time, 0 to 1.
-- processes: Processes in whose threads it ran.
SELECT d.driver AS driver,
       d.vendor AS vendor,
       d.product AS product,
       d.category AS category,
       sum(d.charged_ns) AS charged_ns,
       1.0 * sum(d.charged_ns) / m.capacity_ns AS share,
       count(DISTINCT d.upid) AS processes
FROM driver_cost d
CROSS JOIN machine m
WHERE d.driver IS NOT NULL AND m.capacity_ns > 0
GROUP BY d.driver, d.vendor, d.product, d.category, m.capacity_ns
