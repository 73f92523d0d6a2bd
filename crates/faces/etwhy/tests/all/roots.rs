//! Roots: who really made a window wait, with decoys, twins and missing buffers; and which waits are for locks.

use crate::{ETWHY, Json as _, Str as _};
use serde_json::Value;

/// A window that calls a broker, which hands the call on to another program, which works for 4 s. Two programs have its name.
const HANG: &str = r#"
[machine]
cpus = 8
duration = "8s"
context_switches = true

[[process]]
name = "explorer.exe"
threads = ["main"]

[[samples]]
process = "explorer.exe"
busy = 0.5
stack = "ntdll!RtlUserThreadStart;explorer.exe!wWinMain;explorer.exe!WndProc"

[[process]]
name = "editor.exe"
pid = 2000
threads = [{ name = "ui", tid = 2004 }]

[[process]]
name = "billing.exe"
pid = 3000
threads = ["idle"]

[[process]]
name = "billing.exe"
pid = 4000
threads = ["rpc"]

[[process]]
name = "broker.exe"
threads = ["rpc"]

[[manifest_event]]
process = "editor.exe"
provider = "8c416c79-d49b-4f01-a467-e56d3aa8234c"
id = 38
at = [5.6]
keyword = "0x40000"
fields = [{ type = "u32", value = 1 }, { type = "u32", value = 4200 }, { type = "u32", value = 520 }, { type = "u32", value = 540 }, "Edit", "MainWindow", "editor.exe", { type = "u32", value = 513 }, { type = "u64", value = 1 }]
"#;

const CALL: &str = r#"
[[alpc]]
process = "editor.exe"
thread = "ui"
at = [1.5]
servers = ["broker.exe/rpc", "billing.exe/rpc"]
service = ["20ms", "4s"]
server_stacks = ["broker.exe!Serve;broker.exe!Forward", "billing.exe!Serve;billing.exe!ComputeTotals"]
stack = "editor.exe!wWinMain;editor.exe!OnClick;rpcrt4.dll!NdrClientCall3"
"#;

const OWN_WORK: &str = r#"
[[samples]]
process = "editor.exe"
thread = "ui"
busy = 1
from = "1.4s"
to = "5.6s"
stack = "editor.exe!wWinMain;editor.exe!Layout"
"#;

/// The scenario of a finding.
fn shipped(id: &str) -> String {
    let file = format!("{id}.toml");
    let scenarios = etwhy_testkit::scenarios(&["scenarios/findings"]);
    let path = scenarios.into_iter().find(|path| path.file_name().is_some_and(|name| name == file.as_str()));
    std::fs::read_to_string(path.unwrap()).unwrap()
}

/// The answer of a finding about a written scenario.
fn asked(text: &str, id: &str, synth: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let (scenario, trace) = (folder.path().join("s.toml"), folder.path().join("s.etl"));
    std::fs::write(&scenario, text).unwrap();
    ETWHY.synth(&scenario, &trace, synth);
    let report: Value = ETWHY.partly().json(&["why", "--json", "-q", trace.str()]);
    report["findings"].list().iter().find(|finding| finding["id"] == id).unwrap().clone()
}

#[test]
fn the_root_of_a_hang_is_named_by_instance_and_not_the_layer_that_passes_on() {
    let hang = asked(&format!("{HANG}{CALL}"), "ui.hang", &[]);
    let hit = &hang["hits"][0];
    assert_eq!(hit["values"]["victim"], "editor.exe");
    assert_eq!(hit["values"]["culprit"], "billing.exe (4000)", "{hit:#}");
    let root_ns = hit["values"]["root_ns"].int();
    assert!((3_990_000_000..=4_010_000_000).contains(&root_ns), "{root_ns}");
    assert!(hit["headline"].str().contains("which worked in billing.exe!ComputeTotals"), "{hit:#}");
    assert!(hit["explanation"].str().contains("editor.exe > broker.exe > billing.exe"), "{hit:#}");
}

#[test]
fn a_window_that_works_itself_is_its_own_root() {
    let hang = asked(&format!("{HANG}{OWN_WORK}"), "ui.hang", &[]);
    assert_eq!(hang["hits"][0]["culprit"], "editor.exe");
    assert!(
        hang["hits"][0]["headline"].str().contains("the program itself worked in editor.exe!Layout"),
        "{hang:#}"
    );
}

/// DPCs of 20 ms that keep a thread from its processor, and a thread that has 170 ms of work there.
const INTERRUPTED: &str = r#"
[[dpc]]
routine = "wifi.sys!Scan"
cpus = [1]
from = "1s"
to = "5.8s"
rate = 48
duration = "20ms"
arrival = "exact"

