//! Growth laws of written traces: the laws that scenarios state are found, with their figures in the interval, and what does not
//! grow, or only with time, is not called growth.

use crate::{ETWHY, Json as _, Str as _};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn dump(table: &str, trace: &Path) -> Vec<Value> {
    ETWHY.dump(table, trace)
}

/// A scenario that ships, at that scale, with what it states of its law.
fn shipped(name: &str, scale: &str, folder: &Path) -> (PathBuf, Value) {
    let trace = ETWHY.story(name, scale, folder);
    let truth = std::fs::read(trace.with_extension("truth.json")).unwrap();
    let truth: Value = serde_json::from_slice(&truth).unwrap();
    (trace, truth["stated"]["law"].clone())
}

fn only<'r>(rows: &'r [Value], pairs: &[(&str, &str)]) -> &'r Value {
    let found: Vec<&Value> = rows.iter().filter(|r| pairs.iter().all(|(k, v)| r[k] == *v)).collect();
    assert_eq!(found.len(), 1, "{pairs:?}: {found:#?}");
    found[0]
}

#[track_caller]
fn says(row: &Value, wanted: &[(&str, &str)]) {
    wanted.iter().for_each(|(column, text)| assert_eq!(row[*column], *text, "{column} of {row:#}"));
}

fn number(row: &Value, column: &str) -> f64 {
    row[column].as_f64().unwrap_or_else(|| panic!("{column} of {row:#}"))
}

fn assert_near(value: f64, expected: f64, share: f64, what: &str) {
    assert!((value / expected - 1.0).abs() <= share, "{what}: {value}, expected {expected}");
}

/// The exponent of the truth lies in the interval, which is narrow.
fn assert_exponent(row: &Value, truth: f64) {
    let (low, high) = (number(row, "exponent_low"), number(row, "exponent_high"));
    assert!(low <= truth && truth <= high && high - low < 0.3, "exponent {low} to {high}, is {truth}");
}

#[test]
fn allocations_from_the_top_are_a_square_in_all() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, law) = shipped("virtual_alloc_top_down", "0.1", folder.path());
    let law = &law["time of the n-th call"];
    let rows = dump("growth", &trace);
    assert_eq!(rows.len(), 1);
    let row = only(&rows, &[("operation", "VirtualAlloc MEM_TOP_DOWN"), ("cost_source", "samples")]);
    says(row, &[("verdict", "super_linear"), ("model", "n")]);
    assert_eq!(row["total_model"], "n^2");
    assert_exponent(row, law["exponent"].float());
    assert_near(number(row, "b"), law["nanoseconds_per_earlier_call"].float(), 0.01, "b");
    // 48 ns * 25,000² / 2 = 15 s now; ten times as many calls take a hundred times as long: the 25 minutes of the story.
    assert_near(number(row, "total_ns"), 15e9, 0.01, "total");
    assert_near(number(row, "total_10x_ns"), 1500e9, 0.01, "total at ten times");
    assert_eq!(row["function"], "ntoskrnl.exe!MiFindEmptyAddressRangeDownTree");
    assert_eq!(row["caller"], "topdown.exe!main");
    let points = dump("growth_point", &trace);
    assert_eq!(points.len() as u64, row["points"].uint());
    let sum: f64 = points.iter().map(|p| number(p, "total_ns")).sum();
    assert_near(sum, number(row, "total_ns"), 1e-6, "points add up");
    for point in &points {
        assert_near(number(point, "cost_ns"), number(point, "fit_ns"), 0.1, "point");
    }

    // Without symbols nothing names the call: all kernel samples in between count, and the law is the same.
    std::fs::remove_dir_all(folder.path().join("symbols")).unwrap();
    let rows = dump("growth", &trace);
    let row = only(&rows, &[("cost_source", "kernel_samples")]);
    assert_eq!(row["verdict"], "super_linear", "{row:#}");
    assert_exponent(row, 1.0);
}

