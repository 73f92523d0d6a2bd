-- Whom a finding may name for what processes did: a process, or its program.
--
-- Each process has a row for itself. One whose program runs in several processes (view `process_family`) has a second one for the program.
-- A finding adds up what it measures by `unit`, and of the units that reach its limits it names either processes or their program, never
-- both: the processes where one of them has more than half of what the program has in all, else the program. So 40 short runs of a tool
-- are one culprit, and one process that does it all is named itself.
-- Columns:
-- upid: Process.
-- unit: What to add up by: the number of the process, or the program.
-- alone: 1 where the unit is the process alone, 0 where it is the program.
-- program: The program, for both rows; the process itself where nobody else belongs to it.
-- name: Image name.
-- name_upid: Process that the unit is named after: itself; of a program the oldest one, if its processes descend from one and other
--   programs have the same name, else -1.
-- run_by: For texts: ` that make.exe (100) started` where that ties the processes together, else empty.
WITH member AS (
  SELECT k.upid AS upid, k.name AS name, k.root_upid AS root_upid, k.script_upid AS script_upid, lower(k.name) AS lower_name, lower(k.name) || ' of ' || coalesce(k.script_upid, k.root_upid) AS program
  FROM process_family k
), counted AS (
  SELECT m.upid AS upid, m.program AS program, m.script_upid AS script_upid,
         max(m.name) OVER (PARTITION BY m.program) AS name, count(*) OVER (PARTITION BY m.program) AS processes,
         min(m.root_upid) OVER (PARTITION BY m.program) AS first_root, max(m.root_upid) OVER (PARTITION BY m.program) AS last_root,
         CASE WHEN min(m.program) OVER (PARTITION BY m.lower_name) < max(m.program) OVER (PARTITION BY m.lower_name) THEN 1 ELSE 0 END AS namesakes
  FROM member m
)
SELECT p.upid AS upid,
       CASE WHEN z.alone = 1 THEN '' || p.upid ELSE t.program END AS unit,
       z.alone AS alone,
       coalesce(t.program, '' || p.upid) AS program,
       CASE WHEN z.alone = 1 THEN p.name ELSE t.name END AS name,
       CASE WHEN z.alone = 1 THEN p.upid WHEN t.namesakes = 1 AND t.first_root = t.last_root THEN t.first_root ELSE -1 END AS name_upid,
       CASE WHEN z.alone = 0 AND t.first_root < t.last_root AND b.upid IS NOT NULL THEN ' that ' || b.name || ' (' || b.pid || ') started' ELSE '' END AS run_by
FROM process p
LEFT JOIN counted t ON t.upid = p.upid
LEFT JOIN process b ON b.upid = t.script_upid
JOIN (SELECT 1 AS alone UNION ALL SELECT 0 AS alone) z ON z.alone = 1 OR t.processes > 1
