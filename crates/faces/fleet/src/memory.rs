//! What a store knows of files, so that no file is looked at twice.

use crate::contents::Contents;
use crate::error::Result;
use crate::inbox::Found;
use crate::known::Known;
use crate::store::Store;
use crate::tables::{InputRow, RunRow};
use etwhy_table::Database;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

/// What a store knows of files, from its table `input`.
#[derive(Debug, Default)]
pub struct Memory {
    files: HashMap<(String, i64, i64), (String, Option<Known>)>,
    done: HashSet<(String, String)>,
    /// What contents the files have.
    pub contents: Contents,
    /// Readings that have rows in the store, each with the hash of its trace where that is known.
    pub readings: HashMap<String, Option<String>>,
}

impl Memory {
    /// Everything that the ledger knows of files. With `retry`, traces that could not be read are unknown.
    ///
    /// # Errors
    /// If a file of the store is damaged.
    pub fn of(store: &Store, retry: bool) -> Result<Memory> {
        let mut database = Database::new();
        store.all::<RunRow>(&mut database)?;
        store.all::<InputRow>(&mut database)?;
        let bad =
            |row: &etwhy_table::RowOf<'_, '_, RunRow>| !matches!(row.outcome(), "read" | "in_part" | "copy");
        let runs = database.read_or_empty::<RunRow>();
        let again: HashSet<&str> = match retry {
            true => runs.iter().filter(bad).map(|row| row.extract_id()).collect(),
            false => HashSet::new(),
        };
        let mut memory = Memory::default();
        let has_rows = runs.iter().filter(|row| matches!(row.outcome(), "read" | "in_part"));
        for row in has_rows {
            let sha256 = row.sha256().map(str::to_owned);
            // A file outside of an archive is compared with what was inside.
            if sha256.is_some() {
                let bytes = u64::try_from(row.size_bytes()).unwrap_or(0);
                let found = Found { path: PathBuf::from(row.path()), bytes, modified_ns: 0 };
                memory.contents.learn(&found, row.trace_id(), sha256.as_deref());
            }
            memory.readings.insert(row.extract_id().to_owned(), sha256);
        }
        for row in &database.read_or_empty::<InputRow>() {
            if again.contains(row.extract_id()) {
                continue;
            }
            let found = Found {
                path: PathBuf::from(row.path()),
                bytes: u64::try_from(row.size_bytes()).unwrap_or(0),
                modified_ns: row.modified_unix_ns(),
            };
            let identity = row.identity().and_then(|text| serde_json::from_str(text).ok());
            memory.learn(&found, row.content_id(), row.sha256(), identity, row.settings_id());
        }
        Ok(memory)
    }

    /// Adds a row: a file with this content was read with these settings.
    pub fn learn(
        &mut self,
        found: &Found,
        content_id: &str,
        sha256: Option<&str>,
        identity: Option<Known>,
        settings_id: &str,
    ) {
        self.contents.learn(found, content_id, sha256);
        self.files.insert(key(found), (content_id.to_owned(), identity));
        self.done.insert((content_id.to_owned(), settings_id.to_owned()));
    }

    /// Content and identity of a file that has not changed since.
    pub fn file(&self, found: &Found) -> Option<&(String, Option<Known>)> {
        self.files.get(&key(found))
    }

    /// True if this content was read with these settings.
    pub fn is_done(&self, content_id: &str, settings_id: &str) -> bool {
        self.done.contains(&(content_id.to_owned(), settings_id.to_owned()))
    }
}

fn key(found: &Found) -> (String, i64, i64) {
    let bytes = i64::try_from(found.bytes).unwrap_or(i64::MAX);
    (crate::inbox::text(&found.path), bytes, found.modified_ns)
}
