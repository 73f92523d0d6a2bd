//! The store: a folder of batches, each a folder with one Parquet file per table.
//!
//! A batch is written under another name and renamed when it is whole, so that it is there with all of its rows, the ledger's among them, or
//! not at all. Nothing else says what was done.

use crate::batch::{self, BATCHES, Batch, Lock, MERGING, REPLACED, sync_folder};
use crate::contract::{self, FORMAT, StoreTable, VERSION, schema};
use crate::error::{FleetError, Result, damaged, io};
use crate::parquet_files::{self, Writer};
use crate::stamp::stamp;
use crate::tables::{KNOWLEDGE, KnowledgeRow};
use arrow_array::RecordBatch;
use etwhy_scratch::Scratch;
use etwhy_table::{ColumnView, Database, Memory, Row, Strings, Table, TableBuilder, TableError, TableLoader};
use std::collections::HashSet;
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

/// The contract.
pub const CONTRACT: &str = "contract.json";
/// What is known of drivers and programs.
const KNOWLEDGE_FILE: &str = "knowledge.parquet";
/// The questions to the store, as SQL.
const VIEWS: &str = "views";
/// Held by who writes.
const LOCK: &str = "lock";
/// A contract has some hundred kilobytes; what is larger is none.
const MAX_CONTRACT: u64 = 16 << 20;
/// Tables with one row for each trace. Two would count all that is joined with them twice, and thousands make joins without end.
const ONE_FOR_EACH: [&str; 2] = ["machine", "recording"];

/// A store that is open.
#[derive(Clone, Debug)]
pub struct Store {
    path: PathBuf,
}

impl Store {
    /// Opens a store.
    ///
    /// # Errors
    /// If it is none, or newer than this program.
    pub fn open(path: &Path) -> Result<Store> {
        let none = |why: String| FleetError::NoStore { place: path.to_path_buf(), why };
        check_own(path)?;
        let Some(contract) = contract_of(path)? else {
            return Err(none("is no store; `etwhy fleet run INBOX -o STORE` makes one".to_owned()));
        };
        if contract.get("format").and_then(serde_json::Value::as_str) != Some(FORMAT) {
            return Err(none(format!("its {CONTRACT} is that of something else")));
        }
        let version = contract.get("version").and_then(serde_json::Value::as_u64).unwrap_or(0);
        if version != u64::from(VERSION) {
            return Err(none(format!(
                "has version {version} of the contract, and this program knows {VERSION}; use the etwhy that wrote it, or another store"
            )));
        }
        Ok(Store { path: path.to_path_buf() })
    }

