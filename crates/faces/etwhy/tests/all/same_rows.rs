//! Every finding, and every view that it or its tables lead to, says the same in SQLite, in DuckDB and in Spark over the rows of the
//! findings' own tests: rows in which it fires, and rows in which it must not.
//!
//! `ETWHY_PYTHON` names an interpreter that has DuckDB (`scripts/test` makes one), `scripts/test-spark` makes one with PySpark.

use crate::{Json as _, Str as _};
use etwhy_rules::check::database;
use etwhy_rules::{Rule, builtin_with_tests};
use etwhy_sql::{Engine, views, words};
use etwhy_table::{ColumnType, Database, TableSpec, Value as Field};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

fn specs() -> Vec<&'static TableSpec> {
    let traced = etwhy_trace::catalog::ALL.iter().flat_map(|a| a.tables.iter().copied());
    let derived = etwhy_analysis::derived::ALL.iter().flat_map(|d| d.tables.iter().copied());
    let logs =
        etwhy_evtx::tables::ALL.iter().chain(etwhy_counters::tables::ALL).chain(etwhy_audit::table::ALL);
    traced.chain(derived).chain(logs.copied()).collect()
}

/// A test of a finding: what another database is asked, and what SQLite says.
struct Case {
    asked: Value,
    names: Vec<String>,
    ours: Vec<Vec<String>>,
}

fn value(cell: Field<'_>) -> Value {
    match cell {
        Field::Null => Value::Null,
        Field::I64(n) => n.into(),
        Field::F64(n) => n.into(),
        Field::Bool(b) => i64::from(b).into(),
        Field::Text(text) => text.into(),
    }
}

/// The table as JSON; types as an extract has them.
fn table(db: &Database, name: &str) -> Value {
    let table = db.get(name).unwrap();
    let ty = |ty: ColumnType| match ty {
        ColumnType::I64 => "BIGINT",
        ColumnType::I32 => "INTEGER",
        ColumnType::F64 => "DOUBLE",
        ColumnType::Bool => "BOOLEAN",
        ColumnType::Text | ColumnType::LongText => "VARCHAR",
    };
    let columns: Vec<Value> = table.spec().columns.iter().map(|c| json!([c.name, ty(c.ty)])).collect();
    let rows: Vec<Vec<Value>> = (0..table.rows() as u32)
        .map(|row| (0..table.spec().columns.len()).map(|at| value(table.cell(row, at))).collect())
        .collect();
    json!({ "columns": columns, "rows": rows })
}

/// Rows without their order, numbers to nine digits.
fn comparable(rows: impl Iterator<Item = Vec<Value>>) -> Vec<String> {
    let cell = |value: Value| match value.as_f64() {
        Some(n) => format!("{:.8e}", if n == 0.0 { 0.0 } else { n }),
        None => value.to_string(),
    };
    let mut rows: Vec<String> =
        rows.map(|row| row.into_iter().map(cell).collect::<Vec<_>>().join(" | ")).collect();
    rows.sort();
    rows
}

fn ask(engine: &Engine, sql: &str) -> Vec<String> {
    let table = engine.query("query", sql).unwrap_or_else(|error| panic!("{error}: {sql}"));
    comparable(
        (0..table.rows() as u32)
            .map(|row| (0..table.spec().columns.len()).map(|at| value(table.cell(row, at))).collect()),
    )
}

/// Names of tables and views that a query reads, with those of the views.
fn read<'a>(
    sql: &'a str,
    views: &'a [views::View],
    tables: &mut BTreeSet<String>,
    used: &mut BTreeSet<String>,
) {
    for word in words(sql) {
        let word = word.to_ascii_lowercase();
        if let Some(view) = views.iter().find(|view| view.name == word) {
            if used.insert(word) {
                read(view.sql, views, tables, used);
            }
        } else {
            tables.insert(word);
        }
    }
}

/// How many views stand below a query, one on the other.
pub fn depth(sql: &str, views: &[views::View]) -> usize {
    let below = words(sql).into_iter().filter_map(|word| views.iter().find(|view| view.name == word));
    below.map(|view| 1 + depth(view.sql, views)).max().unwrap_or(0)
}

