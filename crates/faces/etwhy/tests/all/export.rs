//! What `etwhy export` writes, read by the programs that it is for.
//!
//! Each export of each trace must hold what our own tables hold: samples, weight, switches, events. The readers:
//!
//! * Perfetto: its trace processor (WebAssembly) with SQL, and its protobuf definitions for Python.
//! * pprof: protobuf for Python, `go tool pprof` where Go is installed, and speedscope.
//! * speedscope and folded stacks: speedscope in Chromium.
//! * Firefox Profiler: the structure that its source documents; the program itself has to be fetched and built.
//!
//! `scripts/test` installs what is needed: `ETWHY_PYTHON`, `ETWHY_VIEWERS` (a folder with `tests/viewers`' packages) and
//! `ETWHY_BROWSER`.

use etwhy_testkit::{Json as _, Program, Str as _};
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program.
const ETWHY: Program = crate::ETWHY.partly();

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");

/// A trace, and its tables.
struct Case {
    name: &'static str,
    trace: PathBuf,
    tables: PathBuf,
    folder: tempfile::TempDir,
}

const STORIES: [&str; 3] = ["dpc_flood", "findings/clr.gc-pause", "findings/ui.hang"];
const REAL: [&str; 2] =
    ["microsoft+perfview/net.4.5.x86_PerfViewData.etl", "microsoft+perfview/net.4.5.2.x64.etl"];

impl Case {
    fn new(name: &'static str, trace: Option<PathBuf>) -> Case {
        let folder = tempfile::tempdir().unwrap();
        let tables = folder.path().join("tables");
        let trace = trace.unwrap_or_else(|| {
            let trace = folder.path().join("trace.etl");
            ETWHY.synth(&etwhy_testkit::root().join(format!("scenarios/{name}.toml")), &trace, &[]);
            trace
        });
        ETWHY.run(&["extract", "-q", trace.str(), "-o", tables.str()]);
        Case { name, trace, tables, folder }
    }

    fn all() -> Vec<Case> {
        let mut cases: Vec<Case> = STORIES.iter().map(|name| Case::new(name, None)).collect();
        for name in REAL {
            let trace = etwhy_testkit::corpus_file(&format!("etl/{name}"));
            cases.extend(trace.map(|trace| Case::new(name, Some(trace))));
        }
        cases
    }

    fn export(&self, file: &str, options: &[&str]) -> PathBuf {
        let file = self.folder.path().join(file);
        // From the tables that are asked too: a trace knows fewer threads when fewer of its events are looked at.
        let (tables, out) = (self.tables.str(), file.str());
        ETWHY.run(&[&["export", "-q", tables, "-o", out], options].concat());
        file
    }

    /// The rows of a query on our tables.
    fn rows(&self, sql: &str) -> Vec<Vec<Value>> {
        let rows: Vec<serde_json::Map<String, Value>> = ETWHY.sql(&self.tables, sql);
        rows.into_iter().map(|row| row.into_iter().map(|(_, value)| value).collect()).collect()
    }

    /// The one number that each query on our tables gives; nothing is 0.
    fn numbers(&self, queries: &[String]) -> Vec<i64> {
        let columns = queries.iter().enumerate().map(|(n, sql)| format!("({sql}) as n{n}"));
        let row = self.rows(&format!("select {}", columns.collect::<Vec<_>>().join(", "))).remove(0);
        let number = |value: &Value| value.as_i64().or_else(|| value.as_f64().map(|n| n as i64));
        row.iter().map(|value| number(value).unwrap_or(0)).collect()
    }

    fn number(&self, sql: &str) -> i64 {
        self.numbers(&[sql.to_owned()])[0]
    }
}

/// Samples of threads that are not idle, and samples in DPCs and ISRs.
const BUSY: &str = "from sample s left join process p on p.upid = s.upid \
                    where not s.in_dpc and not s.in_isr and coalesce(p.pid, -1) <> 0";
