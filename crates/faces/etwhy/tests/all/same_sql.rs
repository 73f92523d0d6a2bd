//! The same SQL says the same over the trace, over its extract, and in DuckDB: every view and every finding.
//!
//! `ETWHY_PYTHON` names an interpreter that has DuckDB (`scripts/test` makes one).

use crate::same_rows::depth;
use crate::{ETWHY, Json as _, Str as _};
use etwhy_testkit::script;
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

/// Stories whose findings read most tables.
const STORIES: [&str; 4] = ["event_log", "dpc_flood", "syscall_hook", "directory_watcher"];

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

fn duckdb(folder: &str, queries: &Value) -> Option<Vec<Value>> {
    let mut child =
        script("query_folder.py")?.arg(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(queries.to_string().as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success());
    let lines = String::from_utf8(out.stdout).unwrap();
    Some(lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[test]
fn trace_extract_and_duckdb_agree() {
    let folder = tempfile::tempdir().unwrap();
    let mut compared = 0;
    for story in STORIES {
        let extract = folder.path().join(story).str().to_owned();
        let trace = ETWHY.story(story, "0.01", folder.path()).str().to_owned();
        ETWHY.run(&["extract", &trace, "-q", "-o", &extract]);
        let why = |of: &str| -> Value { ETWHY.json(&["why", of, "-q", "--json"]) };
        let (from_trace, from_extract) = (why(&trace), why(&extract));
        assert_eq!(from_trace["findings"], from_extract["findings"], "{story}");
        let mut views: Vec<_> = etwhy_sql::views::all().collect();
        let all = views.clone();
        // DuckDB makes a view only over what is there.
        views.sort_by_key(|view| depth(view.sql, &all));
        let mut queries: Vec<Value> =
            views.iter().map(|view| json!({ "name": view.name, "sql": view.sql, "view": true })).collect();
        for finding in from_trace["findings"].list() {
            queries.push(json!({ "name": finding["id"], "sql": finding["sql"], "view": false }));
        }
        let Some(theirs) = duckdb(&extract, &json!(queries)) else { return };
        for (query, said) in queries.iter().zip(theirs) {
            let name = query["name"].str();
            assert_eq!(said["error"], Value::Null, "{story}: {name}");
            let sql = match query["view"].as_bool() {
                Some(true) => format!("SELECT * FROM {name}"),
                _ => query["sql"].str().to_owned(),
            };
            let ours: Vec<serde_json::Map<String, Value>> = ETWHY.sql(Path::new(&extract), &sql);
            let ours = ours.into_iter().map(|row| row.into_iter().map(|(_, value)| value).collect());
            let theirs = said["rows"].list().iter().map(|row| row.list().clone());
            let (ours, theirs) = (comparable(ours), comparable(theirs));
            assert_eq!(ours, theirs, "{story}: {name}");
            compared += ours.len();
        }
    }
    assert!(compared > 300, "{compared} rows");
    println!("{compared} rows of {} stories are the same in DuckDB", STORIES.len());
}