    /// Opens a store or makes one, and writes contract and knowledge of this program into it.
    ///
    /// # Errors
    /// If the folder holds something else, or cannot be written.
    pub fn create(path: &Path) -> Result<(Store, Lock)> {
        let batches = path.join(BATCHES);
        check_parent(path)?;
        check_own(path)?;
        if path.join(CONTRACT).exists() {
            Store::open(path)?;
        } else if !is_new(path)? {
            let why = "holds something else than a store; name another folder".to_owned();
            return Err(FleetError::NoStore { place: path.to_path_buf(), why });
        }
        fs::create_dir_all(&batches).map_err(io(&batches))?;
        let file = path.join(LOCK);
        let lock = File::options().create(true).truncate(false).write(true).open(&file).map_err(io(&file))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let why = "another `etwhy fleet run` writes to it".to_owned();
                return Err(FleetError::NoStore { place: path.to_path_buf(), why });
            }
            Err(TryLockError::Error(error)) => return Err(io(&file)(error)),
        }
        // Somebody else may have made it before this one got the lock.
        if path.join(CONTRACT).exists() {
            Store::open(path)?;
        }
        let store = Store { path: path.to_path_buf() };
        if !store.is_of_newer() {
            store.replace(CONTRACT, |file| fs::write(file, contract::text()).map_err(io(file)))?;
        }
        store.replace(KNOWLEDGE_FILE, |file| {
            let mut writer = Writer::new(file, schema(&KNOWLEDGE))?;
            let table = knowledge()?;
            let to = StoreTable { spec: KNOWLEDGE.clone(), source: "", columns: Vec::new(), own_ids: true };
            for rows in stamp(&to, &table, &crate::Ids::default())? {
                writer.write(&rows)?;
            }
            writer.finish()
        })?;
        let views = path.join(VIEWS);
        fs::create_dir_all(&views).map_err(io(&views))?;
        for (name, text) in crate::views::FILES {
            store.replace(&format!("{VIEWS}/{name}.sql"), |file| fs::write(file, text).map_err(io(file)))?;
        }
        let lock = Lock(lock);
        batch::finish(path, &store.files_of_tables()?, &lock)?;
        Ok((store, lock))
    }

    /// True if a newer program wrote to it: it has tables or columns that this one does not know.
    pub(crate) fn is_of_newer(&self) -> bool {
        let own = serde_json::from_str(&contract::text()).unwrap_or_default();
        let its = contract_of(&self.path).ok().flatten();
        its.is_some_and(|its| !contract::missing(&its, &own).is_empty())
    }

    /// Names of the files that a batch may have: a newer program's too, which the contract names.
    pub(crate) fn files_of_tables(&self) -> Result<HashSet<String>> {
        let contract = contract_of(&self.path)?.unwrap_or_default();
        let tables = contract.get("tables").and_then(serde_json::Value::as_array);
        let names = tables.into_iter().flatten().filter_map(|table| table.get("name")?.as_str());
        Ok(names.map(file_name).collect())
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn replace(&self, name: &str, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let target = self.path.join(name);
        let scratch = Scratch::beside(&target).map_err(io(&target))?;
        let new = scratch.path().join("new");
        write(&new).map_err(|error| error.in_place_of(&new, &target))?;
        fs::rename(&new, &target).map_err(io(&target))
    }

    /// The batches, the earliest first: each row is in one of them, also while others merge some.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn batches(&self) -> Result<Vec<Batch>> {
        batch::batches(&self.path)
    }

    /// Reads something of all batches. What was merged meanwhile is read from its new place.
    fn read<T>(&self, mut read: impl FnMut(&[Batch]) -> Result<T>) -> Result<T> {
        loop {
            let batches = self.batches()?;
            let done = read(&batches);
            if batches.iter().all(|batch| batch.folder.is_dir()) {
                return done;
            }
        }
    }

    /// Number of the next batch.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn next_batch(&self) -> Result<i64> {
        Ok(self.batches()?.last().map_or(1, |batch| batch.last.saturating_add(1)))
    }

    /// Adds a batch: the rows of `ledgers` (tables `run` and `input`), and those that lie in `parts`, folders with a file for each table.
    ///
    /// # Errors
    /// If something cannot be read or written; the store is then as before.
    pub fn commit(&self, number: i64, ledgers: &[Table], parts: &[PathBuf]) -> Result<()> {
        let target = self.path.join(BATCHES).join(batch::name_of(number, number));
        let scratch = Scratch::beside(&self.path.join(BATCHES)).map_err(io(&target))?;
        let new = scratch.path().join("batch");
        fs::create_dir(&new).map_err(io(&target))?;
        fill(&new, ledgers, parts).map_err(|error| error.in_place_of(&new, &target))?;
        fs::rename(&new, &target).map_err(io(&target))?;
        sync_folder(&self.path.join(BATCHES));
        Ok(())
    }

    /// Bytes of all files.
    ///
    /// # Errors
    /// If a folder cannot be read.
    pub fn bytes(&self) -> Result<u64> {
        let mut sum = 0u64;
        for Batch { folder, .. } in self.batches()? {
            for entry in fs::read_dir(&folder).map_err(io(&folder))? {
                let size = entry.and_then(|entry| entry.metadata()).map_or(0, |what| what.len());
                sum = sum.saturating_add(size);
            }
        }
        Ok(sum)
    }

    /// All rows of a table, also of readings that newer ones replace.
    ///
    /// # Errors
    /// If a file is damaged.
    pub fn all<R: Row>(&self, database: &mut Database) -> Result<()> {
        for table in self.load(&[&*R::spec().name], None)?.tables() {
            database.insert(table.clone());
        }
        Ok(())
    }

    /// Tables by name. `current` are the readings (trace and extract) whose rows are wanted; `run` and `input` have all.
    ///
    /// # Errors
    /// If a file is damaged, or there is no such table.
    pub fn load(&self, names: &[&str], current: Option<&HashSet<(String, String)>>) -> Result<Database> {
        self.read(|batches| {
            let mut strings = Strings::new();
            let mut loaders = Vec::new();
            for name in names {
                loaders.push(self.loader(batches, name, current, &mut strings)?);
            }
            let texts = strings.freeze().map_err(TableError::texts)?;
            let mut database = Database::new();
            for loader in loaders {
                database.insert(loader.finish(&texts)?);
            }
            Ok(database)
        })
    }

    fn loader(
        &self,
        batches: &[Batch],
        name: &str,
        current: Option<&HashSet<(String, String)>>,
        strings: &mut Strings,
    ) -> Result<TableLoader> {
        let Some(table) = contract::table(name) else {
            let why = format!("has no table `{name}`");
            return Err(FleetError::NoStore { place: self.path.clone(), why });
        };
        let mut loader = TableLoader::new(&table.spec, &Memory::default());
        let mut traces = HashSet::new();
        for Batch { folder, .. } in batches {
            let file = folder.join(file_name(name));
            for rows in parquet_files::read_if_there(&file, &table.spec)? {
                match current.filter(|_| !table.own_ids) {
                    None => loader.push(&rows, strings)?,
                    Some(current) => {
                        for part in of_current(&rows, current) {
                            if ONE_FOR_EACH.contains(&name) && !is_only_one(&part, &mut traces) {
                                return Err(damaged(&file)(&"a trace has several rows in it"));
                            }
                            loader.push(&part, strings)?;
                        }
                    }
                }
            }
        }
        Ok(loader)
    }

    /// Reads a part that a process left, to see that it is whole.
    ///
    /// # Errors
    /// If a file is damaged.
    pub fn check_part(part: &Path) -> Result<()> {
        for table in contract::tables().iter().filter(|table| !table.own_ids) {
            parquet_files::read_if_there(&part.join(file_name(&table.spec.name)), &table.spec)?;
        }
        Ok(())
    }
}