[[task]]
thread = "editor.exe/ui"
cpus = [1]
at = [1.3]
steps = [{ run = "170ms" }]
stack = "editor.exe!wWinMain;editor.exe!Layout"
"#;

#[test]
fn what_dpcs_take_of_a_run_is_their_drivers_and_not_the_threads() {
    let hang = asked(&format!("{HANG}{INTERRUPTED}"), "ui.hang", &[]);
    let hit = &hang["hits"][0];
    assert_eq!((hit["culprit"].str(), hit["culprit_kind"].str()), ("wifi.sys", "driver"), "{hit:#}");
    let root_ns = hit["values"]["root_ns"].int();
    // 96 % of the 3.44 s in which it had its processor.
    assert!((3_250_000_000..=3_360_000_000).contains(&root_ns), "{root_ns}");
    assert!(hit["headline"].str().contains("which kept the processor with its DPCs and ISRs"), "{hit:#}");
    assert!(hit["explanation"].str().contains("editor.exe > wifi.sys"), "{hit:#}");
    // A tenth of the time is the card's, and the rest is the window's own work.
    let few = INTERRUPTED.replace("20ms", "50us").replace("rate = 48", "rate = 2000").replace("170ms", "4s");
    let hang = asked(&format!("{HANG}{few}"), "ui.hang", &[]);
    let hit = &hang["hits"][0];
    assert_eq!(hit["culprit"], "editor.exe", "{hit:#}");
    let root_ns = hit["values"]["root_ns"].int();
    assert!((3_650_000_000..=3_850_000_000).contains(&root_ns), "{root_ns}");
}

/// What is missing makes the root unknown, never another program guilty.
#[test]
fn missing_buffers_accuse_nobody() {
    let mut named = 0;
    for (loss, seed) in [("3%", 1), ("10%", 2), ("30%", 3), ("30%", 4)] {
        let text = format!("{HANG}{CALL}").replace("cpus = 8", &format!("cpus = 8\nseed = {seed}"));
        let hang = asked(&text, "ui.hang", &["--drop-buffers", loss]);
        for hit in hang["hits"].list() {
            let culprit = hit["culprit"].str();
            if culprit == "billing.exe" {
                // Its twin does nothing.
                assert_eq!(hit["values"]["culprit"], "billing.exe (4000)", "{loss}: {hit:#}");
            } else {
                assert_eq!(culprit, "[unknown]", "{loss}: {hit:#}");
                assert!(hit["headline"].str().contains("who made it wait is not known"), "{loss}: {hit:#}");
            }
            named += 1;
        }
    }
    assert!(named > 0, "the hang is found in no trace");
}

/// Calls through services on a large machine: a few missing buffers cost a few calls, and a lost reply makes no longer chain.
#[test]
fn missing_buffers_of_some_processors_leave_the_calls_of_others() {
    let text = shipped("service.formatting-chain");
    let chain = |text: &str, synth: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let (scenario, trace) = (folder.path().join("s.toml"), folder.path().join("s.etl"));
        std::fs::write(&scenario, text).unwrap();
        ETWHY.synth(&scenario, &trace, synth);
        let rows: Vec<Value> = ETWHY.partly().dump("service_chain", &trace);
        let depth = rows.iter().map(|row| row["depth"].int()).max().unwrap();
        let calls = rows.iter().filter(|row| row["depth"] == 0).map(|row| row["calls"].int()).max().unwrap();
        (depth, calls)
    };
    assert!(text.contains("cpus = 8"));
    let large = text.replace("cpus = 8", "cpus = 32");
    let (depth, calls) = chain(&large, &[]);
    for seed in 1..=4 {
        let text = large.replace("cpus = 32", &format!("cpus = 32\nseed = {seed}"));
        let (lossy_depth, lossy_calls) = chain(&text, &["--drop-buffers", "3%"]);
        assert!(lossy_depth <= depth, "seed {seed}: {lossy_depth} links, {depth} without loss");
        assert!(
            5 * lossy_calls >= 4 * calls && lossy_calls <= calls,
            "seed {seed}: {lossy_calls} of {calls} calls"
        );
    }
}

