-- File cost by filter driver: delay that minifilters add.
--
-- Callbacks of different drivers may lie inside each other: do not add up drivers.
-- Columns:
-- module: Driver.
-- altitude: Altitudes that it is registered at; higher ones see an operation first.
-- vendor: Who makes it, if known.
-- category: What it is for, if known.
-- operation: Major function of the IRP.
-- callbacks: Callbacks before and after the operation.
-- total_ns: Their time.
-- max_ns: Longest.
SELECT c.module AS module,
       c.altitude AS altitude,
       c.vendor AS vendor,
       c.category AS category,
       c.major AS operation,
       sum(c.count) AS callbacks,
       sum(c.total_ns) AS total_ns,
       max(c.max_ns) AS max_ns
FROM minifilter_cost c
GROUP BY c.module, c.altitude, c.vendor, c.category, c.major