/// Refuses a new folder in one that is not there: its name was mistyped, as a rule, and whoever makes it finds the result elsewhere.
///
/// # Errors
/// If it is not there.
pub fn check_parent(path: &Path) -> Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty() && !parent.exists());
    parent.map_or(Ok(()), |parent| {
        let why = "there is no such folder to write to; make it, if its name is right".to_owned();
        Err(FleetError::NoStore { place: parent.to_path_buf(), why })
    })
}

/// Refuses what stands in for a part of the store: a link leads out of it, and a pipe or a device has no end.
fn check_own(path: &Path) -> Result<()> {
    let folders = [BATCHES, MERGING, REPLACED, VIEWS].map(|name| (name, true));
    let files = [CONTRACT, KNOWLEDGE_FILE, LOCK].map(|name| (name, false));
    for (name, is_folder) in folders.into_iter().chain(files) {
        let own = path.join(name);
        match own.symlink_metadata() {
            Ok(what) if (what.is_dir(), what.is_file()) == (is_folder, !is_folder) => {}
            Ok(_) => {
                let why = format!("is no {} of a store", if is_folder { "folder" } else { "file" });
                return Err(FleetError::NoStore { place: own, why });
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(io(&own)(error)),
        }
    }
    Ok(())
}

/// The contract that lies in a folder, if one does.
fn contract_of(path: &Path) -> Result<Option<serde_json::Value>> {
    let file = path.join(CONTRACT);
    let mut text = Vec::new();
    match File::open(&file).and_then(|open| open.take(MAX_CONTRACT).read_to_end(&mut text)) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io(&file)(error)),
    }
    let damaged = |error: serde_json::Error| {
        let why = format!("its {CONTRACT} is damaged: {error}");
        FleetError::NoStore { place: path.to_path_buf(), why }
    };
    serde_json::from_slice(&text).map(Some).map_err(damaged)
}

