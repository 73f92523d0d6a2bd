//! Damage makes results fewer, never wrong: what is said of a trace with missing buffers is what the whole trace says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use serde_json::{Map, Value};
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

const SCENARIO: &str = r#"
[machine]
cpus = 4
duration = "4s"
buffer_size = "4KB"
context_switches = true
[[process]]
name = "a.exe"
threads = "w*3"
[[process]]
name = "b.exe"
threads = "s*2"
[[process]]
name = "c.exe"
threads = "x*3"
[[process]]
name = "short.exe"
count = 20
every = "150ms"
end = 3.9
[[thread_activity]]
process = "a.exe"
run = { exponential = "2ms" }
wait = { exponential = "5ms" }
readied_by = "b.exe"
wait_stack = "a.exe!main;a.exe!Wait;ntdll!NtWaitForSingleObject;nt!KeWaitForSingleObject"
ready_stack = "b.exe!main;b.exe!Signal;ntdll!NtSetEvent;nt!NtSetEvent"
[[thread_activity]]
process = "b.exe"
run = { exponential = "1ms" }
wait = { exponential = "3ms" }
[[dpc]]
routine = "ndis.sys!NdisDpc"
rate = 1000
duration = "50us"
[[isr]]
routine = "storport.sys!Isr"
rate = 500
duration = "10us"
[[file_io]]
process = "c.exe"
op = ["create", "read", "close"]
pattern = 'C:\data\file{n}.dat'
rate = 300
duration = "200us"
[[registry]]
process = "c.exe"
op = ["open", "query_value", "close"]
key = 'HKLM\SOFTWARE\Vendor'
value = "Setting"
rate = 300
[[pool]]
process = "c.exe"
tag = "Test"
rate = 400
size = 128
free_after = "30ms"
[[syscall]]
process = "c.exe"
function = ["NtReadFile", "NtClose"]
rate = 400
duration = "20us"
"#;

fn run(arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(env!("CARGO_BIN_EXE_etwhy")).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code().is_some_and(|c| c < 2), "{arguments:?}: {}\n{errors}", output.status);
    output.stdout
}

fn rows(trace: &Path, table: &str) -> Vec<Map<String, Value>> {
    let text = run(&["dump", table, trace.to_str().unwrap(), "--format", "jsonl"]);
    let text = String::from_utf8(text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Columns that tell a row from all others, and columns of which a damaged trace may know less, but nothing else.
const TABLES: &[(&str, &[&str], &[&str])] = &[
    (
        "cswitch",
        &["ts_ns", "cpu", "new_tid"],
        &[
            "old_tid",
            "run_ns",
            "cpu_ns",
            "since_last_ns",
            "wait_ns",
            "ready_ns",
            "readying_tid",
            "prev_wait_reason",
        ],
    ),
    ("dpc", &["ts_ns", "cpu", "routine"], &["start_ns", "dur_ns", "tid"]),
    ("isr", &["ts_ns", "cpu", "routine"], &["start_ns", "dur_ns", "tid"]),
    ("syscall", &["start_ns", "cpu", "function"], &["ts_ns", "dur_ns", "on_cpu_ns", "tid", "status"]),
    ("file_io", &["start_ns", "op", "irp"], &["ts_ns", "dur_ns", "tid", "status"]),
    ("registry", &["ts_ns", "op"], &["start_ns", "dur_ns", "tid", "status"]),
    ("pool", &["ts_ns", "address"], &["freed_ns", "size_bytes", "tid"]),
];

#[test]
fn what_is_left_is_what_the_whole_trace_says() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("story.toml");
    std::fs::write(&scenario, SCENARIO).unwrap();
    let (whole, damaged) = (folder.path().join("whole.etl"), folder.path().join("damaged.etl"));
    run(&["synth", scenario.to_str().unwrap(), "-o", whole.to_str().unwrap(), "--quiet"]);
    run(&[
        "synth",
        scenario.to_str().unwrap(),
        "-o",
        damaged.to_str().unwrap(),
        "--drop-buffers",
        "10%",
        "--quiet",
    ]);
    let missing: i64 = rows(&damaged, "ledger")
        .iter()
        .filter(|row| row["name"] == "buffers_missing")
        .map(|row| row["count"].as_i64().unwrap())
        .sum();
    assert!(missing > 20, "{missing} buffers are missing");
    for (table, key, values) in TABLES {
        let of = |row: &Map<String, Value>| key.iter().map(|k| row[*k].to_string()).collect::<Vec<_>>();
        let all: HashMap<Vec<String>, Map<String, Value>> =
            rows(&whole, table).into_iter().map(|row| (of(&row), row)).collect();
        let left = rows(&damaged, table);
        assert!(left.len() * 2 > all.len(), "{table}: {} of {} rows are left", left.len(), all.len());
        let (mut compared, mut unknown) = (0u64, 0u64);
        for row in &left {
            // A row whose begin was lost has another key; it must say that its begin is not known.
            let Some(truth) = all.get(&of(row)) else {
                assert!(key.iter().any(|k| row[*k].is_null()), "{table}: made up {row:?}");
                continue;
            };
            for value in *values {
                let (had, wanted) = (&row[*value], &truth[*value]);
                unknown += u64::from(had.is_null() && !wanted.is_null());
                if !had.is_null() {
                    compared += 1;
                    assert_eq!(had, wanted, "{table}.{value} of {row:?}");
                }
            }
        }
        assert!(compared > 1000, "{table}: only {compared} values are left");
        println!("{table}: {compared} values as in the whole trace, {unknown} not known any more");
    }
}

#[test]
fn without_context_switches_nothing_is_attributed_by_processor() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("story.toml");
    std::fs::write(&scenario, SCENARIO.replace("context_switches = true", "context_switches = false"))
        .unwrap();
    let trace = folder.path().join("story.etl");
    run(&["synth", scenario.to_str().unwrap(), "-o", trace.to_str().unwrap(), "--quiet"]);
    assert!(rows(&trace, "cswitch").is_empty());
    assert!(rows(&trace, "thread_time").is_empty());
    let dpcs = rows(&trace, "dpc");
    assert!(dpcs.len() > 3000);
    assert!(dpcs.iter().all(|row| row["tid"].is_null() && row["exclusive_ns"].as_i64() == Some(50_000)));
    for row in rows(&trace, "cpu") {
        assert!(row["thread_ns"].is_null() && row["idle_ns"].is_null());
        assert_eq!(row["source"], "sample");
    }
}
