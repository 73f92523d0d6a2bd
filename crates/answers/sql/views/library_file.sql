-- Libraries that products bring along: one file each, whichever programs have loaded it.
--
-- What a library does in programs of other folders (a hook, a shell extension) is not theirs. Microsoft's libraries and those of .NET work for any
-- program and are left out, and so are those in Windows' folder whose company is not known.
-- Columns:
-- library: File name, in lower case.
-- folder: Its folder, in lower case, with the separator at its end.
SELECT lower(d.name) AS library, max(lower(substr(d.path, 1, length(d.path) - length(d.name)))) AS folder
FROM module d
WHERE d.kind = 'user' AND lower(d.name) LIKE '%.dll' AND coalesce(d.path, '') <> '' AND lower(coalesce(d.vendor, d.company, '')) NOT LIKE 'microsoft%'
  AND lower(d.path) NOT LIKE '%_dotnet_shared_%' AND lower(d.path) NOT LIKE '%_windows_assembly_%' AND lower(d.path) NOT LIKE '%_windows_microsoft.net_%'
  AND (coalesce(d.vendor, d.company, '') <> '' OR lower(d.path) NOT LIKE '%_windows_%')
GROUP BY lower(d.name)
HAVING count(DISTINCT lower(d.path)) = 1
