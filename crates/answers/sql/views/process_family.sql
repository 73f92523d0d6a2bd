-- Families of processes: which of them are one program.
--
-- A browser and its children, or an agent and the tools that it starts: findings add up what such processes cost together. A process
-- belongs to the parent of the same name, and to that parent's parent of the same name. Who started a family is named only if it is a
-- program that works with its children. What starts anybody's programs (the shell, services, schedulers), and hosts that do what
-- somebody gave them (shells, interpreters, svchost.exe), does not tie processes together. But three or more processes of one name and
-- parent that ran one after the other are one program that is started again and again, whoever starts it. Idle, System and processes whose name was
-- not recorded are left out.
-- Columns:
-- upid: Process.
-- name: Image name.
-- root_upid: The oldest of the family: the process itself, its parent or that one's parent.
-- starter_upid: Family of the process that started this family; null if that does not tie them together.
-- script_upid: The same, but where that is a cmd.exe that started fewer than three of this name, the family that started the
--   cmd.exe, if it has one that counts: a script calls each tool in a cmd.exe of its own.
-- program: What tells programs from each other: the name and the family that started it, else its own.
-- starts_anybody: 1 for the shell, services, schedulers and whatever else starts programs because somebody asked for it, else 0. An svchost.exe
--   does so if one of its services does (Task Scheduler, DCOM, Application Information, ...) or none is known; another service does it for itself.
WITH kin AS (
  SELECT p.upid AS upid, p.name AS name, p.parent_upid AS parent_upid,
         CASE WHEN g.upid IS NOT NULL THEN g.upid WHEN q.upid IS NOT NULL THEN q.upid ELSE p.upid END AS root,
         CASE WHEN lower(p.name) IN ('smss.exe', 'csrss.exe', 'wininit.exe', 'winlogon.exe', 'userinit.exe', 'explorer.exe', 'sihost.exe', 'services.exe', 'taskeng.exe', 'taskhost.exe', 'taskhostw.exe', 'taskmgr.exe', 'wmiprvse.exe', 'wsmprovhost.exe', 'dllhost.exe', 'runtimebroker.exe', 'sshd.exe', 'psexesvc.exe') THEN 1
              WHEN lower(p.name) <> 'svchost.exe' THEN 0
              WHEN coalesce(p.services, '') = '' OR lower(p.services) LIKE '%schedule%' OR lower(p.services) LIKE '%dcomlaunch%' OR lower(p.services) LIKE '%appinfo%' OR lower(p.services) LIKE '%seclogon%' OR lower(p.services) LIKE '%bits%' OR lower(p.services) LIKE '%winrm%' OR lower(p.services) LIKE '%gpsvc%' OR lower(p.services) LIKE '%profsvc%' OR lower(p.services) LIKE '%usermanager%' OR lower(p.services) LIKE '%appreadiness%' THEN 1
              ELSE 0 END AS starts_anybody,
         CASE WHEN lower(p.name) IN ('svchost.exe', 'w3wp.exe', 'dllhost.exe', 'conhost.exe', 'rundll32.exe', 'wmiprvse.exe', 'msiexec.exe', 'cmd.exe', 'powershell.exe', 'pwsh.exe', 'wscript.exe', 'cscript.exe', 'mshta.exe', 'bash.exe', 'sh.exe', 'java.exe', 'javaw.exe', 'dotnet.exe', 'node.exe', 'python.exe', 'pythonw.exe', 'perl.exe', 'ruby.exe', 'php.exe', 'sqlservr.exe') THEN 1 ELSE 0 END AS hosts_anything
  FROM process p
  LEFT JOIN process q ON q.upid = p.parent_upid AND lower(q.name) = lower(p.name)
  LEFT JOIN process g ON g.upid = q.parent_upid AND lower(g.name) = lower(q.name)
  WHERE p.pid > 4 AND p.name <> '[unknown]'
), twins AS (
  SELECT k.upid AS upid, lower(k.name) AS name, k.parent_upid AS parent_upid, k.root AS root, k.hosts_anything AS hosts_anything,
         count(*) OVER (PARTITION BY k.parent_upid, lower(k.name)) AS n
  FROM kin k
), runs AS (
  SELECT p.parent_upid AS parent_upid, lower(p.name) AS name,
         CASE WHEN coalesce(p.start_ns, 0) < max(coalesce(p.end_ns, 9223372036854775807)) OVER (PARTITION BY p.parent_upid, lower(p.name) ORDER BY coalesce(p.start_ns, 0), p.upid ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) THEN 1 ELSE 0 END AS overlaps
  FROM process p
  WHERE p.pid > 4 AND p.parent_upid IS NOT NULL
), restarted AS (
  SELECT r.parent_upid AS parent_upid, r.name AS name FROM runs r GROUP BY r.parent_upid, r.name HAVING count(*) >= 3 AND sum(r.overlaps) = 0
), started AS (
  SELECT r.upid AS root, s.root AS starter, coalesce(g.root, s.root) AS script
  FROM twins r
  JOIN kin s ON s.upid = r.parent_upid
  LEFT JOIN kin g ON g.upid = s.parent_upid AND g.starts_anybody = 0 AND lower(s.name) = 'cmd.exe' AND r.n < 3
  LEFT JOIN restarted t ON t.parent_upid = r.parent_upid AND t.name = r.name
  WHERE r.root = r.upid AND r.hosts_anything = 0 AND (s.starts_anybody = 0 OR t.name IS NOT NULL)
)
SELECT k.upid AS upid,
       k.name AS name,
       k.root AS root_upid,
       s.starter AS starter_upid,
       s.script AS script_upid,
       lower(k.name) || ' of ' || coalesce(s.starter, k.root) AS program,
       k.starts_anybody AS starts_anybody
FROM kin k
LEFT JOIN started s ON s.root = k.root
