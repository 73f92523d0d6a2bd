//! An extract answers what the trace answers.
//!
//! Numbers by which tables refer to each other (`upid`, `stack_id`, ...) hold within one answer: they follow the order in
//! which a pass meets things, and the pass that extracts looks at more events than that of a single question. So rows
//! are compared by what the numbers stand for, and tables of things (processes, threads, stacks, files) may hold more.

use etwhy_testkit::{Json as _, Program, Str as _};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The program.
const ETWHY: Program = crate::ETWHY.wide("120").partly();

fn text(path: &Path) -> &str {
    path.str()
}

/// Tables of things that other tables refer to: another pass may meet more of them.
const THINGS: [&str; 7] = ["process", "thread", "file", "image", "stack", "stack_frame", "frame"];

/// Numbers of things, and when a process or thread was seen at all.
const NUMBERS: [&str; 8] =
    ["upid", "utid", "stack_id", "frame_id", "file_id", "image_id", "first_ns", "last_ns"];

fn tables() -> Vec<String> {
    let list = ETWHY.run(&["dump", "--list"]);
    // A meaning that does not fit in a line goes on below itself.
    let entries = list.lines().filter(|line| !line.starts_with(' '));
    entries.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

/// Rows of a table without numbers of things, in any order.
fn rows(table: &str, of: &str) -> BTreeMap<String, usize> {
    let mut rows = BTreeMap::new();
    for line in ETWHY.run(&["dump", table, of, "--format", "jsonl", "--quiet"]).lines() {
        let mut row: serde_json::Map<String, Value> = serde_json::from_str(line).unwrap();
        row.retain(|column, _| !NUMBERS.iter().any(|number| column.ends_with(number)));
        *rows.entry(Value::Object(row).to_string()).or_insert(0) += 1;
    }
    rows
}

/// The JSON of a command without numbers of things, and without facts of the ledger that depend on which tables
/// looked at events.
fn without_numbers(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.retain(|key, _| !NUMBERS.iter().any(|number| key.ends_with(number)));
            object.values_mut().for_each(without_numbers);
        }
        Value::Array(list) => {
            list.retain(|item| item.get(0).or(item.get("severity")).is_none_or(|word| word != "info"));
            list.iter_mut().for_each(without_numbers);
        }
        _ => {}
    }
}

fn same_answers(trace: &Path, folder: &Path, extra: &[&str]) {
    let place = folder.join(format!("{}.tables", trace.file_stem().unwrap().str()));
    let (trace, place) = (text(trace), text(&place));
    let (code, _, errors) = ETWHY.ran(&[&["extract", trace, "-o", place, "--quiet"], extra].concat());
    assert!(code == 0 || code == 1, "{errors}");
    assert!(errors.contains("tables, "), "{errors}");
    for command in [&["why"][..], &["info"], &["path"], &["strace", "-c"], &["strace", "-n", "50"]] {
        let of = |input: &str| ETWHY.ran(&[command, &[input, "--quiet"]].concat());
        assert_eq!(of(place), of(trace), "{command:?} {trace}");
    }
    for command in ["why", "info"] {
        let of = |input: &str| {
            let mut value: Value =
                serde_json::from_str(&ETWHY.run(&[command, input, "--json", "--quiet"])).unwrap();
            without_numbers(&mut value);
            value
        };
        assert_eq!(of(place), of(trace), "{command} --json {trace}");
    }
    let mut with_rows = 0;
    for table in tables() {
        let (whole, extracted) = (rows(&table, trace), rows(&table, place));
        with_rows += usize::from(!whole.is_empty());
        let things = THINGS.contains(&table.as_str());
        if table == "ledger" {
            continue;
        }
        for (row, count) in &whole {
            let found = extracted.get(row).copied().unwrap_or(0);
            assert!(found == *count || things && found >= *count, "{table} of {trace}: {found} x {row}");
        }
        assert!(things || extracted.len() == whole.len(), "{table} of {trace} has other rows");
    }
    assert!(with_rows > 5, "{trace}: {with_rows} tables with rows");
}

#[test]
fn the_demonstration() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("demo.etl");
    ETWHY.demo(&trace);
    same_answers(&trace, folder.path(), &[]);
}

#[test]
fn stories() {
    let folder = tempfile::tempdir().unwrap();
    for (name, scale) in [("event_log", "0.01"), ("registry_storm", "0.01")] {
        same_answers(&ETWHY.story(name, scale, folder.path()), folder.path(), &["--memory", "1MB"]);
    }
}

#[test]
fn real_traces() {
    let folder = tempfile::tempdir().unwrap();
    for file in ["microsoft+Tx/Process.etl", "airbus-cert+etl-parser/ShutdownPerfDiagLogger.etl"] {
        let Some(trace) = etwhy_testkit::corpus_file(&format!("etl/{file}")) else { return };
        same_answers(&trace, folder.path(), &[]);
    }
}

