-- Time in which callbacks of a minifilter waited for a disk that another program keeps busy.
--
-- A callback that reads the file waits for the disk as everybody does. Of transfers that lie inside a callback, those of its thread or, where the
-- thread is not known, of its file, the time in the queue counts, if another program has most of the disk (view `disk_rival`) and is not of the
-- filter's own product (view `product_process`). Callbacks in the product's own processes are left out, and those of less than 100 µs.
-- Columns:
-- module: File name of the filter.
-- major: Operation, or `unknown`.
-- queue_ns: Time in the queue, in each callback no more than the callback took.
-- rival: Name of the program that has the disks.
WITH own AS (
  SELECT h.module AS module, h.upid AS upid FROM product_process h WHERE h.listed = 1
), moments AS (
  SELECT CASE WHEN f.utid IS NOT NULL THEN 't' || f.utid ELSE 'f' || f.file_id END AS thread, 0 AS transfer, f.start_ns AS start_ns, f.ts_ns AS end_ns,
         f.module AS module, coalesce(f.major, 'unknown') AS major, coalesce(f.exclusive_ns, f.dur_ns) AS ns, '' AS rival
  FROM minifilter f
  WHERE f.start_ns IS NOT NULL AND f.module IS NOT NULL AND (f.utid IS NOT NULL OR f.file_id IS NOT NULL) AND f.dur_ns >= 100000
    AND EXISTS (SELECT 1 FROM disk_rival r WHERE r.upid IS NOT NULL)
    AND NOT EXISTS (SELECT 1 FROM own h WHERE h.module = lower(f.module) AND h.upid = f.upid)
  UNION ALL
  SELECT CASE k.key WHEN 't' THEN 't' || d.utid ELSE 'f' || d.file_id END AS thread, 1 AS transfer, d.start_ns AS start_ns, d.ts_ns AS end_ns,
         '' AS module, '' AS major, d.dur_ns - d.service_ns AS ns, r.rival AS rival
  FROM disk_io d JOIN disk_rival r ON r.upid = d.upid
  JOIN (SELECT 't' AS key UNION ALL SELECT 'f' AS key) k ON (k.key = 't' AND d.utid IS NOT NULL) OR (k.key = 'f' AND d.file_id IS NOT NULL)
  WHERE d.dur_ns > d.service_ns
), numbered AS (
  SELECT a.thread AS thread, a.transfer AS transfer, a.end_ns AS end_ns, a.module AS module, a.major AS major, a.ns AS ns, a.rival AS rival,
         sum(1 - a.transfer) OVER (PARTITION BY a.thread ORDER BY a.start_ns, a.transfer ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS callback
  FROM moments a
), bounded AS (
  SELECT n.thread AS thread, n.callback AS callback, n.transfer AS transfer, n.end_ns AS end_ns, n.ns AS ns, n.rival AS rival, n.module AS module, n.major AS major,
         max(CASE WHEN n.transfer = 0 THEN n.end_ns END) OVER (PARTITION BY n.thread, n.callback) AS until_ns
  FROM numbered n WHERE n.callback > 0
), queues AS (
  SELECT b.thread AS thread, b.callback AS callback, max(b.module) AS module, max(b.major) AS major, sum(CASE WHEN b.transfer = 0 THEN b.ns ELSE 0 END) AS ns,
         sum(CASE WHEN b.transfer = 1 THEN b.ns ELSE 0 END) AS queue_ns, max(b.rival) AS rival
  FROM bounded b
  WHERE b.end_ns <= b.until_ns
  GROUP BY b.thread, b.callback
  HAVING sum(b.transfer) > 0
)
SELECT q.module AS module, q.major AS major, sum(CASE WHEN q.queue_ns < q.ns THEN q.queue_ns ELSE q.ns END) AS queue_ns, max(q.rival) AS rival
FROM queues q
WHERE NOT EXISTS (SELECT 1 FROM own h JOIN process y ON y.upid = h.upid WHERE h.module = lower(q.module) AND lower(y.name) = lower(q.rival))
GROUP BY q.module, q.major