const INTERRUPTS: &str = "from sample s where s.in_dpc or s.in_isr";

fn tool(variable: &str, what: &str) -> Option<OsString> {
    let found = std::env::var_os(variable).filter(|value| !value.is_empty());
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "{variable} is not set");
        etwhy_testkit::skipped(&format!("{what}, {variable} is not set (scripts/test sets it)"));
    }
    found
}

fn json_lines(output: std::process::Output) -> Vec<Value> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn python(script: &str, file: &Path) -> Option<Value> {
    let python = tool("ETWHY_PYTHON", script)?;
    let script = format!("{ROOT}/tests/python/{script}");
    Some(json_lines(Command::new(python).arg(script).arg(file).output().unwrap()).remove(0))
}

fn viewer(script: &str, arguments: &[&str]) -> Option<Vec<Value>> {
    let folder = tool("ETWHY_VIEWERS", script)?;
    Some(json_lines(Command::new("node").arg(script).args(arguments).current_dir(folder).output().unwrap()))
}

/// All in one, because reading the traces takes longer than checking.
#[test]
fn readers_see_what_our_tables_hold() {
    for case in Case::all() {
        perfetto(&case);
        weights(&case);
        firefox(&case);
    }
}

fn perfetto(case: &Case) {
    // Category, and the rows that have a start or an end.
    let events = [
        ("interrupt", "select (select count(*) from dpc) + (select count(*) from isr)"),
        ("gc", "select count(*) from clr_gc"),
        ("exception", "select count(*) from clr_exception"),
        ("contention", "select count(*) from clr_contention"),
        ("disk_io", "select count(*) from disk_io"),
        ("file_io", "select count(*) from file_io"),
        ("hard_fault", "select count(*) from hard_fault"),
        ("hang", "select count(*) from ui_delay"),
        ("mark", "select count(*) from mark"),
        ("syscall", "select count(*) from syscall where start_ns is not null or ts_ns is not null"),
    ];
    let file = case.export("trace.pftrace", &[]);
    let mut queries: Vec<String> = [
        format!("select count(*) {BUSY}"),
        format!("select count(*) {INTERRUPTS}"),
        "select count(*) from cswitch".to_owned(),
        "select coalesce((select sum(ts_ns - start_ns) from dpc), 0) + coalesce((select sum(ts_ns - start_ns) from isr), 0)".to_owned(),
        "select count(*) from cpu_time where busy_percent is not null".to_owned(),
        "select count(distinct stack_id) from sample where stack_id is not null".to_owned(),
    ]
    .into();
    queries.extend(events.iter().map(|(_, sql)| (*sql).to_owned()));
    let ours = case.numbers(&queries);
    let [busy, interrupts, switches, interrupt_ns, slices_of_time, stacks] = ours[..6] else {
        unreachable!()
    };
    let (samples, rows) = (busy + interrupts, &ours[6..]);
    let slices: i64 = rows.iter().sum();
    assert!(samples > 100, "{}: {samples} samples", case.name);
    if let Some(counts) = python("read_perfetto.py", &file) {
        assert_eq!(counts["perf_sample"], samples, "{}", case.name);
        assert_eq!(counts["sched_switch"].as_i64().unwrap_or(0), switches, "{}", case.name);
        let count = |name: &str| counts[name].as_i64().unwrap_or(0);
        assert_eq!(count("TYPE_SLICE_BEGIN") + count("TYPE_INSTANT"), slices, "{}", case.name);
    }
    let queries = [
        "select count(*) from perf_sample",
        "select count(*) from sched",
        "select category, count(*) from slice group by category",
        "select coalesce(sum(dur), 0) from slice where category = 'interrupt'",
        "select count(*) from counter c join track t on t.id = c.track_id where t.name like 'CPU % busy'",
        "select count(distinct callsite_id) from perf_sample",
        "select name, value from stats where value > 0 and severity in ('error', 'data_loss')",
        "select count(*) from perf_sample join thread using (utid) where thread.upid is null or thread.name is null",
    ];
    let Some(answers) = viewer("perfetto.mjs", &[[file.str()].as_slice(), &queries].concat()) else {
        return;
    };
    let one = |at: usize| answers[at][0][0].int();
    assert_eq!(one(0), samples, "{}", case.name);
    assert_eq!(one(1), switches, "{}", case.name);
    for ((category, _), rows) in events.iter().zip(rows) {
        let found = answers[2].list().iter().find(|row| row[0] == *category);
        let found = found.map_or(0, |row| row[1].int());
        assert_eq!(found, *rows, "{}: {category}", case.name);
    }
    assert_eq!(one(3), interrupt_ns, "{}", case.name);
    assert_eq!(one(4), slices_of_time, "{}", case.name);
    // Stacks that differ by process alone are one.
    assert!(one(5) > 0 && one(5) <= stacks, "{}", case.name);
    assert_eq!(answers[6], serde_json::json!([]), "{}: the trace processor has objections", case.name);
    assert_eq!(one(7), 0, "{}: samples of nobody", case.name);
}

