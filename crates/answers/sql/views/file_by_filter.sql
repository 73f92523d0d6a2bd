-- File cost by filter driver: the delay that minifilters add.
--
-- Callbacks of different drivers may be nested: exclusive_ns may be added up, total_ns may not.
-- Columns:
-- module: Driver.
-- altitude: Registered altitudes; higher ones see an operation first.
-- vendor: Vendor, if known.
-- category: Kind of product, if known.
-- operation: Major function of the IRP.
-- callbacks: Callbacks before and after the operation.
-- total_ns: Total time of the callbacks.
-- max_ns: Longest callback.
-- exclusive_ns: Total time without the callbacks that ran inside them.
SELECT c.module AS module,
       c.altitude AS altitude,
       c.vendor AS vendor,
       c.category AS category,
       c.major AS operation,
       sum(c.count) AS callbacks,
       sum(c.total_ns) AS total_ns,
       max(c.max_ns) AS max_ns,
       sum(coalesce(c.exclusive_ns, c.total_ns)) AS exclusive_ns
FROM minifilter_cost c
GROUP BY c.module, c.altitude, c.vendor, c.category, c.major
