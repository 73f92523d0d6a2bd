//! Statistics and values against Python's csv module.
//!
//! `ETWHY_PYTHON` names an interpreter; nothing but its standard library is needed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use etwhy_counters::{Options, read};
use etwhy_table::{Memory, Table};
use std::path::{Path, PathBuf};
use std::process::Command;

fn python() -> Option<PathBuf> {
    let python = std::env::var_os("ETWHY_PYTHON").map(PathBuf::from);
    if python.is_none() {
        assert_ne!(std::env::var("ETWHY_CORPUS_REQUIRED").as_deref(), Ok("1"), "ETWHY_PYTHON is not set");
        println!("skipped: ETWHY_PYTHON is not set");
    }
    python
}

fn run(python: &Path, args: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/python/counters.py");
    let output = Command::new(python).arg(script).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The number behind `"key": ` in the object of a counter; `None` for null.
fn figure(json: &str, path: &str, key: &str) -> Option<f64> {
    let escaped = path.replace('\\', "\\\\");
    let object = json.split_once(&format!("\"{escaped}\": {{")).expect(path).1;
    let text = object.split_once(&format!("\"{key}\": ")).expect(key).1;
    let end = text.find([',', '}']).unwrap();
    text[..end].parse().ok()
}

fn compare(rows: usize, tolerance: f64) {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("log.csv");
    run(&python, &["write", file.to_str().unwrap(), &rows.to_string()]);
    let json = run(&python, &["stats", file.to_str().unwrap()]);
    let logs = read(&[file], &Options::default(), &Memory::default()).unwrap();
    let table = |name: &str| -> &Table { logs.tables.iter().find(|t| t.name() == name).unwrap() };
    let (counters, samples) = (table("counter"), table("counter_sample"));
    assert_eq!((counters.rows(), table("counter_note").rows()), (8, 0));
    let mut sums = [0.0f64; 8];
    for row in 0..samples.rows() as u32 {
        sums[samples.i64(row, "counter").unwrap() as usize] += samples.f64(row, "value").unwrap();
    }
    for row in 0..8u32 {
        let path = counters.text(row, "path").unwrap();
        for (column, allowed) in [
            ("samples", 0.0),
            ("missing", 0.0),
            ("min_value", 0.0),
            ("max_value", 0.0),
            ("first_value", 0.0),
            ("last_value", 0.0),
            ("above_90_samples", 0.0),
            ("mean_value", 1e-12),
            ("p50_value", tolerance),
            ("p95_value", tolerance),
            ("p99_value", tolerance),
        ] {
            let (ours, theirs) = (counters.value(row, column).as_f64(), figure(&json, path, column));
            let near = match (ours, theirs) {
                (Some(a), Some(b)) => (a - b).abs() <= allowed * b.abs(),
                (a, b) => a == b,
            };
            assert!(near, "{path}: {column} is {ours:?}, Python says {theirs:?}");
        }
        let sum = figure(&json, path, "sum").unwrap();
        assert!((sums[row as usize] - sum).abs() <= 1e-9 * sum, "{path}: samples add up to {sum}");
    }
}

#[test]
fn a_short_log_is_exact() {
    compare(1000, 0.0);
}

#[test]
fn a_long_log_is_nearly_exact() {
    compare(30_000, 0.004);
}
