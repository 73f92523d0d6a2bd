-- Processes of a driver's own product, by vendor: whom the driver delays there is itself.
--
-- By the knowledge base or by version resources. Of Microsoft only Defender and its driver: what else it has is no one product.
-- Columns:
-- module: File name of the driver, in lower case.
-- listed: 1 where the knowledge base lists it as a security product's, else 0.
-- upid: Process of its product.
WITH maker AS (
  SELECT lower(k.name) AS module, coalesce(k.vendor, k.company) AS vendor, max(CASE WHEN k.security THEN 1 ELSE 0 END) AS listed
  FROM module k
  WHERE k.kind = 'kernel' AND coalesce(k.vendor, k.company, '') <> '' AND (k.security OR lower(coalesce(k.vendor, k.company)) NOT LIKE 'microsoft%')
  GROUP BY lower(k.name), coalesce(k.vendor, k.company)
), program AS (
  SELECT DISTINCT lower(e.name) AS name, e.vendor AS vendor FROM module e WHERE e.kind <> 'kernel' AND e.vendor IS NOT NULL
), named AS (
  SELECT p.upid AS upid, lower(p.name) AS name, p.vendor AS vendor,
         CASE WHEN lower(coalesce(p.category, '')) LIKE '%antivirus%' OR lower(coalesce(p.category, '')) LIKE '%edr%' THEN 1 ELSE 0 END AS guards
  FROM process p
), kin AS (
  SELECT d.module AS module, d.vendor AS vendor, d.listed AS listed, p.upid AS upid, p.guards AS guards
  FROM maker d JOIN named p ON p.vendor = d.vendor
  UNION ALL
  SELECT d.module AS module, d.vendor AS vendor, d.listed AS listed, p.upid AS upid, p.guards AS guards
  FROM maker d JOIN program e ON e.vendor = d.vendor JOIN named p ON p.name = e.name
)
SELECT k.module AS module, max(k.listed) AS listed, k.upid AS upid
FROM kin k
WHERE lower(k.vendor) NOT LIKE 'microsoft%' OR k.guards = 1
GROUP BY k.module, k.upid