/// True for a folder that is not there, is empty, or has only what is there before the contract: no row yet, and nothing of anybody else.
fn is_new(path: &Path) -> Result<bool> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(io(path)(error)),
    };
    for entry in entries {
        let entry = entry.map_err(io(path))?;
        let name = entry.file_name();
        let is_of_store = match name.to_str() {
            Some(BATCHES) => fs::read_dir(entry.path()).is_ok_and(|mut batches| batches.next().is_none()),
            Some(LOCK) => entry.metadata().is_ok_and(|what| what.len() == 0),
            // The folder of a file that is being written.
            Some(name) => name.starts_with(".etwhy-") && name.ends_with(".tmp"),
            None => false,
        };
        if !is_of_store {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Stretches of rows whose trace and reading are current. Rows of a trace lie together.
fn of_current(rows: &RecordBatch, current: &HashSet<(String, String)>) -> Vec<RecordBatch> {
    let view = |name: &str| rows.column_by_name(name).map(ColumnView::new);
    let Some((traces, extracts)) = view("trace_id").zip(view("extract_id")) else { return Vec::new() };
    let id = |row: usize| traces.text(row).zip(extracts.text(row));
    let is_current = |row: usize| {
        id(row).is_some_and(|(trace, extract)| current.contains(&(trace.to_owned(), extract.to_owned())))
    };
    let (mut parts, mut from) = (Vec::new(), 0);
    while from < rows.num_rows() {
        let end = (from..rows.num_rows()).find(|&row| id(row) != id(from)).unwrap_or(rows.num_rows());
        if is_current(from) {
            parts.push(rows.slice(from, end.saturating_sub(from)));
        }
        from = end;
    }
    parts
}

/// True for one row, of a trace that had none before.
fn is_only_one(part: &RecordBatch, traces: &mut HashSet<String>) -> bool {
    let column = part.column_by_name("trace_id").map(ColumnView::new);
    let trace = column.as_ref().and_then(|ids| ids.text(0)).unwrap_or_default();
    part.num_rows() == 1 && traces.insert(trace.to_owned())
}

/// Writes the tables of a trace as a part, a folder with a file for each.
///
/// # Errors
/// If they cannot be written.
pub fn write_part(folder: &Path, tables: &[(&'static StoreTable, Vec<RecordBatch>)]) -> Result<()> {
    fs::create_dir_all(folder).map_err(io(folder))?;
    for (table, batches) in tables {
        let mut writer = Writer::passing(&folder.join(file_name(&table.spec.name)), schema(&table.spec))?;
        for rows in batches {
            writer.write(rows)?;
        }
        writer.finish()?;
    }
    Ok(())
}

pub(crate) fn file_name(table: &str) -> String {
    format!("{table}.parquet")
}

/// What this program knows of drivers and programs.
///
/// # Errors
/// Those of the table builder.
pub fn knowledge() -> Result<Table> {
    let mut strings = Strings::new();
    let mut rows = TableBuilder::<KnowledgeRow>::new(&Memory::default());
    let mut push = |kind: &str, name: &str, [vendor, product, category]: [&str; 3]| {
        let mut some = |text: &str| (!text.is_empty()).then(|| strings.intern(text));
        let (vendor, product, category) = (some(vendor), some(product), some(category));
        let (kind, name) = (strings.intern(kind), strings.intern(&name.to_lowercase()));
        rows.push(KnowledgeRow { kind, name, vendor, product, category });
    };
    for known in etwhy_knowledge::drivers() {
        // What the user adds takes the place of what ships.
        let known = etwhy_knowledge::driver(known.file).unwrap_or(known);
        push("driver", known.file, [known.vendor, known.product, known.category]);
    }
    for known in etwhy_knowledge::processes() {
        let known = etwhy_knowledge::process(known.process).unwrap_or(known);
        push("process", known.process, [known.vendor, known.product, known.category]);
    }
    Ok(rows.finish(&strings.freeze().map_err(TableError::texts)?)?)
}

/// A JSON file that a process left.
///
/// # Errors
/// If it is missing or damaged.
pub fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    let text = fs::read_to_string(path).map_err(io(path))?;
    serde_json::from_str(&text).map_err(|error| damaged(path)(&error))
}

/// Writes the files of a batch.
fn fill(folder: &Path, ledgers: &[Table], parts: &[PathBuf]) -> Result<()> {
    for table in contract::tables() {
        let name = file_name(&table.spec.name);
        let mut writer = None;
        let mut write = |rows: &RecordBatch| -> Result<()> {
            if rows.num_rows() == 0 {
                return Ok(());
            }
            let writer = match &mut writer {
                Some(writer) => writer,
                none => none.insert(Writer::new(&folder.join(&name), schema(&table.spec))?),
            };
            writer.write(rows)
        };
        for own in ledgers.iter().filter(|own| own.name() == table.spec.name) {
            for rows in stamp(table, own, &crate::Ids::default())? {
                write(&rows)?;
            }
        }
        for part in parts.iter().filter(|_| !table.own_ids) {
            for rows in parquet_files::read_if_there(&part.join(&name), &table.spec)? {
                write(&rows)?;
            }
        }
        if let Some(writer) = writer {
            writer.finish()?;
        }
    }
    Ok(())
}
