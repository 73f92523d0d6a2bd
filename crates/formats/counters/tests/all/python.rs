//! Statistics and values against Python's csv module.
//!
//! `ETWHY_PYTHON` names an interpreter; nothing but its standard library is needed.

use etwhy_counters::{Options, read};
use etwhy_table::{Memory, Table};
use etwhy_testkit::{script, told};

/// The number behind `"key": ` in the object of a counter; `None` for null.
fn figure(json: &str, path: &str, key: &str) -> Option<f64> {
    let escaped = path.replace('\\', "\\\\");
    let object = json.split_once(&format!("\"{escaped}\": {{")).expect(path).1;
    let text = object.split_once(&format!("\"{key}\": ")).expect(key).1;
    let end = text.find([',', '}']).unwrap();
    text[..end].parse().ok()
}

fn compare(rows: usize, tolerance: f64) {
    let Some(mut write) = script("counters.py") else { return };
    let Some(mut stats) = script("counters.py") else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("log.csv");
    told(write.arg("write").arg(&file).arg(rows.to_string()));
    let json = told(stats.arg("stats").arg(&file));
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
