//! All tables in one SQLite file, for those who want one.
//!
//! The file is written, not queried: no index, one transaction, no journal, under a temporary name until it is whole.
//! Integers are the signed numbers that all formats have, true and false are 1 and 0. Two more tables say what
//! columns mean: `etwhy_table` and `etwhy_column`.

use std::path::{Path, PathBuf};

use etwhy_scratch::Scratch;
use etwhy_table::{ColumnType, Table, Value};
use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, Statement, ToSql};

use crate::{ExportError, Result};

/// `PRAGMA application_id` of files of ours: `etwy`.
const APPLICATION_ID: i32 = 0x6574_7779;

/// Pages that may stay in memory while writing, as `PRAGMA cache_size` has it: negative for KiB.
const CACHE_KIB: i32 = -65_536;

/// The file's name until it is whole.
const WHOLE: &str = "whole";

/// Writes tables into a file that takes its name when it is whole.
pub struct Writer {
    file: PathBuf,
    connection: Connection,
    /// Goes after the connection, which holds a file in it open.
    scratch: Scratch,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "sqlite::Writer({})", self.file.display())
    }
}

/// A view: a question that keeps its name.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it is, in a line.
    pub title: &'a str,
    /// The manual page.
    pub doc: &'a str,
    /// Columns with their meaning.
    pub columns: &'a [(String, String)],
    /// The query.
    pub sql: &'a str,
}

struct Cell<'a>(Value<'a>);

impl ToSql for Cell<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        use rusqlite::types::{Null, ValueRef};
        Ok(match self.0 {
            Value::Null => ToSqlOutput::from(Null),
            Value::I64(n) => ToSqlOutput::from(n),
            Value::F64(n) => ToSqlOutput::from(n),
            Value::Bool(b) => ToSqlOutput::from(i64::from(b)),
            Value::Text(t) => ToSqlOutput::Borrowed(ValueRef::Text(t.as_bytes())),
        })
    }
}

impl Writer {
    /// A new file. A database of ours that is there already stays until the new one is whole; anything else is only
    /// replaced by `force`.
    ///
    /// # Errors
    /// If something else is there, or the folder cannot be written.
    pub fn new(file: &Path, force: bool) -> Result<Writer> {
        if file.exists() && !force && !is_ours(file) {
            let why = "is there already, and `etwhy extract` did not write it or it was changed since; name another \
                       file, or --force";
            return Err(ExportError::Occupied { place: file.to_path_buf(), why: why.to_owned() });
        }
        let failed = |source| ExportError::File { file: file.to_path_buf(), source };
        let scratch = Scratch::beside(file).map_err(failed)?;
        let connection = Connection::open(crate::device::for_sqlite(&scratch.path().join(WHOLE)))?;
        // Nobody else sees the file, and what was not finished is thrown away.
        connection.execute_batch(&format!(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; \
             PRAGMA cache_size = {CACHE_KIB}; BEGIN; PRAGMA application_id = {APPLICATION_ID}; \
             CREATE TABLE etwhy_table (name TEXT NOT NULL, title TEXT NOT NULL, version INTEGER, \
             evidence TEXT NOT NULL, sorted_by TEXT, rows INTEGER, doc TEXT NOT NULL); \
             CREATE TABLE etwhy_column (table_name TEXT NOT NULL, name TEXT NOT NULL, type TEXT, unit TEXT, \
             role TEXT, meaning TEXT NOT NULL);"
        ))?;
        Ok(Writer { file: file.to_path_buf(), connection, scratch })
    }

    /// Writes a table.
    ///
    /// # Errors
    /// Those of SQLite: a full disk.
    pub fn table(&mut self, table: &Table) -> Result<()> {
        let spec = table.spec();
        let columns: Vec<String> = spec
            .columns
            .iter()
            .map(|c| {
                let null = if c.nullable { "" } else { " NOT NULL" };
                // Not a number is no number, and SQLite has none.
                let null = if c.ty == ColumnType::F64 { "" } else { null };
                format!("{} {}{null}", quoted(&c.name), sql_type(c.ty))
            })
            .collect();
        let name = quoted(&spec.name);
        self.connection.execute_batch(&format!("CREATE TABLE {name} ({})", columns.join(", ")))?;
        let places = vec!["?"; columns.len()].join(", ");
        let mut insert = self.connection.prepare(&format!("INSERT INTO {name} VALUES ({places})"))?;
        for (number, batch) in table.batches().iter().enumerate() {
            let views: Vec<_> = (0..spec.columns.len()).map(|column| table.view(number, column)).collect();
            for row in 0..batch.num_rows() {
                for (at, view) in views.iter().enumerate() {
                    insert.raw_bind_parameter(at + 1, Cell(view.value(row)))?;
                }
                insert.raw_execute()?;
            }
        }
        drop(insert);
        let texts = [spec.name.as_ref(), spec.title.as_ref(), &spec.evidence.text(), &spec.manual()];
        self.connection.execute(
            "INSERT INTO etwhy_table (name, title, evidence, doc, version, sorted_by, rows) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            rusqlite::params![
                texts[0],
                texts[1],
                texts[2],
                texts[3],
                spec.version,
                spec.sorted_by.as_deref(),
                table.rows() as i64
            ],
        )?;
        let mut insert: Statement<'_> =
            self.connection.prepare("INSERT INTO etwhy_column VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
        for c in spec.columns.iter() {
            insert.execute([&spec.name, &c.name, sql_type(c.ty), c.unit.name(), c.role.name(), &c.doc])?;
        }
        Ok(())
    }