/// `go tool pprof -raw`: sums of the two values of all samples.
fn go_pprof(file: &Path) -> Option<(i64, i64)> {
    let go = ["go", "/usr/local/go/bin/go"]
        .into_iter()
        .find(|go| Command::new(go).arg("version").output().is_ok_and(|output| output.status.success()));
    let Some(go) = go else {
        etwhy_testkit::skipped("go tool pprof, there is no Go");
        return None;
    };
    let output = Command::new(go).args(["tool", "pprof", "-raw"]).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let samples = text.split("\nSamples:\n").nth(1).unwrap().split("\nLocations\n").next().unwrap();
    let mut sums = (0, 0);
    for line in samples.lines().filter(|line| line.contains(':')) {
        let values: Vec<i64> =
            line.split(':').next().unwrap().split_whitespace().filter_map(|n| n.parse().ok()).collect();
        if let [count, weight] = values[..] {
            sums = (sums.0 + count, sums.1 + weight);
        }
    }
    Some(sums)
}

fn weights(case: &Case) {
    let pprof = case.export("trace.pb.gz", &[]);
    let folded = case.export("trace.folded", &[]);
    let speedscope = case.export("trace.speedscope.json", &[]);
    let ours = case.numbers(&[
        format!("select count(*) {BUSY}"),
        format!("select sum(s.weight_ns) {BUSY}"),
        "select min(start_unix_ns) from trace".to_owned(),
        format!("select count(*) from (select s.upid, s.utid {BUSY} group by s.upid, s.utid having sum(s.weight_ns) > 0)"),
    ]);
    let [samples, weight, start, threads] = ours[..] else { unreachable!() };
    assert!(weight > 0, "{}", case.name);
    let lines = std::fs::read_to_string(&folded).unwrap();
    let of = |line: &str| line.rsplit(' ').next().unwrap().parse::<i64>().unwrap();
    assert_eq!(lines.lines().map(of).sum::<i64>(), weight, "{}: folded", case.name);
    if let Some(sums) = go_pprof(&pprof) {
        assert_eq!(sums, (samples, weight), "{}: go tool pprof", case.name);
    }
    let read = python("read_pprof.py", &pprof);
    if let Some(read) = &read {
        assert_eq!(read["types"], serde_json::json!([["samples", "count"], ["cpu", "nanoseconds"]]));
        assert_eq!(read["totals"], serde_json::json!([samples, weight]), "{}", case.name);
        assert_eq!(read["default"], "cpu");
        assert_eq!(read["time_nanos"], start, "{}", case.name);
        let processes = case.rows(&format!(
            "select p.name || ' (' || p.pid || ')' || \
             case when coalesce(p.services, '') = '' then '' else ' [' || p.services || ']' end, sum(s.weight_ns) \
             {BUSY} and p.pid is not null group by p.upid"
        ));
        for row in processes {
            assert_eq!(read["processes"][row[0].str()], row[1], "{}: {}", case.name, row[0]);
        }
    }
    if tool("ETWHY_BROWSER", "speedscope").is_none() {
        return;
    }
    let files = [&speedscope, &pprof, &folded].map(|file| file.str());
    let Some(seen) = viewer("speedscope.mjs", &files) else { return };
    for (file, seen) in files.iter().zip(&seen) {
        let profiles = seen["profiles"].list();
        let total: i64 = profiles.iter().map(|p| p["total"].float() as i64).sum();
        assert_eq!(total, weight, "{}: {file} in speedscope", case.name);
    }
    assert_eq!(seen[0]["profiles"].list().len() as i64, threads, "{}", case.name);
    assert_eq!(seen[0]["profiles"][0]["unit"], "nanoseconds");
    // What each function itself took is the same whichever way it is told.
    let Some(read) = read else { return };
    for (name, own) in read["own"].fields() {
        for seen in &seen[..2] {
            let found = seen["own"][name].as_f64().unwrap_or(0.0) as i64;
            assert_eq!(found, own.int(), "{}: {name}", case.name);
        }
    }
}

