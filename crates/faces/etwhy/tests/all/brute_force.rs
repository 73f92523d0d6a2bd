//! Our tables against `tests/python/brute_force.py`, which recomputes them from the same files: another reader walks the
//! records (dissect.etl), payloads are taken apart by its own code, and everything is searched for, nothing streamed.
//!
//! `ETWHY_PYTHON` names an interpreter that has dissect.etl (`scripts/test` makes one).

use etwhy_testkit::{Json as _, Program, Str as _, script, told};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The program.
const ETWHY: Program = crate::ETWHY.partly();

/// Stories are written small; those with many events smaller. Scenarios for one table are small already.
const SCALES: [(&str, &str); 5] = [
    ("directory_watcher", "0.004"),
    ("syscall_hook", "0.002"),
    ("virtual_alloc_top_down", "0.01"),
    ("antivirus_opens_excluded", "0.1"),
    ("clean_busy_machine", "0.1"),
];

fn recomputed(trace: &Path) -> Option<Value> {
    Some(serde_json::from_str(&told(script("brute_force.py")?.arg(trace))).unwrap())
}

/// Scenarios that ship, with the scale to write them at.
fn scenarios() -> Vec<(PathBuf, &'static str)> {
    let scaled = |path: PathBuf| {
        let name = path.file_stem().unwrap().str();
        let usual = if path.parent().unwrap().ends_with("tables") { "1" } else { "0.01" };
        let scale = SCALES.iter().find(|(n, _)| *n == name).map_or(usual, |(_, s)| s);
        (path, scale)
    };
    etwhy_testkit::scenarios(&["scenarios", "scenarios/tables"]).into_iter().map(scaled).collect()
}

/// Rows with their counts: the order of equal times is nobody's business.
fn counted(rows: impl Iterator<Item = Vec<Value>>) -> BTreeMap<String, i64> {
    let mut counts = BTreeMap::new();
    for row in rows {
        *counts.entry(Value::from(row).to_string().to_lowercase()).or_default() += 1;
    }
    counts
}

/// The first rows that only one side has, or `None` when all are the same.
fn difference(ours: &BTreeMap<String, i64>, theirs: &BTreeMap<String, i64>) -> Option<String> {
    let only = |a: &BTreeMap<String, i64>, b: &BTreeMap<String, i64>| {
        let rows: Vec<String> = a
            .iter()
            .filter(|(row, n)| b.get(*row) != Some(n))
            .map(|(row, n)| format!("  {n} x {row}"))
            .collect();
        (rows.len(), rows.into_iter().take(5).collect::<Vec<_>>().join("\n"))
    };
    let ((n, mine), (m, other)) = (only(ours, theirs), only(theirs, ours));
    (n + m > 0).then(|| format!("only in our table ({n}):\n{mine}\nonly recomputed ({m}):\n{other}"))
}

/// Pid of `name (pid)`.
fn pid(process: &Value) -> Option<String> {
    let text = process.as_str()?;
    text.rsplit_once('(').map(|(_, pid)| pid.trim_end_matches(')').to_owned())
}

#[test]
fn tables_are_what_brute_force_recomputes() {
    let list = ETWHY.run(&["dump", "--list"]);
    let has = |table: &str| list.lines().any(|l| l.split_whitespace().next() == Some(table));
    let (mut compared, mut wrong) = (BTreeMap::<String, usize>::new(), Vec::new());
    for (scenario, scale) in scenarios() {
        let folder = tempfile::tempdir().unwrap();
        let name = scenario.file_stem().unwrap().str();
        let trace = folder.path().join("trace.etl");
        ETWHY.synth(&scenario, &trace, &["--scale", scale]);
        let Some(oracle) = recomputed(&trace) else { return };
        for (table, theirs) in oracle["tables"].fields() {
            if !has(table) {
                continue;
            }
            let columns: Vec<&str> = theirs["columns"].list().iter().map(|c| c.str()).collect();
            let ours: Vec<serde_json::Map<String, Value>> = ETWHY.dump(table, &trace);
            let cell = |row: &serde_json::Map<String, Value>, column: &str| {
                row.get(column).unwrap_or_else(|| panic!("{table} has no column {column}")).clone()
            };
            let ours = counted(ours.iter().map(|row| columns.iter().map(|c| cell(row, c)).collect()));
            let rows = theirs["rows"].list().iter();
            let theirs = counted(rows.map(|row| row.list().clone()));
            *compared.entry(table.clone()).or_default() += theirs.len();
            if let Some(text) = difference(&ours, &theirs) {
                wrong.push(format!("{name}: {table} ({}): {text}", columns.join(", ")));
            }
        }
        if has("virtual_alloc") {
            let mut sums = BTreeMap::<String, i64>::new();
            for row in ETWHY.dump::<Value>("virtual_alloc", &trace) {
                let bytes = row["outstanding_bytes"].as_i64().unwrap_or(0);
                *sums.entry(pid(&row["process"]).unwrap_or_default()).or_default() += bytes;
            }
            let theirs: BTreeMap<String, i64> =
                serde_json::from_value(oracle["sums"]["virtual_alloc"].clone()).unwrap();
            *compared.entry("virtual_alloc".into()).or_default() += theirs.len();
            if sums != theirs {
                wrong.push(format!(
                    "{name}: virtual_alloc outstanding by pid: {sums:?}, recomputed {theirs:?}"
                ));
            }
        }
    }
    println!("rows compared: {compared:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(compared.values().sum::<usize>() > 1000, "{compared:?}");
}