/// Threads that wait at a condition variable are a healthy pool; at a lock they queue; without stacks nobody knows.
#[test]
fn waits_are_told_by_their_stacks() {
    let text = shipped("lock.contention");
    let entered = "ntdll!RtlEnterCriticalSection;ntdll!RtlpEnterCriticalSectionContended;ntdll!RtlpWaitOnCriticalSection;";
    assert!(text.contains(entered));
    let condition = "KernelBase.dll!SleepConditionVariableSRW;ntdll!RtlSleepConditionVariableSRW;";
    let again = format!("{condition}ntdll!RtlAcquireSRWLockExclusive;");
    for (frames, answer, severity) in [
        (entered, "found", "warning"),
        ("ntdll!RtlAcquireSRWLockExclusive;", "found", "warning"),
        // It was woken, and waits for its lock.
        (again.as_str(), "found", "warning"),
        (condition, "not_found", ""),
    ] {
        let contention = asked(&text.replace(entered, frames), "lock.contention", &[]);
        assert_eq!(contention["answer"], answer, "{frames}");
        assert_eq!(contention["severity"].as_str().unwrap_or_default(), severity, "{frames}");
    }
    let bare = text.replace("context_switches = true", "context_switches = true\nswitch_stacks = false");
    assert_eq!(asked(&bare, "lock.contention", &[])["severity"], "info");
}

/// The kernel half of a sample's stack is kept whatever the width of pointers.
#[test]
fn drivers_of_32_bit_windows_are_found_too() {
    let text = shipped("security.driver-hot-path");
    let narrow = text.replacen("[machine]", "[machine]\npointer_size = 4", 1);
    let (wide, narrow) =
        (asked(&text, "security.driver-hot-path", &[]), asked(&narrow, "security.driver-hot-path", &[]));
    assert_eq!(narrow["answer"], "found");
    assert_eq!(narrow["hits"][0]["culprit"], wide["hits"][0]["culprit"]);
}

/// A window that waits for a thread of the System process, which works with this stack.
fn waits_for_system(stack: &str) -> Value {
    let call = format!(
        r#"
[[process]]
name = "System"
threads = ["worker"]

[[alpc]]
process = "editor.exe"
thread = "ui"
at = [1.5]
servers = ["System/worker"]
service = ["4s"]
server_stacks = ["nt!KiStartSystemThread;nt!PspSystemThreadStartup;{stack}"]
stack = "editor.exe!wWinMain;editor.exe!OnClick;rpcrt4.dll!NdrClientCall3"
"#
    );
    asked(&format!("{HANG}{call}"), "ui.hang", &[])["hits"][0].clone()
}

#[test]
fn a_root_on_a_worker_thread_is_the_driver_that_queued_the_work() {
    let hit = waits_for_system("nt!ExpWorkerThread;nt!IopProcessWorkItem;rtbackup.sys!Flush");
    assert_eq!((hit["culprit"].str(), hit["culprit_kind"].str()), ("rtbackup.sys", "driver"), "{hit:#}");
    assert!(
        hit["headline"].str().contains("led to rtbackup.sys, which worked in rtbackup.sys!Flush"),
        "{hit:#}"
    );
    // The cache's writer is Windows, whatever stands below it.
    let hit = waits_for_system("nt!ExpWorkerThread;nt!CcWorkerThread;nt!IofCallDriver;rtbackup.sys!Write");
    assert_eq!((hit["culprit"].str(), hit["culprit_kind"].str()), ("System", "process"), "{hit:#}");
}

#[test]
fn work_that_drivers_queue_to_system_is_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = etwhy_testkit::root().join("scenarios/system_worker_threads.toml");
    let trace = folder.path().join("s.etl");
    ETWHY.synth(&scenario, &trace, &["--scale", "0.1"]);
    let report: Value = ETWHY.json(&["why", "--json", "-q", trace.str()]);
    let finding = |id: &str| report["findings"].list().iter().find(|finding| finding["id"] == id).unwrap();
    let dominant = finding("cpu.dominant")["hits"].list();
    let named: Vec<&str> = dominant.iter().map(|hit| hit["culprit"].str()).collect();
    assert_eq!(named, ["rtbackup.sys"], "{dominant:#?}");
    // The writer finds room for all but three of 6,000 samples.
    assert_eq!(dominant[0]["cost_ns"].int(), 5_997_000_000);
    #[derive(serde::Deserialize)]
    struct Line {
        culprit: String,
        total_cpu_ns: i64,
    }
    let bill = "SELECT culprit, total_cpu_ns FROM bill WHERE kind = 'process' AND part = 'culprit' ORDER BY total_cpu_ns DESC";
    let bill: Vec<(String, i64)> = ETWHY
        .sql::<Line>(&trace, bill)
        .into_iter()
        .map(|line| (line.culprit, line.total_cpu_ns / 1_000_000))
        .collect();
    let ms = |name: &str| bill.iter().find(|(culprit, _)| culprit == name).unwrap().1;
    assert_eq!((ms("rtbackup.sys"), ms("quiet.sys"), ms("System (4)")), (5_997, 50, 1_000), "{bill:?}");
    // Without stacks nobody knows.
    ETWHY.synth(&scenario, &trace, &["--scale", "0.1", "--without", "Stack"]);
    let report: Value = ETWHY.json(&["why", "--json", "-q", trace.str()]);
    let dominant = report["findings"].list().iter().find(|finding| finding["id"] == "cpu.dominant").unwrap();
    let hit = &dominant["hits"][0];
    assert_eq!(hit["culprit"], "System");
    assert!(hit["explanation"].str().contains("cannot be determined"), "{hit:#}");
}

