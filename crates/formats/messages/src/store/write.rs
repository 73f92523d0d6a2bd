//! Filling of a database.

use super::{APPLICATION_ID, Registration, SCHEMA_VERSION, module_name};
use crate::error::Error;
use crate::lang;
use crate::pe::Image;
use crate::wevt::{Named, Provider};
use rusqlite::{Connection, OptionalExtension as _, params};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Fills a database.
pub(crate) struct Writer {
    db: Connection,
    path: PathBuf,
    /// Languages that are kept; all if there are none.
    languages: Vec<u16>,
}

impl Writer {
    /// A new database: in a file, which must not be there yet, or in memory.
    pub(crate) fn new(path: Option<&Path>, languages: &[u16]) -> Result<Self, Error> {
        let name = path.unwrap_or(Path::new("database in memory")).to_owned();
        let wrap = || Error::database(&name);
        let db = match path {
            Some(path) => Connection::open(path),
            None => Connection::open_in_memory(),
        }
        .map_err(wrap())?;
        // Nobody needs half a database after a fall of the machine: it is made anew.
        db.execute_batch(&format!(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA application_id = {APPLICATION_ID};
             PRAGMA user_version = {SCHEMA_VERSION}; BEGIN;"
        ))
        .and_then(|()| db.execute_batch(include_str!("schema.sql")))
        .map_err(wrap())?;
        Ok(Self { db, path: name, languages: languages.to_vec() })
    }

    /// Notes something about the database as a whole.
    pub(crate) fn meta(&mut self, key: &str, value: &str) -> Result<(), Error> {
        self.db
            .execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", params![key, value])
            .map(drop)
            .map_err(Error::database(&self.path))
    }

    /// Adds what a file holds. What an earlier file of the same name has stays.
    pub(crate) fn file(&mut self, path: &str, image: &Image) -> Result<(), Error> {
        self.add(path, image).map_err(Error::database(&self.path))
    }

    fn add(&self, path: &str, image: &Image) -> rusqlite::Result<()> {
        let module = self.module(&module_name(path))?;
        let mut kept = 0usize;
        {
            let mut insert = self.db.prepare_cached("INSERT OR IGNORE INTO message VALUES (?, ?, ?, ?)")?;
            for message in &image.messages {
                if self.keeps(message.language) {
                    kept += insert.execute(params![module, message.id, message.language, message.text])?;
                }
            }
        }
        for provider in &image.manifest.providers {
            self.provider(module, provider)?;
        }
        let damage = (!image.damage.is_empty()).then(|| image.damage.join("\n"));
        self.db.prepare_cached("INSERT INTO file VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)")?.execute(params![
            module,
            path,
            image.version.as_ref().map(ToString::to_string),
            image.mui_language,
            kept as i64,
            image.manifest.providers.len() as i64,
            damage,
        ])?;
        Ok(())
    }

    /// Asked languages are kept with those of other countries, and what they fall back to.
    fn keeps(&self, language: u16) -> bool {
        self.languages.is_empty()
            || self.languages.iter().any(|asked| asked & 0x3ff == language & 0x3ff)
            || language & 0x3ff == 0
            || language == lang::EN_US
    }

    fn module(&self, name: &str) -> rusqlite::Result<i64> {
        self.db.prepare_cached("INSERT OR IGNORE INTO module VALUES (NULL, ?)")?.execute([name])?;
        self.db
            .prepare_cached("SELECT module_id FROM module WHERE name = ?")?
            .query_row([name], |row| row.get(0))
    }