fn firefox(case: &Case) {
    let file = case.export("trace.json", &[]);
    let profile: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let libs = profile["libs"].list().len();
    let categories = profile["meta"]["categories"].list();
    let schemas = profile["meta"]["markerSchema"].list();
    let (mut weight, mut markers, mut cpu_us) = (0, std::collections::BTreeMap::new(), 0);
    for thread in profile["threads"].list() {
        check_thread(thread, libs, categories.len());
        let samples = &thread["samples"];
        weight += numbers(&samples["weight"]).iter().sum::<i64>();
        if thread["processName"] != "DPC and ISR" {
            cpu_us += numbers(&samples["threadCPUDelta"]).iter().sum::<i64>();
        }
        for data in thread["markers"]["data"].list() {
            let kind = data["type"].str().to_owned();
            assert!(schemas.iter().any(|schema| schema["name"] == kind.as_str()), "{kind}");
            *markers.entry(kind).or_insert(0i64) += 1;
        }
    }
    let tables = [
        ("dpc", "where dur_ns > 100000"),
        ("isr", "where dur_ns > 25000"),
        ("clr_gc", ""),
        ("clr_exception", ""),
        ("disk_io", ""),
        ("file_io", ""),
        ("hard_fault", ""),
        ("ui_delay", ""),
        ("mark", ""),
    ];
    let mut queries = vec![format!("select count(*) {BUSY}"), format!("select count(*) {INTERRUPTS}")];
    queries.extend(tables.map(|(table, condition)| format!("select count(*) from {table} {condition}")));
    let ours = case.numbers(&queries);
    assert_eq!(weight, ours[0] + ours[1], "{}", case.name);
    for ((table, _), rows) in tables.iter().zip(&ours[2..]) {
        assert_eq!(markers.get(*table).copied().unwrap_or(0), *rows, "{}: {table}", case.name);
    }
    // CPU time is that of the context switches where there are any, each thread rounded down.
    let ran = "select coalesce(sum(c.cpu_ns), 0), count(distinct c.new_utid) from cswitch c \
               left join process p on p.upid = c.new_upid where c.run_ns is not null and coalesce(p.pid, -1) <> 0";
    let row = &case.rows(ran)[0];
    let (ran_ns, threads) = (row[0].float() as i64, row[1].int());
    if threads > 0 {
        assert!((ran_ns / 1000 - cpu_us).abs() <= threads, "{}: {ran_ns} ns, {cpu_us} µs", case.name);
    }
    if case.name == "findings/ui.hang" {
        // The story: one window does not look at its messages for 6 s.
        let threads = profile["threads"].list();
        let hung = threads
            .iter()
            .filter(|thread| thread["markers"]["data"].list().iter().any(|m| m["type"] == "ui_delay"));
        let names: Vec<&Value> = hung.map(|thread| &thread["processName"]).collect();
        assert!(names.iter().any(|name| *name == "editor.exe"), "{names:?}");
    }
}