#[test]
fn derived_tables_are_made_if_they_are_missing() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("x");
    ETWHY.run(&["extract", "--demo", "-o", text(&place), "--without", "machine", "-q"]);
    assert!(!place.join("machine.parquet").exists());
    let of = |input: &str| ETWHY.run(&["dump", "machine", input, "-q", "--format", "json"]);
    let whole = folder.path().join("y");
    ETWHY.run(&["extract", "--demo", "-o", text(&whole), "-q"]);
    assert_eq!(of(text(&place)), of(text(&whole)));
    assert!(of(text(&place)).contains("busy_ns"));
}

#[test]
fn what_was_left_out_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("x");
    let place = text(&place);
    ETWHY.run(&["extract", "--demo", "-o", place, "--only", "disk_io", "-q"]);
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(format!("{place}/manifest.json")).unwrap()).unwrap();
    let names = |list: &Value| -> Vec<String> {
        let name = |t: &Value| t.get("name").unwrap_or(t).str().to_owned();
        list.list().iter().map(name).collect()
    };
    let (written, left_out) = (names(&manifest["tables"]), names(&manifest["left_out"]));
    for table in ["disk_io", "process", "thread", "file", "stack", "frame", "ledger", "trace", "event_type"] {
        assert!(written.iter().any(|t| t == table), "{table}");
    }
    assert_eq!(written.len() + left_out.len(), tables().len());
    assert_eq!(manifest["traces"][0], "demo.etl");
    assert_eq!(manifest["end"]["exit"], 0);
    assert!(!ETWHY.run(&["dump", "disk_io", place]).is_empty());
    let (code, _, errors) = ETWHY.ran(&["why", place]);
    assert_eq!(code, 2);
    assert!(errors.contains("no table alpc") && errors.contains(" others"), "{errors}");
    assert!(errors.contains("left out"), "{errors}");
    let (code, _, errors) = ETWHY.ran(&["path", place, "--process", "solver"]);
    assert_eq!(code, 2);
    assert!(errors.contains("only be told from the trace"), "{errors}");
    let (code, _, errors) = ETWHY.ran(&["info", place, place]);
    assert_eq!(code, 2);
    assert!(errors.contains("read alone"), "{errors}");
    let (code, _, errors) = ETWHY.ran(&["extract", "--demo", "-o", place, "--only", "nothing"]);
    assert_eq!(code, 2);
    assert!(errors.contains("no table `nothing`"), "{errors}");
}

#[test]
fn folders_from_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("x");
    let input = text(&place);
    ETWHY.run(&["extract", "--demo", "-o", input, "-q"]);
    let manifest = place.join("manifest.json");
    let whole = std::fs::read_to_string(&manifest).unwrap();
    let told = |code: i32, words: &str| {
        let (found, out, errors) = ETWHY.ran(&["dump", "sample", input]);
        assert_eq!((found, out.as_str()), (code, ""), "{errors}");
        assert!(errors.contains(words), "{errors}");
    };
    std::fs::write(&manifest, whole.replacen("\"version\": 2", "\"version\": 3", 1)).unwrap();
    told(4, "newer than 2");
    std::fs::write(&manifest, &whole[..whole.len() / 2]).unwrap();
    told(3, "manifest.json");
    std::fs::write(&manifest, &whole).unwrap();
    std::fs::write(place.join("sample.parquet"), "PAR1 and nothing PAR1").unwrap();
    told(3, "sample.parquet");
    std::fs::copy(place.join("thread.parquet"), place.join("sample.parquet")).unwrap();
    told(3, "its metadata are not those that were written");
    std::fs::remove_file(place.join("sample.parquet")).unwrap();
    told(2, "sample.parquet");
    // Other tables are not looked at.
    assert!(!ETWHY.run(&["dump", "process", input]).is_empty());
    // What is there and no extract stays.
    let other = folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("x.txt"), "mine").unwrap();
    let (code, _, errors) = ETWHY.ran(&["extract", "--demo", "-o", text(&other), "-q"]);
    assert_eq!(code, 2);
    assert!(errors.contains("--force"), "{errors}");
    assert!(other.join("x.txt").exists());
    ETWHY.run(&["extract", "--demo", "-o", text(&other), "-q", "--force", "--only", "mark"]);
    assert!(!other.join("x.txt").exists() && other.join("mark.parquet").exists());
}

#[test]
fn damage_of_the_trace_is_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("demo.etl");
    ETWHY.demo(&trace);
    let mut bytes = std::fs::read(&trace).unwrap();
    bytes.truncate(bytes.len() / 3);
    let at = bytes.len() / 2;
    bytes[at..at + 100_000].fill(0xee);
    std::fs::write(&trace, bytes).unwrap();
    let place = folder.path().join("x");
    let (code, _, _) = ETWHY.ran(&["extract", text(&trace), "-o", text(&place), "-q"]);
    assert_eq!(code, 1);
    let of = |input: &Path| ETWHY.ran(&["why", text(input), "-q"]);
    assert_eq!(of(&place).0, 1);
    assert_eq!(of(&place), of(&trace));
}