    fn provider(&self, module: i64, provider: &Provider) -> rusqlite::Result<()> {
        let guid = provider.guid.map(|g| g.braced());
        let known: Option<i64> = self
            .db
            .prepare_cached("SELECT provider_id FROM provider WHERE guid IS ? AND module_id = ?")?
            .query_row(params![guid, module], |row| row.get(0))
            .optional()?;
        if known.is_some() {
            return Ok(());
        }
        self.db
            .prepare_cached("INSERT INTO provider VALUES (NULL, ?, ?, NULL, 'manifest', ?, ?, 0)")?
            .execute(params![provider.name, guid, module, provider.message])?;
        let id = self.db.last_insert_rowid();
        for (kind, values) in [
            ("channel", &provider.channels),
            ("level", &provider.levels),
            ("task", &provider.tasks),
            ("opcode", &provider.opcodes),
            ("keyword", &provider.keywords),
        ] {
            self.named(id, kind, values)?;
        }
        let mut maps = HashMap::new();
        for map in &provider.maps {
            self.db
                .prepare_cached("INSERT INTO map VALUES (NULL, ?, ?, ?)")?
                .execute(params![id, map.name, map.bits])?;
            let map_id = self.db.last_insert_rowid();
            maps.insert(map.offset, map_id);
            let mut insert = self.db.prepare_cached("INSERT INTO map_value VALUES (?, ?, ?)")?;
            for (value, message) in &map.values {
                insert.execute(params![map_id, value, message])?;
            }
        }
        let mut templates = HashMap::new();
        for template in &provider.templates {
            self.db
                .prepare_cached("INSERT INTO template VALUES (NULL, ?, ?)")?
                .execute(params![id, template.guid.braced()])?;
            let template_id = self.db.last_insert_rowid();
            templates.insert(template.offset, template_id);
            let mut insert = self.db.prepare_cached("INSERT INTO field VALUES (?, ?, ?, ?, ?, ?)")?;
            for (position, field) in template.fields.iter().enumerate() {
                insert.execute(params![
                    template_id,
                    position as i64,
                    field.name,
                    field.in_type.0,
                    field.out_type.0,
                    maps.get(&field.map),
                ])?;
            }
        }
        let mut insert = self.db.prepare_cached("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")?;
        for event in &provider.events {
            insert.execute(params![
                id,
                event.id,
                event.version,
                event.channel,
                event.level,
                event.opcode,
                event.task,
                event.keywords.cast_signed(),
                event.message,
                templates.get(&event.template),
            ])?;
        }
        Ok(())
    }

    fn named(&self, provider: i64, kind: &str, values: &[Named]) -> rusqlite::Result<()> {
        let mut insert = self.db.prepare_cached("INSERT INTO named VALUES (?, ?, ?, ?, ?)")?;
        for value in values {
            insert.execute(params![provider, kind, value.value.cast_signed(), value.name, value.message])?;
        }
        Ok(())
    }

    /// Adds what the registry says; after all files, whose providers get their names and files.
    pub(crate) fn register(&mut self, registration: &Registration) -> Result<(), Error> {
        self.registration(registration).map_err(Error::database(&self.path))
    }

    fn registration(&self, r: &Registration) -> rusqlite::Result<()> {
        let guid = r.guid.map(|g| g.braced());
        let ids: Vec<i64> = match &r.log {
            None => {
                // The provider of the file that is named, or of any file.
                let resource = r.resource.first().map(|path| module_name(path));
                let mut of_file = self.db.prepare_cached(
                    "SELECT provider_id FROM provider LEFT JOIN module USING (module_id)
                     WHERE kind = 'manifest' AND guid = ?1 ORDER BY module.name IS NOT ?2",
                )?;
                of_file
                    .query_map(params![guid, resource], |row| row.get(0))?
                    .collect::<rusqlite::Result<_>>()?
            }
            Some(log) => self
                .db
                .prepare_cached(
                    "SELECT provider_id FROM provider WHERE kind = 'classic' AND name = ? AND log = ?",
                )?
                .query_map(params![r.name, log], |row| row.get(0))?
                .collect::<rusqlite::Result<_>>()?,
        };
        let ids = match ids.is_empty() {
            false => ids,
            true => {
                let kind = if r.log.is_some() { "classic" } else { "manifest" };
                self.db
                    .prepare_cached("INSERT INTO provider VALUES (NULL, ?, ?, ?, ?, NULL, NULL, 1)")?
                    .execute(params![r.name, guid, r.log, kind])?;
                vec![self.db.last_insert_rowid()]
            }
        };
        for id in ids {
            // What the registry says is what records name; the name in the file is often the same.
            self.db
                .prepare_cached("UPDATE provider SET registered = 1, name = coalesce(nullif(?, ''), name) WHERE provider_id = ?")?
                .execute(params![r.name, id])?;
            let mut insert =
                self.db.prepare_cached("INSERT OR IGNORE INTO provider_file VALUES (?, ?, ?, ?, ?)")?;
            for (role, paths) in [
                ("resource", &r.resource),
                ("message", &r.message),
                ("parameter", &r.parameter),
                ("category", &r.category),
            ] {
                for (position, path) in paths.iter().enumerate() {
                    insert.execute(params![id, role, position as i64, module_name(path), path])?;
                }
            }
        }
        Ok(())
    }

    /// Ends it; the connection is that of the filled database.
    pub(crate) fn finish(self) -> Result<Connection, Error> {
        self.db.execute_batch("COMMIT; ANALYZE;").map_err(Error::database(&self.path))?;
        Ok(self.db)
    }
}
