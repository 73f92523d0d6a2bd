-- Processes of a driver's own product, by vendor: whom the driver delays there is itself.
--
-- By the knowledge base or by version resources. Of Microsoft only Defender and its driver: what else it has is no one product.
-- Columns:
-- module: File name of the driver, in lower case.
-- listed: 1 where the knowledge base lists it as a security product's, else 0.
-- upid: Process of its product.
WITH maker AS (
  SELECT DISTINCT lower(k.name) AS module, CASE WHEN k.security THEN 1 ELSE 0 END AS listed, coalesce(k.vendor, k.company) AS vendor
  FROM module k
  WHERE k.kind = 'kernel' AND coalesce(k.vendor, k.company, '') <> ''
), kin AS (
  SELECT d.module AS module, d.listed AS listed, d.vendor AS vendor, p.upid AS upid
  FROM maker d JOIN process p ON p.vendor = d.vendor
  UNION
  SELECT d.module AS module, d.listed AS listed, d.vendor AS vendor, p.upid AS upid
  FROM maker d JOIN module e ON e.kind <> 'kernel' AND e.vendor = d.vendor JOIN process p ON lower(p.name) = lower(e.name)
)
SELECT k.module AS module, max(k.listed) AS listed, k.upid AS upid
FROM kin k
JOIN process p ON p.upid = k.upid
WHERE lower(k.vendor) NOT LIKE 'microsoft%' OR (k.listed = 1 AND (lower(coalesce(p.category, '')) LIKE '%antivirus%' OR lower(coalesce(p.category, '')) LIKE '%edr%'))
GROUP BY k.module, k.upid
