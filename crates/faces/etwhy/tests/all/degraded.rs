//! Damage makes results fewer, never wrong: what is said of a trace with missing buffers is what the whole trace says.

use etwhy_testkit::{Json as _, Program, Str as _};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// The program.
const ETWHY: Program = crate::ETWHY.partly();

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

/// A reply whose request was lost is an ALPC message like any other: who sent and who received it must be true.
fn is_reply(row: &Map<String, Value>, whole: &Map<String, Value>) -> bool {
    let same = |of: &str, what: &str| row[of].is_null() || row[of] == whole[what];
    row["message_id"] == whole["message_id"]
        && row["send_ns"].is_i64()
        && row["send_ns"] == whole["reply_ns"]
        && same("receive_ns", "reply_receive_ns")
        && same("client_tid", "server_tid")
        && same("server_tid", "client_tid")
        && ["reply_ns", "reply_receive_ns", "wait_ns"].iter().all(|c| row[*c].is_null())
}

fn rows(trace: &Path, table: &str) -> Vec<Map<String, Value>> {
    ETWHY.dump(table, trace)
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
    ("pool", &["ts_ns", "address"], &["freed_ns", "size_bytes", "tid", "freed_by_tid"]),
    ("disk_io", &["ts_ns", "irp", "op"], &["start_ns", "dur_ns", "init_ns", "tid", "path", "size_bytes"]),
    ("minifilter", &["ts_ns", "routine", "irp"], &["start_ns", "dur_ns", "tid", "path", "status"]),
    ("page_fault", &["ts_ns", "cpu", "address"], &["kind", "tid", "process"]),
    ("hard_fault", &["ts_ns", "address"], &["start_ns", "dur_ns", "tid", "path", "size_bytes"]),
    ("virtual_alloc", &["ts_ns", "address", "op"], &["size_bytes", "freed_ns", "tid", "process"]),
    ("handle", &["ts_ns", "handle"], &["close_ns", "object_type", "tid", "closed_by_tid"]),
    (
        "alpc",
        &["send_ns", "receive_ns", "message_id"],
        &[
            "reply_ns",
            "reply_receive_ns",
            "round_trip_ns",
            "server_ns",
            "wait_ns",
            "port",
            "client_tid",
            "server_tid",
        ],
    ),
    ("network", &["ts_ns", "op", "connection"], &["process", "size_bytes", "remote"]),
    ("sample", &["ts_ns", "cpu"], &["tid", "ip", "weight_ns", "in_dpc"]),
];

/// Writes a story twice, whole and with a tenth of its buffers missing.
fn damaged(story: &str) -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("story.toml");
    std::fs::write(&scenario, story).unwrap();
    let [whole, damaged] = ["whole.etl", "damaged.etl"].map(|f| folder.path().join(f));
    ETWHY.synth(&scenario, &whole, &[]);
    ETWHY.synth(&scenario, &damaged, &["--drop-buffers", "10%"]);
    (folder, whole, damaged)
}

/// Compares the tables that have at least so many rows; returns how many values were, and by how many less is known.
fn compare(name: &str, whole: &Path, damaged: &Path, least: usize) -> BTreeMap<&'static str, (u64, u64)> {
    let mut counts = BTreeMap::new();
    for (table, key, values) in TABLES {
        let of = |row: &Map<String, Value>| key.iter().map(|k| row[*k].to_string()).collect::<Vec<_>>();
        let all: HashMap<Vec<String>, Map<String, Value>> =
            rows(whole, table).into_iter().map(|row| (of(&row), row)).collect();
        if all.len() < least {
            continue;
        }
        let left = rows(damaged, table);
        assert!(left.len() * 2 > all.len(), "{name}: {table}: {} of {} rows are left", left.len(), all.len());
        let (mut compared, mut unknown) = (0u64, 0u64);
        for row in &left {
            // A row whose begin was lost has another key; it must say that its begin is not known.
            let Some(truth) = all.get(&of(row)) else {
                if *table == "alpc" && all.values().any(|whole| is_reply(row, whole)) {
                    continue;
                }
                assert!(key.iter().any(|k| row[*k].is_null()), "{name}: {table}: made up {row:?}");
                continue;
            };
            for value in *values {
                let (had, wanted) = (&row[*value], &truth[*value]);
                unknown += u64::from(had.is_null() && !wanted.is_null());
                if !had.is_null() {
                    compared += 1;
                    assert_eq!(had, wanted, "{name}: {table}.{value} of {row:?}");
                }
            }
        }
        counts.insert(*table, (compared, unknown));
    }
    counts
}