    /// Adds a view over tables that were written.
    ///
    /// # Errors
    /// If SQLite does not understand it.
    pub fn view(&mut self, view: &View<'_>) -> Result<()> {
        let sql = view.sql.trim_end().trim_end_matches(';');
        self.connection.execute_batch(&format!("CREATE VIEW {} AS {sql}", quoted(view.name)))?;
        self.connection.execute(
            "INSERT INTO etwhy_table (name, title, evidence, doc) VALUES (?1, ?2, 'view', ?3)",
            [view.name, view.title, view.doc],
        )?;
        let mut insert = self
            .connection
            .prepare("INSERT INTO etwhy_column (table_name, name, meaning) VALUES (?1, ?2, ?3)")?;
        for (column, meaning) in view.columns {
            insert.execute([view.name, column, meaning])?;
        }
        Ok(())
    }

    /// Ends the transaction and gives the file its name; its size in bytes.
    ///
    /// # Errors
    /// A full disk, or a name that cannot be taken.
    pub fn finish(self) -> Result<u64> {
        self.connection.execute_batch("COMMIT")?;
        self.connection.close().map_err(|(_, error)| error)?;
        let failed = |source| ExportError::File { file: self.file.clone(), source };
        let whole = self.scratch.path().join(WHOLE);
        let bytes = std::fs::metadata(&whole).map_err(failed)?.len();
        std::fs::rename(&whole, &self.file).map_err(failed)?;
        Ok(bytes)
    }
}

fn sql_type(ty: ColumnType) -> &'static str {
    match ty {
        ColumnType::I64 | ColumnType::I32 | ColumnType::Bool => "INTEGER",
        ColumnType::F64 => "REAL",
        ColumnType::Text | ColumnType::LongText => "TEXT",
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// True for a database that this module wrote and nobody changed since: its header says so (SQLite's "Database File
/// Format": application id at offset 68; at 24 the number of transactions that changed the file, of which this module
/// needs one), so nothing needs to be opened.
fn is_ours(file: &Path) -> bool {
    use std::io::Read;
    let mut head = Vec::new();
    let Ok(file) = std::fs::File::open(file) else { return false };
    if file.take(72).read_to_end(&mut head).is_err() {
        return false;
    }
    head.starts_with(b"SQLite format 3\0")
        && head.get(24..28) == Some(&1u32.to_be_bytes()[..])
        && head.get(68..72) == Some(&APPLICATION_ID.to_be_bytes()[..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_table::sample;

    #[test]
    fn cells_and_meanings_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.sqlite");
        let table = sample();
        for _ in 0..2 {
            let mut writer = Writer::new(&file, false).unwrap();
            writer.table(&table).unwrap();
            let columns = [("wait_ns".to_owned(), "How long.".to_owned())];
            let sql = "-- Waits.\nSELECT wait_ns FROM sample;\n";
            writer
                .view(&View { name: "waits", title: "Waits", doc: "All.", columns: &columns, sql })
                .unwrap();
            writer.finish().unwrap();
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file stays");
        let db = Connection::open(&file).unwrap();
        let row: (i64, i64, Option<String>, i64, f64, i64, String) = db
            .query_row("SELECT ts_ns, wait_ns, process, address, share, in_dpc, path FROM sample", [], |r| {
                Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?, r.get(4)?, r.get(5)?, r.get(6)?))
            })
            .unwrap();
        let address = 0xffff_f800_0000_0000u64 as i64;
        assert_eq!(
            row,
            (1_500_000_000, 1_500_000, Some("cmd.exe".into()), address, 12.5, 1, "=a,\"b\"".into())
        );
        let nulls: i64 = db
            .query_row("SELECT count(*) FROM sample WHERE wait_ns IS NULL AND process IS NULL", [], |r| {
                r.get(0)
            })
            .unwrap();
        assert_eq!(nulls, 1);
        let said: (String, String, String, String) = db
            .query_row(
                "SELECT type, unit, role, meaning FROM etwhy_column WHERE table_name = 'sample' AND \
                 name = 'wait_ns'",
                [],
                |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?)),
            )
            .unwrap();
        assert_eq!(said, ("INTEGER".into(), "ns".into(), "duration".into(), "Wait.".into()));
        let rows: i64 =
            db.query_row("SELECT rows FROM etwhy_table WHERE name = 'sample'", [], |r| r.get(0)).unwrap();
        assert_eq!(rows, 2);
        let sum: i64 = db.query_row("SELECT sum(wait_ns) FROM waits", [], |r| r.get(0)).unwrap();
        assert_eq!(sum, 1_500_000);
    }

    #[test]
    fn files_of_others_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("notes.txt");
        std::fs::write(&file, "mine").unwrap();
        assert!(matches!(Writer::new(&file, false), Err(ExportError::Occupied { .. })));
        // Even by force it stays until the new one is whole.
        drop(Writer::new(&file, true).unwrap());
        assert_eq!(std::fs::read(&file).unwrap(), b"mine");
        Writer::new(&file, true).unwrap().finish().unwrap();
        assert!(is_ours(&file));
        // And what somebody added to a file of ours.
        Connection::open(&file).unwrap().execute_batch("CREATE TABLE mine (a)").unwrap();
        assert!(matches!(Writer::new(&file, false), Err(ExportError::Occupied { .. })));
    }
}
