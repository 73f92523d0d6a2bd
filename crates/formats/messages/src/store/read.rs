//! Looking things up in a database.

use super::{APPLICATION_ID, Counts, FileInfo, SCHEMA_VERSION};
use crate::error::Error;
use crate::lang;
use crate::wevt::{InType, OutType};
use etwhy_base::Guid;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A database that is open.
pub(crate) struct Store {
    db: Mutex<Connection>,
    /// Where it is.
    pub(crate) path: PathBuf,
}

/// A provider.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProviderRow {
    pub(crate) id: i64,
    pub(crate) name: Option<String>,
    pub(crate) guid: Option<Guid>,
    pub(crate) log: Option<String>,
    pub(crate) classic: bool,
    pub(crate) registered: bool,
    /// Name of the file with its templates.
    pub(crate) module: Option<String>,
    /// Role and name of the files that the registry names, in order.
    pub(crate) files: Vec<(String, String)>,
}

impl ProviderRow {
    /// Files of a role.
    pub(crate) fn files<'a>(&'a self, role: &'a str) -> impl Iterator<Item = &'a str> {
        self.files.iter().filter(move |file| file.0 == role).map(|file| file.1.as_str())
    }
}

/// A type of event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventRow {
    pub(crate) id: u16,
    pub(crate) version: u8,
    pub(crate) message: Option<u32>,
    pub(crate) template: Option<i64>,
    pub(crate) channel: u8,
    pub(crate) level: u8,
    pub(crate) opcode: u8,
    pub(crate) task: u16,
    pub(crate) keywords: u64,
}

/// A field: name, types and the id of its map.
pub(crate) type FieldRow = (String, InType, OutType, Option<i64>);
/// A map: name, whether its values are bits, values with their messages.
pub(crate) type MapRow = (String, bool, Vec<(u32, Option<u32>)>);
/// A named value: its kind, value, name in the manifest and message.
pub(crate) type NamedRow = (String, u64, Option<String>, Option<u32>);

impl Store {
    /// Whether a file is a database of SQLite.
    pub(crate) fn is_one(head: &[u8]) -> bool {
        head.starts_with(b"SQLite format 3\0")
    }