/// Waits that a thread of the System process ends, with this stack of the one that readies.
fn ended_by_system(ready_stack: &str) -> (Vec<String>, Vec<(String, i64)>) {
    let folder = tempfile::tempdir().unwrap();
    let (scenario, trace) = (folder.path().join("s.toml"), folder.path().join("s.etl"));
    let text = format!(
        r#"
[machine]
cpus = 4
duration = "2s"
context_switches = true

[[process]]
name = "System"
threads = ["worker"]

[[process]]
name = "app.exe"
threads = ["io*3"]

[[thread_activity]]
thread = "app.exe/io"
run = "1ms"
wait = "20ms"
wait_reason = "WrResource"
wait_mode = "kernel"
readied_by = "System/worker"
ready_stack = "nt!KiStartSystemThread;nt!PspSystemThreadStartup;{ready_stack};nt!ExReleaseResourceLite"
"#
    );
    std::fs::write(&scenario, text).unwrap();
    ETWHY.synth(&scenario, &trace, &[]);
    #[derive(serde::Deserialize)]
    struct Driver {
        driver: String,
    }
    let drivers = "SELECT DISTINCT coalesce(c.readying_driver, '') AS driver FROM wait_chain c JOIN process p ON p.upid = c.readying_upid \
                   WHERE p.pid = 4 AND c.readied_by = 'thread' AND c.wait_reason = 'WrResource'";
    let drivers = ETWHY.sql::<Driver>(&trace, drivers).into_iter().map(|row| row.driver).collect();
    #[derive(serde::Deserialize)]
    struct Line {
        culprit: String,
        imposed_wait_ns: i64,
    }
    let bill = "SELECT culprit, imposed_wait_ns FROM bill WHERE kind = 'process' AND imposed_wait_ns > 0";
    let bill =
        ETWHY.sql::<Line>(&trace, bill).into_iter().map(|row| (row.culprit, row.imposed_wait_ns)).collect();
    (drivers, bill)
}

#[test]
fn waits_that_a_work_item_ends_are_charged_to_its_driver() {
    let (drivers, bill) = ended_by_system("nt!ExpWorkerThread;nt!IopProcessWorkItem;rtbackup.sys!Flush");
    assert_eq!(drivers, ["rtbackup.sys"]);
    // Three threads wait 20 of every 21 ms.
    let [(name, ns)] = &bill[..] else { panic!("{bill:?}") };
    assert_eq!(name, "rtbackup.sys");
    assert!((5_400_000_000..5_800_000_000).contains(ns), "{ns}");
    // The cache's writer is Windows, whatever it meets further in; without names of the kernel's functions nobody knows.
    for stack in [
        "nt!ExpWorkerThread;nt!CcWorkerThread;rtbackup.sys!Write",
        "nt!ExpWorkerThread;nt!IopProcessWorkItem",
    ] {
        assert_eq!(ended_by_system(stack), (vec![String::new()], vec![]), "{stack}");
    }
}

#[test]
fn wake_ups_across_nodes_name_the_process_that_sits_elsewhere() {
    let text = shipped("net.numa-crossing");
    let found = asked(&text, "net.numa-crossing", &[]);
    let victims: Vec<&str> = found["hits"].list().iter().map(|hit| hit["values"]["victim"].str()).collect();
    assert_eq!((found["answer"].str(), victims), ("found", vec!["shop.exe"]), "{found:#}");
    assert_eq!(found["hits"][0]["share"].as_f64(), Some(1.0));
    assert_eq!(asked(&text, "net.numa-crossing", &["--no-cause"])["answer"], "not_found");
    let one = text.replace("numa_nodes = 2", "numa_nodes = 1");
    assert_eq!(asked(&one, "net.numa-crossing", &[])["answer"], "not_found");
    let unknown = asked(&text, "net.numa-crossing", &["--without", "SystemConfig"]);
    assert_eq!(unknown["answer"], "cannot_tell", "{unknown:#}");
}
