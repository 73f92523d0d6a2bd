-- Where waits for another process led: the root of most of the time that somebody waited for it.
--
-- The longest waits are followed to their root (table `path_root`). They are added up by who waited and for whom; of all roots the one that most
-- of this time leads to is named. Those that waited are processes, programs (view `process_or_program`), and everybody together.
-- Where records of every processor may be missing while somebody waited, only a root is known whose work was seen (a processor, a disk, a delay).
-- Nor is one known where a process waited for its own files or page faults and disk transfers were not recorded: somebody else may have had the disk.
-- Columns:
-- victim: Who waited: the number of the process, the program, or `everybody`.
-- via_upid: Process that ended the waits.
-- walked_ns: Time of the waits that were followed.
-- walked_count: Waits that were followed.
-- dark_ns: Time of these waits that ends at files or page faults of a process whose disk transfers were not recorded.
-- root_upid: Process at the end of most of them; null where none is known.
-- root_driver: Driver at the end of most of them; empty where it is the process itself.
-- root: Name of the root.
-- label: The root as texts name it.
-- root_ns: Time of these waits that leads to the root.
-- cause: What the root did, by its kind.
-- did: What the root did, for texts.
-- chain: Who waited for whom in the longest of them.
WITH disk AS (
  SELECT count(*) AS classes FROM kernel_class k WHERE k.class = 'DISK_IO' AND k.events > 0
), followed AS (
  SELECT r.victim_upid AS victim_upid, r.via_upid AS via_upid, r.path_id AS path_id, r.dur_ns AS dur_ns,
         CASE WHEN d.classes = 0 AND r.cause IN ('io', 'page_fault') AND r.root_upid = r.via_upid THEN r.root_ns ELSE 0 END AS dark_ns,
         CASE WHEN d.classes = 0 AND r.cause IN ('io', 'page_fault') AND r.root_upid = r.via_upid THEN NULL
              WHEN r.cause IN ('work', 'processor', 'disk', 'interrupt', 'sleep', 'throttled', 'suspended')
                   OR NOT EXISTS (SELECT 1 FROM unobserved o WHERE o.start_ns < r.start_ns + r.dur_ns AND o.start_ns + o.dur_ns > r.start_ns) THEN r.root_upid END AS root_upid,
         coalesce(r.root_driver, '') AS root_driver, r.root AS root, r.root_ns AS root_ns, r.cause AS cause, r.did AS did, r.chain AS chain
  FROM path_root r
  CROSS JOIN disk d
  WHERE r.origin IN ('lock wait', 'call wait', 'other wait') AND r.victim_upid IS NOT NULL AND r.via_upid IS NOT NULL AND r.victim_upid <> r.via_upid
), paths AS (
  SELECT coalesce(g.unit, '' || f.victim_upid) AS victim, f.via_upid AS via_upid, f.path_id AS path_id, f.dur_ns AS dur_ns, f.dark_ns AS dark_ns, f.root_upid AS root_upid, f.root_driver AS root_driver, f.root AS root, f.root_ns AS root_ns, f.cause AS cause, f.did AS did, f.chain AS chain
  FROM followed f
  LEFT JOIN process_or_program g ON g.upid = f.victim_upid
  UNION ALL
  SELECT 'everybody' AS victim, f.via_upid AS via_upid, f.path_id AS path_id, f.dur_ns AS dur_ns, f.dark_ns AS dark_ns, f.root_upid AS root_upid, f.root_driver AS root_driver, f.root AS root, f.root_ns AS root_ns, f.cause AS cause, f.did AS did, f.chain AS chain
  FROM followed f
), summed AS (
  SELECT a.victim AS victim, a.via_upid AS via_upid, a.path_id AS path_id, a.root_upid AS root_upid, a.root_driver AS root_driver, a.root AS root, a.root_ns AS root_ns, a.cause AS cause, a.did AS did, a.chain AS chain,
         sum(a.dur_ns) OVER (PARTITION BY a.victim, a.via_upid) AS walked_ns, count(*) OVER (PARTITION BY a.victim, a.via_upid) AS walked_count, sum(a.dark_ns) OVER (PARTITION BY a.victim, a.via_upid) AS dark_ns,
         CASE WHEN a.root_upid IS NULL THEN -1 ELSE sum(a.root_ns) OVER (PARTITION BY a.victim, a.via_upid, a.root_upid, a.root_driver) END AS led_ns
  FROM paths a
), ranked AS (
  SELECT s.victim AS victim, s.via_upid AS via_upid, s.walked_ns AS walked_ns, s.walked_count AS walked_count, s.dark_ns AS dark_ns, s.root_upid AS root_upid, s.root_driver AS root_driver, s.root AS root, s.led_ns AS led_ns, s.cause AS cause, s.did AS did, s.chain AS chain,
         row_number() OVER (PARTITION BY s.victim, s.via_upid ORDER BY s.led_ns DESC, s.root_ns DESC, s.path_id) AS place
  FROM summed s
)
SELECT k.victim AS victim, k.via_upid AS via_upid, k.walked_ns AS walked_ns, k.walked_count AS walked_count, k.dark_ns AS dark_ns,
       k.root_upid AS root_upid, k.root_driver AS root_driver, CASE WHEN k.root_driver <> '' THEN k.root_driver ELSE coalesce(p.name, k.root) END AS root, k.root AS label,
       CASE WHEN k.root_upid IS NOT NULL THEN k.led_ns END AS root_ns, k.cause AS cause, k.did AS did, k.chain AS chain
FROM ranked k
LEFT JOIN process p ON p.upid = k.root_upid
WHERE k.place = 1