    /// Opens a database for reading.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let db = Connection::open_with_flags(
            path,
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )
        .map_err(Error::database(path))?;
        let pragma = |name: &str| {
            db.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0))
                .map_err(Error::database(path))
        };
        if pragma("application_id")? != APPLICATION_ID {
            return Err(Error::NotUsable {
                path: path.to_owned(),
                what: "is a database, but none of messages (etwhy evtx messages build makes them)".to_owned(),
            });
        }
        let version = pragma("user_version")?;
        if version != SCHEMA_VERSION {
            return Err(Error::NotUsable {
                path: path.to_owned(),
                what: format!(
                    "is a database of messages of version {version}, and this program reads version {SCHEMA_VERSION}: build it again"
                ),
            });
        }
        Ok(Self::new(db, path))
    }

    /// A database that is open already.
    pub(crate) fn new(db: Connection, path: &Path) -> Self {
        Self { db: Mutex::new(db), path: path.to_owned() }
    }

    fn db(&self) -> MutexGuard<'_, Connection> {
        self.db.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a query.
    fn rows<T>(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
        row: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, Error> {
        let db = self.db();
        let run = || -> rusqlite::Result<Vec<T>> {
            let mut statement = db.prepare_cached(sql)?;
            let rows = statement.query_map(params, row)?;
            rows.collect()
        };
        run().map_err(Error::database(&self.path))
    }

    /// Providers with a GUID or a name: those with the GUID first, and of them those of a manifest.
    pub(crate) fn providers(&self, name: &str, guid: Option<Guid>) -> Result<Vec<ProviderRow>, Error> {
        let guid = guid.map(|g| g.braced());
        let sql = "SELECT provider_id FROM provider WHERE guid = ?1 OR name = ?2
            ORDER BY guid IS NOT ?1, module_id IS NULL, registered = 0, provider_id LIMIT 16";
        let ids = self.rows(sql, params![guid, name], |row| row.get(0))?;
        ids.into_iter().map(|id| self.provider(id)).collect()
    }

    /// All providers, by name.
    pub(crate) fn all_providers(&self) -> Result<Vec<ProviderRow>, Error> {
        let sql = "SELECT provider_id FROM provider ORDER BY name IS NULL, name, guid";
        let ids = self.rows(sql, [], |row| row.get(0))?;
        ids.into_iter().map(|id| self.provider(id)).collect()
    }

    fn provider(&self, id: i64) -> Result<ProviderRow, Error> {
        let files = self.rows(
            "SELECT role, name FROM provider_file WHERE provider_id = ? ORDER BY role, position",
            [id],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let sql = "SELECT p.name, guid, log, kind = 'classic', registered, m.name
            FROM provider p LEFT JOIN module m USING (module_id) WHERE provider_id = ?";
        self.db()
            .query_row(sql, [id], |row| {
                Ok(ProviderRow {
                    id,
                    name: row.get(0)?,
                    guid: row.get::<_, Option<String>>(1)?.and_then(|g| g.parse().ok()),
                    log: row.get(2)?,
                    classic: row.get(3)?,
                    registered: row.get(4)?,
                    module: row.get(5)?,
                    files,
                })
            })
            .map_err(Error::database(&self.path))
    }

    /// The types of events of a provider: those with an id, or all.
    pub(crate) fn events(&self, provider: i64, id: Option<u16>) -> Result<Vec<EventRow>, Error> {
        let sql =
            "SELECT id, version, message_id, template_id, channel, level, opcode, task, keywords FROM event
            WHERE provider_id = ?1 AND (?2 IS NULL OR id = ?2) ORDER BY id, version";
        self.rows(sql, params![provider, id], |row| {
            Ok(EventRow {
                id: row.get(0)?,
                version: row.get(1)?,
                message: row.get(2)?,
                template: row.get(3)?,
                channel: row.get(4)?,
                level: row.get(5)?,
                opcode: row.get(6)?,
                task: row.get(7)?,
                keywords: row.get::<_, i64>(8)?.cast_unsigned(),
            })
        })
    }

    /// Fields of a template.
    pub(crate) fn fields(&self, template: i64) -> Result<Vec<FieldRow>, Error> {
        let sql = "SELECT name, in_type, out_type, map_id FROM field WHERE template_id = ? ORDER BY position";
        self.rows(sql, [template], |row| {
            Ok((row.get(0)?, InType(row.get(1)?), OutType(row.get(2)?), row.get(3)?))
        })
    }

    /// A map.
    pub(crate) fn map(&self, id: i64) -> Result<MapRow, Error> {
        let (name, bits): (Option<String>, bool) = self
            .db()
            .query_row("SELECT name, bits FROM map WHERE map_id = ?", [id], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .map_err(Error::database(&self.path))?;
        let values = self.rows(
            "SELECT value, message_id FROM map_value WHERE map_id = ? ORDER BY value",
            [id],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        Ok((name.unwrap_or_default(), bits, values))
    }

    /// Tasks, opcodes, keywords, levels and channels of a provider.
    pub(crate) fn named(&self, provider: i64) -> Result<Vec<NamedRow>, Error> {
        let sql =
            "SELECT kind, value, name, message_id FROM named WHERE provider_id = ? ORDER BY kind, value";
        self.rows(sql, [provider], |row| {
            Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned(), row.get(2)?, row.get(3)?))
        })
    }

    /// Whether a file or a translation of it was read.
    pub(crate) fn has_module(&self, module: &str) -> Result<bool, Error> {
        self.is_there("SELECT 1 FROM module WHERE name = ?", module)
    }

    /// Whether there are texts of a file.
    pub(crate) fn has_messages(&self, module: &str) -> Result<bool, Error> {
        self.is_there("SELECT 1 FROM module JOIN message USING (module_id) WHERE name = ? LIMIT 1", module)
    }

    fn is_there(&self, sql: &str, module: &str) -> Result<bool, Error> {
        self.db()
            .query_row(sql, [module], |_| Ok(()))
            .optional()
            .map(|row| row.is_some())
            .map_err(Error::database(&self.path))
    }

    /// The text of a message in the language that fits best, and that language.
    pub(crate) fn message(
        &self,
        module: &str,
        id: u32,
        languages: &[u16],
    ) -> Result<Option<(String, u16)>, Error> {
        let sql = "SELECT text, language FROM message WHERE module_id = (SELECT module_id FROM module WHERE name = ?)
            AND id = ?";
        let all = self.rows(sql, params![module, id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(all.into_iter().min_by_key(|(_, language)| (lang::rank(*language, languages), *language)))
    }

    /// All messages of a file, each in the language that fits best.
    pub(crate) fn messages(&self, module: &str, languages: &[u16]) -> Result<Vec<(u32, String)>, Error> {
        let sql = "SELECT id, text, language FROM message WHERE module_id = (SELECT module_id FROM module WHERE name = ?)
            ORDER BY id";
        let all = self.rows(sql, [module], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, u16>(2)?)))?;
        let mut best: Vec<(u32, String, u16)> = Vec::new();
        for (id, text, language) in all {
            match best.last_mut() {
                Some(last) if last.0 == id => {
                    if lang::rank(language, languages) < lang::rank(last.2, languages) {
                        *last = (id, text, language);
                    }
                }
                _ => best.push((id, text, language)),
            }
        }
        Ok(best.into_iter().map(|(id, text, _)| (id, text)).collect())
    }

    /// Files that have a message, at most three.
    pub(crate) fn modules_with(&self, id: u32) -> Result<Vec<String>, Error> {
        let sql = "SELECT DISTINCT name FROM message JOIN module USING (module_id) WHERE id = ? LIMIT 3";
        self.rows(sql, [id], |row| row.get(0))
    }

    /// Files that were read: path, version, language, messages, providers, damage.
    pub(crate) fn files(&self) -> Result<Vec<FileInfo>, Error> {
        let sql = "SELECT path, version, language, messages, providers, damage FROM file ORDER BY path";
        self.rows(sql, [], |row| {
            Ok(FileInfo {
                path: row.get(0)?,
                version: row.get(1)?,
                language: row.get(2)?,
                messages: row.get::<_, i64>(3)?.cast_unsigned(),
                providers: row.get::<_, i64>(4)?.cast_unsigned(),
                damage: row.get(5)?,
            })
        })
    }

    /// Languages and how many messages each has.
    pub(crate) fn languages(&self) -> Result<Vec<(u16, u64)>, Error> {
        let sql = "SELECT language, count(*) FROM message GROUP BY language ORDER BY 2 DESC";
        self.rows(sql, [], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned())))
    }

    /// Notes about the database.
    pub(crate) fn meta(&self) -> Result<Vec<(String, String)>, Error> {
        self.rows("SELECT key, value FROM meta ORDER BY key", [], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    /// What it holds.
    pub(crate) fn counts(&self) -> Result<Counts, Error> {
        let sql =
            "SELECT (SELECT count(*) FROM file), (SELECT count(*) FROM provider WHERE kind = 'manifest'),
            (SELECT count(*) FROM provider WHERE kind = 'classic'), (SELECT count(*) FROM event),
            (SELECT count(*) FROM message)";
        self.db()
            .query_row(sql, [], |row| {
                let n = |at: usize| row.get::<_, i64>(at).map(i64::cast_unsigned);
                Ok(Counts {
                    files: n(0)?,
                    manifest_providers: n(1)?,
                    classic_providers: n(2)?,
                    events: n(3)?,
                    messages: n(4)?,
                })
            })
            .map_err(Error::database(&self.path))
    }
}