#[test]
fn missing_buffers_do_not_hide_the_law() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = etwhy_testkit::root().join("scenarios/virtual_alloc_top_down.toml");
    let trace = folder.path().join("t.etl");
    ETWHY.synth(&scenario, &trace, &["--scale", "0.1", "--drop-buffers", "10%"]);
    // "Done in part": buffers are missing.
    let output = ETWHY.output(&["dump", "growth", trace.str(), "--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
    let row = only(rows.list(), &[("cost_source", "samples")]);
    assert_eq!(row["verdict"], "super_linear", "{row:#}");
    // Calls in missing buffers are not counted, so later ones seem slower: the exponent is off by that.
    assert_near(number(row, "exponent"), 1.0, 0.2, "exponent");
}

#[test]
fn without_samples_rarer_calls_are_no_growth() {
    let text = r#"
[machine]
cpus = 2
duration = "10s"
[[process]]
name = "topdown.exe"
[[virtual_alloc]]
process = "topdown.exe"
count = 5000
every = { poly = [0, "48ns"] }
flags = ["reserve", "top_down"]
"#;
    let rows = dump("growth", &ETWHY.scenario(text));
    let row = only(&rows, &[("operation", "VirtualAlloc MEM_TOP_DOWN")]);
    says(row, &[("cost_source", "interval"), ("verdict", "cannot_tell")]);
    assert!(row["why"].str().contains("rarer"));
}

#[test]
fn starts_that_search_a_list_are_a_square_in_all() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, law) = shipped("process_start_growth", "0.3", folder.path());
    let law = &law["duration of the n-th process"];
    let rows = dump("growth", &trace);
    let row =
        only(&rows, &[("kind", "process_start"), ("name", "verified.exe"), ("cost_source", "lifetime")]);
    says(row, &[("verdict", "super_linear"), ("model", "n")]);
    assert_exponent(row, law["exponent"].float());
    assert_near(number(row, "b"), law["microseconds_per_earlier_process"].float() * 1e3, 0.01, "b");
    assert_near(number(row, "a"), law["milliseconds_first"].float() * 1e6, 0.01, "a");
    assert_eq!(row["caller"], "verifier.dll!AVrfpOpenLogFile");
    // The file events of the search cost the same each time: they must not hide the law, nor have one.
    for row in rows.iter().filter(|r| r["kind"] == "file" || r["cost_source"] == "load") {
        assert_eq!(row["verdict"], "constant", "{row:#}");
    }
}

#[test]
fn nothing_else_grows() {
    let folder = tempfile::tempdir().unwrap();
    for (name, scale) in [
        ("clean_busy_machine", "1"),
        ("antivirus_opens", "0.1"),
        ("antivirus_opens_excluded", "0.2"),
        ("directory_watcher", "0.05"),
        ("event_log", "0.05"),
        ("registry_storm", "0.1"),
        ("syscall_hook_enter", "0.01"),
        ("tables/syscall", "1"),
        ("tables/file_io", "1"),
        ("tables/registry", "1"),
        ("tables/virtual_alloc", "1"),
    ] {
        let (trace, _) = shipped(name, scale, folder.path());
        let rows = dump("growth", &trace);
        assert!(!rows.is_empty(), "{name}");
        for row in rows {
            assert!(row["verdict"] != "super_linear" && row["verdict"] != "with_time", "{name}: {row:#}");
        }
    }
}

/// Programs, each with one law or one trap. Their gaps grow, so that the number of calls is not time, but for `drift.exe`.
const LAWS: &str = r#"
[machine]
cpus = 8
duration = "60s"
context_switches = true

[[file_io]]
process = "linear.exe"
op = "create"
file = 'C:\data\a.txt'
count = 3000
every = { poly = ["1ms", "10us"] }
duration = { poly = ["20us", "200ns"] }

[[file_io]]
process = "square.exe"
op = "create"
file = 'C:\data\b.txt'
count = 3000
every = { poly = ["1ms", "10us"] }
duration = { poly = ["20us", "0ns", "0.2ns"] }

[[file_io]]
process = "flat.exe"
op = "create"
file = 'C:\data\c.txt'
count = 3000
every = { poly = ["1ms", "10us"] }
duration = { lognormal = ["100us", 1.2], max = "5ms" }

[[file_io]]
process = "drift.exe"
op = "create"
file = 'C:\data\d.txt'
count = 3000
duration = { ramp = ["20us", "600us"] }

[[file_io]]
process = "phase.exe"
op = "create"
file = 'C:\data\e.txt'
to = "20s"
count = 1000
duration = { lognormal = ["20us", 0.3] }

[[file_io]]
process = "phase.exe"
op = "create"
file = 'C:\data\e.txt'
from = "20s"
count = 1500
duration = { lognormal = ["200us", 0.3] }

[[file_io]]
process = "bigger.exe"
op = "read"
file = 'C:\data\f.bin'
count = 2000
every = { poly = ["1ms", "10us"] }
size = { poly = [4096, 64] }
duration = { poly = ["40us", "640ns"] }

[[file_io]]
process = "bytes.exe"
op = "read"
file = 'C:\data\g.bin'
count = 1200
READS