fn numbers(list: &Value) -> Vec<i64> {
    list.list().iter().map(|n| n.int()).collect()
}

/// Lengths of columns agree, indexes are in range, times do not run backwards.
fn check_thread(thread: &Value, libs: usize, categories: usize) {
    let length = |table: &str| thread[table]["length"].uint() as usize;
    for table in
        ["frameTable", "funcTable", "stackTable", "samples", "nativeSymbols", "resourceTable", "markers"]
    {
        for (column, values) in thread[table].fields() {
            if let Some(values) = values.as_array() {
                assert_eq!(values.len(), length(table), "{table}.{column}");
            }
        }
    }
    let strings = thread["stringArray"].list().len();
    let within = |table: &str, column: &str, limit: usize| {
        for value in thread[table][column].list() {
            let fine = match value.as_i64() {
                Some(index) => index >= -1 && index < limit as i64,
                None => value.is_null(),
            };
            assert!(fine, "{table}.{column}: {value} of {limit}");
        }
    };
    within("samples", "stack", length("stackTable"));
    within("stackTable", "frame", length("frameTable"));
    within("stackTable", "prefix", length("stackTable"));
    within("frameTable", "func", length("funcTable"));
    within("frameTable", "nativeSymbol", length("nativeSymbols"));
    within("frameTable", "category", categories);
    within("funcTable", "name", strings);
    within("funcTable", "resource", length("resourceTable"));
    within("nativeSymbols", "name", strings);
    within("nativeSymbols", "libIndex", libs);
    within("resourceTable", "lib", libs);
    within("markers", "name", strings);
    within("markers", "category", categories);
    // A stack's prefix stands in front of it.
    for (at, prefix) in thread["stackTable"]["prefix"].list().iter().enumerate() {
        assert!(prefix.as_u64().is_none_or(|prefix| prefix < at as u64));
    }
    for delta in thread["samples"]["timeDeltas"].list() {
        assert!(delta.float() >= 0.0);
    }
    let (starts, ends) = (&thread["markers"]["startTime"], &thread["markers"]["endTime"]);
    for (start, end) in starts.list().iter().zip(ends.list()) {
        if let (Some(start), Some(end)) = (start.as_f64(), end.as_f64()) {
            assert!(start <= end || end == 0.0, "{start} {end}");
        }
    }
}

#[test]
fn filters_choose_processes_and_times() {
    let case = Case::new("dpc_flood", None);
    let busiest =
        format!("select p.name, p.pid, sum(s.weight_ns) {BUSY} group by p.upid order by 3 desc limit 1");
    let row = &case.rows(&busiest)[0];
    let (name, pid) = (row[0].str(), row[1].int());
    let process = format!("{pid}");
    let folded = case.export("one.folded", &["--process", &process, "--from", "1s", "--to", "2s"]);
    let lines = std::fs::read_to_string(folded).unwrap();
    let expected = case.number(&format!(
        "select sum(s.weight_ns) {BUSY} and p.pid = {pid} and s.ts_ns >= 1000000000 and s.ts_ns < 2000000000"
    ));
    assert!(expected > 0);
    let weight: i64 =
        lines.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<i64>().unwrap()).sum();
    assert_eq!(weight, expected);
    assert!(lines.lines().all(|line| line.starts_with(&format!("{name} ({pid})"))));
    // An extract says what the trace says. (Perfetto's stacks are numbered otherwise there.)
    let tables = case.tables.str();
    for format in ["folded", "speedscope", "pprof", "firefox"] {
        let [from_tables, from_trace] =
            [tables, case.trace.str()].map(|source| ETWHY.bytes(&["export", format, "-q", source]));
        assert!(!from_trace.is_empty() && from_tables == from_trace, "{format}");
    }
}
