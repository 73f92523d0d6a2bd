//! The same SQL says the same over the trace, over its extract, and in DuckDB: every view and every finding.
//!
//! `ETWHY_PYTHON` names an interpreter that has DuckDB (`scripts/test` makes one).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Stories whose findings read most tables.
const STORIES: [&str; 4] = ["event_log", "dpc_flood", "syscall_hook", "directory_watcher"];

fn run(arguments: &[&str]) -> String {
    let out = Command::new(env!("CARGO_BIN_EXE_etwhy")).args(arguments).output().unwrap();
    assert!(out.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// Rows without their order, numbers to nine digits.
fn comparable(rows: impl Iterator<Item = Vec<Value>>) -> Vec<String> {
    let cell = |value: Value| match value.as_f64() {
        Some(n) => format!("{n:.8e}"),
        None => value.to_string(),
    };
    let mut rows: Vec<String> =
        rows.map(|row| row.into_iter().map(cell).collect::<Vec<_>>().join(" | ")).collect();
    rows.sort();
    rows
}

fn duckdb(python: &str, folder: &str, queries: &Value) -> Vec<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/python/query_folder.py");
    let mut child = Command::new(python)
        .arg(script)
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(queries.to_string().as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success());
    String::from_utf8(out.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn trace_extract_and_duckdb_agree() {
    let Ok(python) = std::env::var("ETWHY_PYTHON") else {
        assert_ne!(std::env::var("ETWHY_CORPUS_REQUIRED").as_deref(), Ok("1"), "ETWHY_PYTHON is not set");
        println!("skipped: ETWHY_PYTHON is not set");
        return;
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().unwrap();
    let mut compared = 0;
    for story in STORIES {
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (trace, extract) = (path(&format!("{story}.etl")), path(story));
        let scenario = root.join(format!("scenarios/{story}.toml"));
        run(&["synth", scenario.to_str().unwrap(), "-o", &trace, "--scale", "0.01"]);
        run(&["extract", &trace, "-q", "-o", &extract]);
        let why = |of: &str| -> Value { serde_json::from_str(&run(&["why", of, "-q", "--json"])).unwrap() };
        let (from_trace, from_extract) = (why(&trace), why(&extract));
        assert_eq!(from_trace["findings"], from_extract["findings"], "{story}");
        let mut queries: Vec<Value> = etwhy_query::sql::views::all()
            .map(|view| json!({ "name": view.name, "sql": view.sql, "view": true }))
            .collect();
        for finding in from_trace["findings"].as_array().unwrap() {
            queries.push(json!({ "name": finding["id"], "sql": finding["sql"], "view": false }));
        }
        for (query, said) in queries.iter().zip(duckdb(&python, &extract, &json!(queries))) {
            let name = query["name"].as_str().unwrap();
            assert_eq!(said["error"], Value::Null, "{story}: {name}");
            let sql = match query["view"].as_bool() {
                Some(true) => format!("SELECT * FROM {name}"),
                _ => query["sql"].as_str().unwrap().to_owned(),
            };
            let ours = run(&["sql", &extract, "-q", "-c", &sql, "--format", "jsonl"]);
            let ours = ours.lines().map(|line| {
                let row: serde_json::Map<String, Value> = serde_json::from_str(line).unwrap();
                row.into_iter().map(|(_, value)| value).collect()
            });
            let theirs = said["rows"].as_array().unwrap().iter().map(|row| row.as_array().unwrap().clone());
            let (ours, theirs) = (comparable(ours), comparable(theirs));
            assert_eq!(ours, theirs, "{story}: {name}");
            compared += ours.len();
        }
    }
    assert!(compared > 300, "{compared} rows");
    println!("{compared} rows of {} stories are the same in DuckDB", STORIES.len());
}
