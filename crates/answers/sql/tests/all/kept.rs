//! Views that are asked once and are tables from then on.

use etwhy_sql::{Engine, Limits};
use etwhy_table::{Database, Memory, Strings, Sym, TableBuilder, define_table};

define_table! {
    /// Processes.
    pub table PROCESS: ProcessRow = "process" {
        version: 1,
        /// Which.
        upid: i64 [None, Id],
        /// Its number.
        pid: i64 [None, Id],
        /// Who started it.
        parent_upid: Option<i64> [None, Id],
        /// Its file's name.
        name: Sym [None, Name],
        /// Services in it.
        services: Option<Sym> [None, Name],
        /// From.
        start_ns: Option<i64> [Ns, Time],
        /// Until.
        end_ns: Option<i64> [Ns, Time],
    }
}

fn database() -> Database {
    let mut texts = Strings::new();
    let names: Vec<Sym> =
        ["explorer.exe", "browser.exe", "browser.exe", "editor.exe"].map(|n| texts.intern(n)).into();
    let mut rows = TableBuilder::new(&Memory::default());
    for (upid, name) in (1..).zip(names) {
        let parent_upid = Some(if upid == 3 { 2 } else { 1 }).filter(|_| upid > 1);
        rows.push(ProcessRow {
            upid,
            pid: 100 * upid,
            parent_upid,
            name,
            services: None,
            start_ns: None,
            end_ns: None,
        });
    }
    let mut db = Database::new();
    db.insert(rows.finish(&texts.freeze().unwrap()).unwrap());
    db
}

#[test]
fn views_and_what_they_name_become_tables_with_the_same_rows() {
    let engine = Engine::new(&database()).unwrap();
    let sql = "SELECT a.upid AS upid, a.unit AS unit, b.name AS name, b.name_upid AS name_upid FROM process_or_program a \
               JOIN process_or_program b ON b.upid = a.upid AND b.alone = a.alone ORDER BY a.upid, a.unit";
    let lines = |sql: &str| engine.explain(sql).unwrap().lines().count();
    let rows = || {
        let table = engine.query("q", sql).unwrap();
        let cell = |row, name| format!("{:?}", table.cell(row, table.spec().column_index(name).unwrap()));
        (0..table.rows() as u32)
            .map(|row| ["upid", "unit", "name", "name_upid"].map(|name| cell(row, name)))
            .collect::<Vec<_>>()
    };
    let (before, steps) = (rows(), lines(sql));
    engine.keep_views(sql, &Limits::FINDING).unwrap();
    assert_eq!(rows(), before);
    assert!(
        before.len() > 4 && steps > 20 && lines(sql) < 5,
        "{} rows, {steps} steps, {}",
        before.len(),
        lines(sql)
    );
    // What that view names was kept with it; asking again changes nothing.
    assert_eq!(lines("SELECT * FROM process_family"), 1);
    engine.keep_views(sql, &Limits::FINDING).unwrap();
    assert_eq!(rows(), before);
}

#[test]
fn what_views_become_can_be_read_and_nothing_else() {
    let engine = Engine::new(&database()).unwrap();
    engine.keep_views("SELECT 1 FROM process_or_program", &Limits::FINDING).unwrap();
    for sql in ["DROP VIEW cpu_by_process", "DROP TABLE process_or_program", "DELETE FROM process_or_program"]
    {
        assert!(engine.query("q", sql).is_err(), "{sql}");
    }
    // A view whose tables are not there stays a view, and says so.
    assert!(engine.keep_views("SELECT 1 FROM disk_rival", &Limits::FINDING).is_err());
    assert!(engine.query("q", "SELECT * FROM disk_rival").is_err());
    assert!(engine.keep_views("SELECT 1 FROM nothing, sqlite_master", &Limits::FINDING).is_ok());
}
