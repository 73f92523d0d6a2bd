//! Scenarios of files, disks, filters and the registry: the tables find every operation with its name, its duration
//! and its process, whatever the trace says about them, and with any number of threads.

use crate::{ETWHY, Str as _};
use serde_json::Value;
use std::path::Path;

const SCENARIO: &str = r#"
[machine]
cpus = 4
duration = "3s"
context_switches = true
MORE

[[process]]
name = "app.exe"
[[process]]
name = "other.exe"

[[file_io]]
process = "app.exe"
op = ["create", "read", "write", "query_info", "cleanup", "close"]
pattern = 'C:\data\file{n}.txt'
size = 1000
count = 300
duration = "30us"
stack = "app.exe!main;app.exe!Open;ntdll!NtCreateFile;nt!NtCreateFile"

[[file_io]]
process = "other.exe"
op = "create"
file = 'C:\data\missing.txt'
status = 0xC0000034
count = 50
duration = "10us"

[[file_io]]
process = "other.exe"
op = ["create", "dir_enum", "cleanup", "close"]
file = ['C:\Windows', 'C:\Users']
count = 20
duration = "40us"

[[minifilter]]
process = "app.exe"
routine = "WdFilter.sys!PreCreate"
file = ['C:\data\f1', 'C:\data\f2']
duration = "200us"
count = 40

[[minifilter]]
process = "app.exe"
routine = "WdFilter.sys!PostRead"
major = 3
post = true
file = 'C:\data\f2'
duration = "100us"
count = 20

[[minifilter]]
process = "other.exe"
routine = "luafv.sys!PreCreate"
file = 'C:\data\f2'
status = 0xC0000022
duration = "15us"
count = 5

[[registry]]
process = "app.exe"
op = ["open", "query_value", "query_value", "close"]
key = 'HKLM\SYSTEM\CurrentControlSet\Control\Nls'
value = "Default"
duration = "5us"
count = 400
stack = "app.exe!main;app.exe!FormatMessage;ntdll!NtQueryValueKey;nt!NtQueryValueKey"

[[registry]]
process = "other.exe"
op = "query_value"
key = ['HKU\S-1-5-18\A', 'HKLM\SOFTWARE\B']
value = ["one", "two"]
duration = "7us"
status = 0xC0000034
count = 100

[[disk_io]]
process = "app.exe"
file = ['C:\data\d1', 'C:\data\d2']
count = 60
duration = "2ms"
"#;

fn rows(trace: &Path, table: &str, threads: &str) -> Vec<Value> {
    ETWHY.rows(&["dump", table, trace.str(), "--threads", threads])
}

/// Rows that match, and the sum of one column over them.
fn sum(rows: &[Value], column: &str, matching: &[(&str, &str)]) -> (usize, i64) {
    let hit = |row: &&Value| matching.iter().all(|(name, want)| text(row, name).starts_with(want));
    let hits: Vec<&Value> = rows.iter().filter(hit).collect();
    (hits.len(), hits.iter().map(|row| row[column].as_i64().unwrap_or(0)).sum())
}

