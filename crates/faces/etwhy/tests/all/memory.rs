//! A written story of memory, pool, faults and handles: the tables must say what the scenario says, and what the
//! writer counted.

use crate::{ETWHY, Json as _, Str as _};
use serde_json::Value;
use std::path::Path;

const SCENARIO: &str = r#"
[machine]
cpus = 4
duration = "10s"
context_switches = true

[[process]]
name = "app.exe"
threads = ["main", "worker"]

[[process]]
name = "short.exe"
start = "1s"
end = "4s"

[[samples]]
process = "app.exe"
busy = 1
stack = "app.exe!main;app.exe!Work"

[[virtual_alloc]]
process = "app.exe"
thread = "main"
count = 1000
size = "64KB"
flags = ["commit", "reserve", "top_down"]
free_after = "100ms"
leak = 0.25
stack = "app.exe!main;app.exe!Leak;ntdll!NtAllocateVirtualMemory;nt!NtAllocateVirtualMemory"

[[virtual_alloc]]
process = "short.exe"
count = 50
size = "4KB"

[[pool]]
process = "app.exe"
tag = "Leak"
count = 500
size = 100
paged = true
stack = "app.exe!main;nt!ExAllocatePoolWithTag"

[[pool]]
process = "app.exe"
tag = "Good"
count = 400
to = "9s"
size = 64
free_after = "1ms"

[[page_fault]]
process = "app.exe"
thread = "main"
count = 20000
stack = "app.exe!main;nt!KiPageFault"

[[page_fault]]
op = "transition"
process = "app.exe"
thread = "worker"
count = 300

[[handle]]
process = "app.exe"
object_type = "Event"
count = 1000
arrival = "exact"

[[handle]]
process = "app.exe"
object_type = "File"
count = 1000
to = "9s"
close_after = "1ms"
"#;

/// The rows of a table as objects.
fn rows(trace: &Path, table: &str, threads: &str) -> Vec<Value> {
    ETWHY.rows(&["dump", table, trace.str(), "--threads", threads])
}

fn number(row: &Value, column: &str) -> i64 {
    row[column].as_i64().unwrap_or_else(|| panic!("{column} in {row}"))
}

fn sum(rows: &[Value], column: &str) -> i64 {
    rows.iter().map(|row| number(row, column)).sum()
}

/// Rows in which a column holds that text.
fn with<'r>(rows: &'r [Value], column: &str, text: &str) -> Vec<&'r Value> {
    rows.iter().filter(|row| row[column].as_str().is_some_and(|t| t.starts_with(text))).collect()
}

#[test]
fn tables_say_what_the_scenario_says() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("memory.toml");
    let trace = folder.path().join("memory.etl");
    std::fs::write(&scenario, SCENARIO).unwrap();
    ETWHY.synth(&scenario, &trace, &[]);
    let truth = std::fs::read(folder.path().join("memory.truth.json")).unwrap();
    let truth: Value = serde_json::from_slice(&truth).unwrap();
    let written = |key: &str| truth["events"][key].int();

    let calls = rows(&trace, "virtual_alloc", "1");
    assert_eq!(calls.len() as i64, written("kernel/2/98") + written("kernel/2/99"));
    let releases = with(&calls, "op", "release");
    assert_eq!(releases.len() as i64, written("kernel/2/99"));
    assert!(releases.iter().all(|row| number(row, "freed_bytes") == 65536));
    assert_eq!(calls.iter().filter(|row| row["top_down"] == true).count(), 1000);
    assert_eq!(with(&calls, "freed_by", "exit").len(), 50);
    let committed = rows(&trace, "memory_outstanding", "1");
    assert_eq!(sum(&committed, "committed_bytes"), 1000 * 65536 + 50 * 4096);
    assert_eq!(sum(&committed, "count"), 1050);
    let left = 1000 - written("kernel/2/99");
    assert_eq!(sum(&committed, "outstanding_count"), left);
    assert_eq!(sum(&committed, "outstanding_bytes"), left * 65536);
    assert_eq!(sum(&committed, "freed_bytes"), written("kernel/2/99") * 65536 + 50 * 4096);

    let tags = rows(&trace, "pool_tag", "1");
    let tag = |name| with(&tags, "tag", name)[0];
    let (leak, good) = (tag("Leak"), tag("Good"));
    let pool = ["allocs", "frees", "total_bytes", "outstanding_count", "outstanding_bytes"];
    assert_eq!(pool.map(|c| number(leak, c)), [500, 0, 50_000, 500, 50_000]);
    assert_eq!(pool.map(|c| number(good, c)), [400, written("kernel/14/34"), 25_600, 0, 0]);
    assert_eq!(leak["pool"], "paged");
    assert_eq!(good["pool"], "nonpaged");

    let faults = rows(&trace, "page_fault_cost", "1");
    let of = |kind| with(&faults, "kind", kind).into_iter().cloned().collect::<Vec<_>>();
    let (zero, transition) = (of("DemandZeroFault"), of("TransitionFault"));
    assert_eq!((sum(&zero, "count"), sum(&zero, "size_bytes")), (20_000, 81_920_000));
    assert_eq!((sum(&transition, "count"), sum(&transition, "size_bytes")), (300, 1_228_800));
    assert_eq!(rows(&trace, "page_fault", "1").len(), 20_300);

    let handles = rows(&trace, "handle_leak", "1");
    let (events, files) =
        (with(&handles, "object_type", "Event")[0], with(&handles, "object_type", "File")[0]);
    let counts = ["creates", "closes", "outstanding", "open_at_start"];
    assert_eq!(counts.map(|c| number(events, c)), [1000, 0, 1000, 0]);
    assert_eq!(counts.map(|c| number(files, c)), [1000, 1000, 0, 0]);
    let slope = |row: &Value| row["leak_slope_per_second"].float();
    assert!((slope(events) - 100.0).abs() < 0.5, "{}", slope(events));
    assert!(slope(files).abs() < 0.5, "{}", slope(files));

    for table in
        ["virtual_alloc", "memory_outstanding", "pool", "pool_tag", "page_fault", "handle", "handle_leak"]
    {
        assert_eq!(rows(&trace, table, "1"), rows(&trace, table, "4"), "{table} with other threads");
    }
}