/// All tests of a finding. `asked` has the views that were asked over rows already.
fn cases(rule: &Rule, specs: &[&TableSpec], asked: &mut BTreeSet<String>) -> Vec<Case> {
    let views: Vec<views::View> = views::all().collect();
    let mut cases = Vec::new();
    for test in &rule.tests {
        let db = database(rule, test, specs).unwrap();
        let engine = Engine::new(&db).unwrap();
        let mut queries = vec![(rule.id.clone(), rule.query())];
        queries.extend(rule.cannot_tell.iter().map(|sql| (rule.id.clone(), rule.with_thresholds(sql))));
        for view in &views {
            let sql = format!("SELECT * FROM {}", view.name);
            if engine.query(view.name, &sql).is_ok_and(|rows| rows.rows() > 0) {
                asked.insert(view.name.to_owned());
                queries.push((view.name.to_owned(), sql));
            }
        }
        let (mut tables, mut used) = (BTreeSet::new(), BTreeSet::new());
        queries.iter().for_each(|(_, sql)| read(sql, &views, &mut tables, &mut used));
        let rows: serde_json::Map<String, Value> = tables
            .iter()
            .filter(|name| db.get(name).is_some())
            .map(|name| (name.clone(), table(&db, name)))
            .collect();
        // Views that stand on others come behind them.
        let mut used: Vec<&views::View> = views.iter().filter(|view| used.contains(view.name)).collect();
        used.sort_by_key(|view| depth(view.sql, &views));
        let definitions: Vec<Value> = used.iter().map(|view| json!([view.name, view.sql])).collect();
        let texts: Vec<&str> = queries.iter().map(|(_, sql)| sql.as_str()).collect();
        cases.push(Case {
            asked: json!({ "name": format!("{}: {}", rule.id, test.name), "tables": rows, "views": definitions, "queries": texts }),
            ours: queries.iter().map(|(_, sql)| ask(&engine, sql)).collect(),
            names: queries.into_iter().map(|(name, _)| name).collect(),
        });
    }
    cases
}

/// Asks the other database all cases; how many answers had rows, and what differed.
fn compare(python: &OsStr, database: &str) {
    let specs = specs();
    let mut viewed = BTreeSet::new();
    let mut fired = BTreeSet::new();
    let rules = builtin_with_tests().unwrap();
    let all: Vec<Case> = rules.iter().flat_map(|rule| cases(rule, &specs, &mut viewed)).collect();
    let script = etwhy_testkit::root().join("tests/python/query_rows.py");
    let mut child = Command::new(python)
        .args([script.str(), database])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let lines: Vec<String> = all.iter().map(|case| case.asked.to_string()).collect();
    let writer = std::thread::spawn(move || lines.iter().for_each(|line| writeln!(input, "{line}").unwrap()));
    let answers: Vec<Value> = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
        .collect();
    writer.join().unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(answers.len(), all.len());
    let mut faults = Vec::new();
    for (case, said) in all.iter().zip(&answers) {
        let name = case.asked["name"].str();
        assert_eq!(said["name"], name);
        for ((query, ours), theirs) in case.names.iter().zip(&case.ours).zip(said["answers"].list()) {
            if !ours.is_empty() {
                fired.insert(query.clone());
            }
            let rows = theirs["rows"].as_array();
            let rows = rows.map(|rows| comparable(rows.iter().map(|row| row.list().clone())));
            if rows.as_ref() != Some(ours) {
                let theirs = rows.map_or_else(|| theirs["error"].to_string(), |rows| format!("{rows:?}"));
                faults.push(format!("{name}: {query}\n  here  {ours:?}\n  there {theirs}"));
            }
        }
    }
    assert!(faults.is_empty(), "{database}:\n{}", faults.join("\n"));
    let silent: Vec<&str> = rules.iter().map(|r| r.id.as_str()).filter(|id| !fired.contains(*id)).collect();
    assert_eq!(silent, Vec::<&str>::new(), "no test in which they are found");
    let unseen: Vec<&str> = views::all().map(|v| v.name).filter(|name| !viewed.contains(*name)).collect();
    println!("{} cases are the same in {database}; views without rows: {unseen:?}", all.len());
}

#[test]
fn findings_say_the_same_in_duckdb() {
    let Some(python) = etwhy_testkit::python() else { return };
    compare(&python, "duckdb");
}

/// Run by `scripts/test-spark`: PySpark is 490 MB, and Spark takes minutes.
#[test]
#[ignore = "needs PySpark: scripts/test-spark"]
fn findings_say_the_same_in_spark() {
    compare(
        &std::env::var_os("ETWHY_SPARK_PYTHON").expect("ETWHY_SPARK_PYTHON names a Python with PySpark"),
        "spark",
    );
}