fn text(row: &Value, column: &str) -> String {
    match &row[column] {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}

/// Writes the scenario with `more` in its machine and compares all tables.
fn check(name: &str, more: &str) {
    let trace = ETWHY.scenario(&SCENARIO.replace("MORE", more));
    let dump = |table: &str| {
        let one = rows(&trace, table, "1");
        assert_eq!(one, rows(&trace, table, "3"), "{name}: {table} with one and with three threads");
        one
    };
    let app = ("process", "app.exe");
    let other = ("process", "other.exe");

    let io = dump("file_io");
    for op in ["Create", "Read", "Write", "QueryInfo", "Cleanup", "Close"] {
        assert_eq!(sum(&io, "dur_ns", &[app, ("op", op)]), (300, 300 * 30_000), "{name}: {op}");
    }
    assert_eq!(sum(&io, "done_bytes", &[app, ("op", "Read")]), (300, 300_000), "{name}");
    assert_eq!(sum(&io, "dur_ns", &[app, ("path", "C:\\data\\file299.txt")]), (6, 180_000), "{name}");
    let missing = [other, ("path", "C:\\data\\missing.txt"), ("status_name", "STATUS_OBJECT_NAME_NOT_FOUND")];
    assert_eq!(sum(&io, "dur_ns", &missing), (50, 500_000), "{name}");
    assert_eq!(sum(&io, "dur_ns", &[other, ("path", "C:\\Users")]), (40, 40 * 40_000), "{name}");
    assert_eq!(sum(&io, "dur_ns", &[("path", "-")]).0, 0, "{name}: all have names");
    assert_eq!(io.len(), 6 * 300 + 50 + 4 * 20, "{name}");

    let usage = dump("file_usage");
    assert_eq!(usage.len(), 303, "{name}");
    assert_eq!(sum(&usage, "open_ns", &[app]), (300, 300 * 30_000), "{name}");
    assert_eq!(sum(&usage, "failed_opens", &[other]), (3, 50), "{name}");
    assert_eq!(sum(&usage, "dir_enums", &[other, ("path", "C:\\Windows")]), (1, 10), "{name}");
    let open = dump("file_open");
    assert_eq!(sum(&open, "later_opens", &[("path", "C:\\Windows")]), (1, 9), "{name}");
    assert_eq!(sum(&open, "later_open_avg_ns", &[("path", "C:\\Windows")]), (1, 40_000), "{name}");

    let filters = dump("minifilter");
    let defender = ("module", "WdFilter.sys");
    assert_eq!(sum(&filters, "dur_ns", &[defender, app, ("phase", "pre")]), (40, 8_000_000), "{name}");
    let post = [defender, app, ("phase", "post"), ("major", "READ"), ("routine", "WdFilter.sys!PostRead")];
    assert_eq!(sum(&filters, "dur_ns", &post), (20, 2_000_000), "{name}");
    let failed = [other, ("module", "luafv.sys"), ("status_name", "STATUS_ACCESS_DENIED")];
    assert_eq!(sum(&filters, "dur_ns", &failed), (5, 75_000), "{name}: the begin is that of the Init event");
    assert_eq!(sum(&filters, "dur_ns", &[("path", "C:\\data\\f2")]).0, 20 + 20 + 5, "{name}");
    let costs = dump("minifilter_cost");
    assert_eq!(costs.len(), 3, "{name}");
    assert_eq!(sum(&costs, "files", &[defender, ("phase", "pre")]), (1, 2), "{name}");
    assert_eq!(sum(&costs, "p99_ns", &[defender, ("phase", "pre")]), (1, 200_000), "{name}");

    let registry = dump("registry");
    let nls = ("key", "HKLM\\SYSTEM\\CurrentControlSet\\Control\\Nls");
    assert_eq!(sum(&registry, "dur_ns", &[app, nls]), (400, 2_000_000), "{name}");
    assert_eq!(sum(&registry, "dur_ns", &[app, nls, ("op", "Open")]), (100, 500_000), "{name}");
    let user = [other, ("key", "HKU\\S-1-5-18\\A"), ("value", "one")];
    assert_eq!(sum(&registry, "dur_ns", &user), (50, 350_000), "{name}");
    let usage = dump("registry_usage");
    assert_eq!(sum(&usage, "repeats", &[app, nls, ("op", "QueryValue")]), (1, 199), "{name}");
    assert_eq!(sum(&usage, "failed", &[other]), (2, 100), "{name}");
    let stacks = dump("registry_stack");
    let with_stack = [app, ("leaf", "ntoskrnl.exe!NtQueryValueKey")];
    assert_eq!(sum(&stacks, "count", &with_stack), (3, 400), "{name}");
    assert_eq!(sum(&stacks, "total_ns", &with_stack), (3, 2_000_000), "{name}");

    let disk = dump("disk_io");
    assert_eq!(
        sum(&disk, "dur_ns", &[app, ("op", "read"), ("priority", "Normal")]),
        (60, 120_000_000),
        "{name}"
    );
    let files = dump("disk_file");
    assert_eq!(sum(&files, "reads", &[("path", "C:\\data\\d1")]), (1, 30), "{name}");

    for hint in ["registry_keys_unnamed", "file_operations_without_end", "file_ends_without_operation"] {
        let ledger = dump("ledger");
        assert!(ledger.iter().all(|row| row["name"] != hint), "{name}: {hint}");
    }
}

#[test]
fn all_is_found_by_name() {
    check("whole", "");
}

#[test]
fn names_come_at_the_end_only() {
    check("no rundown at the start", "rundown_start = false");
}

#[test]
fn keys_for_stacks_and_packed_buffers() {
    check("keys", "stack_style = 'keys'\ncompressed = true\nbuffer_size = '8KB'");
}

#[test]
fn a_machine_of_32_bits() {
    check("narrow", "pointer_size = 4");
}