#[test]
fn what_is_left_is_what_the_whole_trace_says() {
    let (_folder, whole, damaged) = damaged(SCENARIO);
    let missing: i64 = rows(&damaged, "ledger")
        .iter()
        .filter(|row| row["name"] == "buffers_missing")
        .map(|row| row["count"].int())
        .sum();
    assert!(missing > 20, "{missing} buffers are missing");
    let counts = compare("story", &whole, &damaged, 100);
    assert!(counts.len() >= 7, "{counts:?}");
    for (table, (compared, unknown)) in counts {
        assert!(compared > 1000, "{table}: only {compared} values are left");
        println!("{table}: {compared} values as in the whole trace, {unknown} not known any more");
    }
}

#[test]
fn scenarios_of_tables_with_missing_buffers() {
    let folder = etwhy_testkit::root().join("scenarios/tables");
    let mut sums = BTreeMap::<&str, (u64, u64)>::new();
    let mut wrong = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let file = file.unwrap().path();
        let name = file.file_stem().unwrap().str().to_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        let text = text.replacen("[machine]\n", "[machine]\nbuffer_size = \"4KB\"\n", 1);
        assert!(text.contains("4KB"), "{name}");
        let (_folder, whole, damaged) = damaged(&text);
        let missing = rows(&damaged, "ledger").iter().any(|row| row["name"] == "buffers_missing");
        assert!(missing, "{name}: the ledger says nothing");
        let counts = std::panic::catch_unwind(|| compare(&name, &whole, &damaged, 100));
        let Ok(counts) = counts else {
            wrong.push(name);
            continue;
        };
        for (table, (compared, unknown)) in counts {
            let sum = sums.entry(table).or_default();
            *sum = (sum.0 + compared, sum.1 + unknown);
        }
    }
    println!("values as in the whole trace, not known any more: {sums:#?}");
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(sums.len(), TABLES.len(), "{sums:?}");
}

#[test]
fn without_context_switches_nothing_is_attributed_by_processor() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("story.toml");
    std::fs::write(&scenario, SCENARIO.replace("context_switches = true", "context_switches = false"))
        .unwrap();
    let trace = folder.path().join("story.etl");
    ETWHY.synth(&scenario, &trace, &[]);
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

/// Who did what when the processor alone names the thread: nobody is named who is not named with context switches.
#[test]
fn without_context_switches_nobody_wrong_is_named() {
    let folder = etwhy_testkit::root().join("scenarios/tables");
    for name in ["syscall", "page_fault", "pool", "minifilter", "alpc"] {
        let text = std::fs::read_to_string(folder.join(format!("{name}.toml"))).unwrap();
        let place = tempfile::tempdir().unwrap();
        let tables = [true, false].map(|on| {
            let rest: Vec<&str> = text.lines().filter(|l| !l.starts_with("context_switches")).collect();
            let text =
                rest.join("\n").replacen("[machine]\n", &format!("[machine]\ncontext_switches = {on}\n"), 1);
            let story = place.path().join("story.toml");
            std::fs::write(&story, text).unwrap();
            let trace = place.path().join(format!("{on}.etl"));
            ETWHY.synth(&story, &trace, &[]);
            rows(&trace, name)
        });
        let [with, without] = tables;
        // What tells a row from others without its time and processor: threads that nobody sees run are placed anew.
        let key = |row: &Map<String, Value>| {
            let columns: &[&str] = match name {
                "syscall" => &["function", "tid"],
                "alpc" => &["message_id"],
                "minifilter" => &["irp"],
                "page_fault" => &["address", "kind"],
                _ => &["address"],
            };
            columns.iter().map(|c| row.get(*c).unwrap_or(&Value::Null).to_string()).collect::<Vec<_>>()
        };
        let all: HashMap<Vec<String>, &Map<String, Value>> = with.iter().map(|row| (key(row), row)).collect();
        let (mut named, mut unnamed) = (0, 0);
        for row in &without {
            for id in ["tid", "process", "client_tid", "client_process", "server_tid", "freed_by_tid"] {
                match row.get(id) {
                    None => {}
                    Some(Value::Null) => unnamed += 1,
                    Some(who) => {
                        named += 1;
                        let known = all.get(&key(row)).map(|r| &r[id]);
                        assert_eq!(known, Some(who), "{name}.{id} of {row:?}");
                    }
                }
            }
        }
        println!("{name}: {named} names as with context switches, {unnamed} not known");
        assert!(unnamed > 0 || name == "syscall", "{name}: names from nowhere");
    }
}