[[file_io]]
process = "bytes.exe"
op = "write"
file = 'C:\data\g.bin'
count = 1200
WRITES

[[registry]]
process = "key.exe"
op = "query_value"
key = 'HKLM\SOFTWARE\Many'
value = "x"
count = 3000
every = { poly = ["1ms", "10us"] }
duration = { poly = ["5us", "100ns"] }

[[syscall]]
process = "call.exe"
function = "NtQuerySystemInformation"
count = 3000
every = { poly = ["1ms", "10us"] }
duration = { poly = ["10us", "300ns"] }
"#;

#[test]
fn planted_laws_are_found_and_traps_are_not() {
    // 24 sizes, a quarter of a power of two apart; every read in proportion to its size, every write to its square.
    let sizes: Vec<u64> = (0..24).map(|i| (4_300.0 * 2f64.powf(f64::from(i) / 4.0)) as u64).collect();
    let cycle = |values: &[u64], unit: &str| {
        let list: Vec<String> = values.iter().map(|v| format!("\"{v}{unit}\"")).collect();
        format!("{{ cycle = [{}] }}", list.join(", "))
    };
    let with = |cost: fn(u64) -> u64| {
        let costs: Vec<u64> = sizes.iter().map(|&s| cost(s)).collect();
        format!("size = {}\nduration = {}", cycle(&sizes, "B"), cycle(&costs, "ns"))
    };
    let text = LAWS.replace("READS", &with(|s| 2 * s)).replace("WRITES", &with(|s| s * s / 2_000));
    let programs = ["square", "linear", "flat", "drift", "phase", "key", "call", "bytes", "bigger"];
    let text = text + &programs.map(|name| format!("[[process]]\nname = \"{name}.exe\"\n")).concat();
    let rows = dump("growth", &ETWHY.scenario(&text));
    let calls = |name, operation, source| {
        only(
            &rows,
            &[("name", name), ("operation", operation), ("predictor", "calls"), ("cost_source", source)],
        )
    };

    let linear = calls("linear.exe", "Create", "duration");
    says(linear, &[("verdict", "super_linear"), ("total_model", "n^2")]);
    assert_exponent(linear, 1.0);
    assert_near(number(linear, "b"), 200.0, 0.02, "b of linear.exe");
    let square = calls("square.exe", "Create", "duration");
    says(square, &[("verdict", "super_linear"), ("total_model", "n^3")]);
    assert_exponent(square, 2.0);
    let key = calls("key.exe", "QueryValue", "duration");
    says(key, &[("verdict", "super_linear"), ("model", "n")]);
    for source in ["on_cpu", "duration"] {
        let call = calls("call.exe", "ntoskrnl.exe!NtQuerySystemInformation", source);
        assert_eq!(call["verdict"], "super_linear", "{call:#}");
        assert_exponent(call, 1.0);
        assert_near(number(call, "b"), 300.0, 0.02, "b of call.exe");
    }

    assert_eq!(calls("flat.exe", "Create", "duration")["verdict"], "constant");
    let drift = calls("drift.exe", "Create", "duration");
    assert_ne!(drift["verdict"], "super_linear", "{drift:#}");
    assert_eq!(drift["confounded_by"], "time", "{drift:#}");
    assert!(number(drift, "trend_tau") > 0.95 && number(drift, "trend_p") < 1e-9);
    assert_near(number(drift, "trend_ns_per_s"), 580_000.0 / 60.0, 0.05, "drift");
    let phase = calls("phase.exe", "Create", "duration");
    says(phase, &[("verdict", "cannot_tell"), ("confounded_by", "step")]);
    let bigger = calls("bigger.exe", "Read", "duration");
    says(bigger, &[("verdict", "cannot_tell"), ("confounded_by", "size")]);

    let by_size = |operation| {
        only(&rows, &[("name", "bytes.exe"), ("operation", operation), ("predictor", "size_bytes")])
    };
    let (read, write) = (by_size("Read"), by_size("Write"));
    says(read, &[("verdict", "linear"), ("model", "n")]);
    says(write, &[("verdict", "super_linear"), ("model", "n^2")]);
    assert_near(number(read, "b"), 2.0, 0.01, "ns for each byte");
    for operation in ["Read", "Write"] {
        let row = calls("bytes.exe", operation, "duration");
        assert_ne!(row["verdict"], "super_linear", "{row:#}");
    }
    let grow: Vec<&str> =
        rows.iter().filter(|r| r["verdict"] == "super_linear").map(|r| r["name"].str()).collect();
    assert_eq!(grow.len(), 6, "{grow:?}");
}
