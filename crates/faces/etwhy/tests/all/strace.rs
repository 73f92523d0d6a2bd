//! `etwhy strace` on written traces: what it prints against what the scenario says.
//!
//! The first scenario writes context switches and system calls event by event, so that every number below was worked
//! out by hand from its text; the second uses tables that write many calls.

use crate::{ETWHY, Json as _, Str as _};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

struct Trace {
    _written: etwhy_testkit::Trace,
    path: PathBuf,
}

fn command(arguments: &[&str]) -> Command {
    let mut command = ETWHY.command(arguments);
    command.env_remove("COLUMNS");
    command
}

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn synth(scenario: &str) -> Trace {
    let written = ETWHY.scenario(scenario);
    Trace { path: written.to_owned(), _written: written }
}

impl Trace {
    fn strace(&self, arguments: &[&str]) -> (String, String) {
        let mut all = vec!["strace", self.path.str(), "--quiet"];
        all.extend(arguments);
        let output = run(&all);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {}\n{errors}", output.status);
        (String::from_utf8(output.stdout).unwrap(), errors)
    }

    fn lines(&self, arguments: &[&str]) -> Vec<String> {
        self.strace(arguments).0.lines().map(str::to_owned).collect()
    }

    fn json(&self, arguments: &[&str]) -> Vec<Value> {
        let mut all = vec!["--json"];
        all.extend(arguments);
        self.lines(&all).iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// One event of the kernel at a moment, on a processor.
fn event(kind: &str, cpu: u16, at: &str, fields: &str) -> String {
    format!(
        "[[event]]\ntype = \"{kind}\"\nprocess = \"a.exe\"\ncpus = {cpu}\nat = [\"{at}\"]\nfields = {{ {fields} }}\n"
    )
}

fn switch(cpu: u16, at: &str, old: &str, new: &str) -> String {
    let tid = |name: &str| if name == "idle" { "0".to_owned() } else { format!("\"thread:a.exe/{name}\"") };
    event("CSwitch", cpu, at, &format!("NewThreadId = {}, OldThreadId = {}", tid(new), tid(old)))
}

fn enter(cpu: u16, at: &str, function: &str) -> String {
    event("SysClEnter", cpu, at, &format!("SysCallAddress = \"frame:ntoskrnl.exe!{function}+0x0\""))
}

fn exit(cpu: u16, at: &str, status: &str) -> String {
    event("SysClExit", cpu, at, &format!("SysCallNtStatus = {status}"))
}

/// Two threads on two processors.
fn story() -> Trace {
    let head = r#"
[machine]
cpus = 2
duration = "1s"
context_switches = false
samples = false

[[process]]
name = "a.exe"
pid = 4000
threads = [{ name = "main", tid = 4004 }, { name = "worker", tid = 4008 }]

[[process]]
name = "child.exe"
pid = 5000
parent = "a.exe"
start = "400.5ms"

[[network]]
process = "a.exe"
thread = "main"
op = "send"
size = 1460
remote = "10.0.0.1:443"
at = ["500.05ms"]

[[disk_io]]
process = "a.exe"
thread = "main"
file = 'C:\data\x "y".bin'
size = 4096
offset = 8192
duration = "50us"
at = ["600.01ms"]

[[registry]]
process = "a.exe"
thread = "main"
op = "query_value"
key = 'HKLM\SOFTWARE\A'
value = "Speed"
duration = "20us"
at = ["20.12ms"]

[[file_io]]
process = "a.exe"
thread = "main"
op = "create"
file = 'C:\data\none.txt'
duration = "30us"
status = 0xC0000034
at = ["20.3ms"]
"#;
    let events = [
        switch(0, "10ms", "idle", "main"),
        switch(1, "15ms", "idle", "worker"),
        // Began before the trace.
        exit(1, "15.5ms", "0"),
        enter(1, "16ms", "NtDelayExecution"),
        switch(1, "17ms", "worker", "idle"),
        // A call inside a call; the outer one fails.
        enter(0, "20ms", "NtCreateFile"),
        enter(0, "20.1ms", "NtQueryValueKey"),
        exit(0, "20.2ms", "0"),
        exit(0, "20.5ms", "0xC0000034"),
        // Blocks on one processor, returns on the other.
        enter(0, "30ms", "NtWaitForSingleObject"),
        switch(0, "31ms", "main", "idle"),
        switch(1, "61ms", "idle", "main"),
        exit(1, "62ms", "0x102"),
        enter(1, "400ms", "NtCreateUserProcess"),
        exit(1, "401ms", "0"),
        enter(1, "500ms", "NtDeviceIoControlFile"),
        exit(1, "500.1ms", "0"),
        enter(1, "600ms", "NtReadFile"),
        exit(1, "600.2ms", "0"),
        enter(1, "700ms", "NtClose"),
        exit(1, "700.0003ms", "0xC0000008"),
    ];
    synth(&format!("{head}{}", events.concat()))
}

fn knows(table: &str) -> bool {
    let list = run(&["dump", "--list"]).stdout;
    String::from_utf8(list).unwrap().lines().any(|line| line.split_whitespace().next() == Some(table))
}

#[test]
fn calls_are_those_of_the_scenario() {
    let trace = story();
    let calls: Vec<_> = trace
        .json(&[])
        .iter()
        .map(|c| {
            let us = |key: &str| c[key].as_i64().map_or(-1, |ns| ns / 100);
            let function = c["function"].as_str().unwrap_or("?").rsplit('!').next().unwrap().to_owned();
            (
                function,
                c["tid"].int(),
                us("start_ns"),
                us("dur_ns"),
                us("on_cpu_ns"),
                us("off_cpu_ns"),
                c["depth"].as_i64().unwrap_or(-1),
                c["failed"].as_bool(),
                c["outcome"].str().to_owned(),
            )
        })
        .collect();
    // Times in units of 100 ns, the trace's clock.
    let expected = [
        ("?", 4008, -1, -1, -1, -1, -1, Some(false), "no_enter"),
        ("NtDelayExecution", 4008, 160_000, -1, -1, -1, -1, None, "unfinished"),
        ("NtCreateFile", 4004, 200_000, 5_000, 5_000, 0, 0, Some(true), "returned"),
        ("NtQueryValueKey", 4004, 201_000, 1_000, 1_000, 0, 1, Some(false), "returned"),
        ("NtWaitForSingleObject", 4004, 300_000, 320_000, 20_000, 300_000, 0, Some(false), "returned"),
        ("NtCreateUserProcess", 4004, 4_000_000, 10_000, 10_000, 0, 0, Some(false), "returned"),
        ("NtDeviceIoControlFile", 4004, 5_000_000, 1_000, 1_000, 0, 0, Some(false), "returned"),
        ("NtReadFile", 4004, 6_000_000, 2_000, 2_000, 0, 0, Some(false), "returned"),
        ("NtClose", 4004, 7_000_000, 3, 3, 0, 0, Some(true), "returned"),
    ]
    .map(|(f, tid, start, dur, on, off, depth, failed, outcome)| {
        (f.to_owned(), tid, start, dur, on, off, depth, failed, outcome.to_owned())
    });
    assert_eq!(calls, expected);
}

/// The kernel calls the program back inside of a call; the program comes back with `NtCallbackReturn`, which has no exit.
#[test]
fn callbacks_end_with_the_call_that_made_them() {
    let head = "[machine]\ncpus = 1\nduration = \"1s\"\ncontext_switches = false\nsamples = false\n\
                [[process]]\nname = \"a.exe\"\nthreads = [{ name = \"main\", tid = 4004 }]\n";
    let call = "SysCallAddress = \"frame:win32kfull.sys!NtUserMessageCall+0x0\"";
    let events = [
        switch(0, "10ms", "idle", "main"),
        event("SysClEnter", 0, "20ms", call),
        enter(0, "21ms", "NtClose"),
        exit(0, "22ms", "0"),
        enter(0, "23ms", "NtCallbackReturn"),
        // Handles look like errors, but win32k returns no NTSTATUS.
        exit(0, "25ms", "0xC0000034"),
        enter(0, "30ms", "NtContinue"),
        enter(0, "31ms", "NtClose"),
        exit(0, "32ms", "0"),
    ];
    let trace = synth(&format!("{head}{}", events.concat()));
    let calls: Vec<_> = trace
        .json(&[])
        .iter()
        .map(|c| {
            let function = c["function"].str().rsplit('!').next().unwrap().to_owned();
            let ms = c["dur_ns"].as_i64().map(|ns| ns / 1_000_000);
            (function, ms, c["depth"].as_i64(), c["failed"].as_bool(), c["outcome"].str().to_owned())
        })
        .collect();
    let expected = [
        ("NtUserMessageCall", Some(5), Some(0), None, "returned"),
        ("NtClose", Some(1), Some(1), Some(false), "returned"),
        ("NtCallbackReturn", None, Some(1), None, "no_return"),
        ("NtContinue", None, Some(0), None, "no_return"),
        ("NtClose", Some(1), Some(0), Some(false), "returned"),
    ]
    .map(|(f, ms, depth, failed, outcome)| (f.to_owned(), ms, depth, failed, outcome.to_owned()));
    assert_eq!(calls, expected);
    assert_eq!(trace.lines(&["--failed"]), Vec::<String>::new());
}

#[test]
fn lines_read_as_those_of_strace() {
    let trace = story();
    let all = trace.lines(&["-T"]);
    let line = |function: &str| {
        all.iter().find(|l| l.contains(function)).unwrap_or_else(|| panic!("{function}: {all:#?}")).clone()
    };
    assert_eq!(all.len(), 9);
    assert_eq!(
        all[0],
        format!("[4000/a.exe 4008]    0.015500 {:36} = 0 STATUS_SUCCESS <? cpu ?>", "<... resumed>")
    );
    assert_eq!(line("NtDelayExecution"), "[4000/a.exe 4008]    0.016000 NtDelayExecution(<unfinished ...>");
    assert!(
        line("NtWaitForSingleObject").ends_with(" = 0x102 STATUS_TIMEOUT <0.032000 cpu 0.002000>"),
        "{}",
        line("NtWaitForSingleObject")
    );
    // What the call made itself stands further right.
    assert!(line("NtQueryValueKey").contains(" 0.020100   NtQueryValueKey("));
    assert!(
        line("NtCreateUserProcess").contains(r#"child.exe", pid 5000) "#),
        "{}",
        line("NtCreateUserProcess")
    );
    assert!(
        line("NtDeviceIoControlFile").contains("(tcp send, 1460 bytes, 10.0.0.2:50000 > 10.0.0.1:443) = 0")
    );
    let read = line("NtReadFile");
    assert!(read.contains(r#"/* disk read 4096 bytes "C:\\data\\x \"y\".bin" <0.000050> */"#), "{read}");
    if knows("registry") {
        assert!(line("NtQueryValueKey").contains(r#"\\A", "Speed")"#), "{}", line("NtQueryValueKey"));
    }
    if knows("file_io") {
        assert!(line("NtCreateFile").contains(r#"("C:\\data\\none.txt""#), "{}", line("NtCreateFile"));
    }
}

#[test]
fn filters_choose() {
    let trace = story();
    let names = |arguments: &[&str]| -> Vec<String> {
        let lines = trace.json(arguments);
        let name = |c: &Value| c["function"].as_str().unwrap_or("!?").rsplit('!').next().unwrap().to_owned();
        lines.iter().map(name).collect()
    };
    assert_eq!(names(&["-e", "trace=file", "-e", "!NtRead*"]), ["NtCreateFile"]);
    assert_eq!(names(&["-e", "%registry,network"]), ["NtQueryValueKey", "NtDeviceIoControlFile"]);
    assert_eq!(names(&["-e", "NtC*", "--failed"]), ["NtCreateFile", "NtClose"]);
    assert_eq!(names(&["-Z"]), ["NtCreateFile", "NtClose"]);
    assert_eq!(names(&["-e", "status=unfinished"]), ["NtDelayExecution"]);
    assert_eq!(names(&["-e", "!file,sync,process,registry,network,object"]), ["?"]);
    assert_eq!(names(&["--from", "500ms", "--to", "700ms"]), ["NtDeviceIoControlFile", "NtReadFile"]);
    // 2025-03-01 08:00 in UTC, an hour ahead on the machine.
    for (from, to) in [
        ("+500ms", "0.7"),
        ("2025-03-01 09:00:00.5", "2025-03-01T08:00:00.7Z"),
        ("2025-03-01T10:00:00.5+02:00", "2025-03-01 09:00:00.7"),
    ] {
        let found = names(&["--since", from, "--until", to]);
        assert_eq!(found, ["NtDeviceIoControlFile", "NtReadFile"], "{from} {to}");
    }
    assert_eq!(names(&["--from", "-2h"]).len(), 9);
    assert_eq!(names(&["--to", "2025-03-01"]), [""; 0]);
    assert_eq!(names(&["-p", "a", "--top", "2"]), ["?", "NtDelayExecution"]);
    assert_eq!(names(&["-p", "4000", "-z", "-e", "sync"]), ["NtWaitForSingleObject"]);
    // The child itself made no calls; its parent is followed only downwards.
    let (out, errors) = trace.strace(&["-p", "5000", "-f"]);
    assert!(out.is_empty() && errors.contains("none of the 9 system calls"), "{errors}");
    let path = trace.path.str();
    for wrong in [["-p", "nobody"], ["-e", "trace=fiel"], ["-S", "size"], ["--from", "soon"]] {
        let output = run(&["strace", path, wrong[0], wrong[1]]);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn times_of_day_and_relative_times() {
    let trace = story();
    // The scenario starts at 08:00 UTC, local time is an hour ahead.
    assert!(trace.lines(&["-t", "-e", "NtClose"])[0].contains(" 09:00:00 NtClose("));
    assert!(trace.lines(&["-tt", "-e", "NtClose"])[0].contains(" 09:00:00.700000 NtClose("));
    assert!(trace.lines(&["-ttt", "-e", "NtClose"])[0].contains(" 1740816000.700000 NtClose("));
    let relative = trace.lines(&["-r", "-e", "NtReadFile,NtClose"]);
    assert!(relative[0].contains(" 0.000000 NtReadFile(") && relative[1].contains(" 0.100000 NtClose("));
}

#[test]
fn the_summary_counts_what_the_scenario_says() {
    let trace = synth(
        r#"
[machine]
cpus = 4
duration = "2s"
context_switches = true
samples = false

[[process]]
name = "server.exe"
threads = "worker*3"

[[process]]
name = "tool.exe"

[[syscall]]
process = "server.exe"
function = ["NtReadFile", "NtClose"]
count = 600
duration = "120us"

[[syscall]]
process = "tool.exe"
function = "NtOpenFile"
count = 50
duration = "50us"
status = 0xC0000034
"#,
    );
    let lines = trace.lines(&["-c", "-w"]);
    let fields: Vec<Vec<&str>> = lines.iter().map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(lines[0], "% time     seconds  usecs/call     calls    errors syscall");
    // 300 x 120 us, twice; 50 x 50 us.
    assert_eq!(fields[2], ["48.32", "0.036000", "120", "300", "NtClose"]);
    assert_eq!(fields[3], ["48.32", "0.036000", "120", "300", "NtReadFile"]);
    assert_eq!(fields[4], ["3.36", "0.002500", "50", "50", "50", "NtOpenFile"]);
    assert_eq!(fields[6], ["100.00", "0.074500", "114", "650", "50", "total"]);
    let by_errors = trace.lines(&["-c", "-S", "errors", "-p", "tool;server", "-n", "1"]);
    assert!(by_errors[2].ends_with("NtOpenFile") && by_errors[3].ends_with("... 2 more"), "{by_errors:#?}");
    // Calls hold their processor: time on processors is all of it.
    for call in trace.json(&[]) {
        assert_eq!(call["dur_ns"], call["on_cpu_ns"], "{call}");
        assert_eq!(call["outcome"], "returned");
    }
    let both = trace.lines(&["-C", "-e", "NtOpenFile"]);
    assert_eq!(both.len(), 50 + 5);
    // One thread or many: the same.
    assert_eq!(trace.strace(&["--threads", "1"]).0, trace.strace(&["--threads", "4"]).0);
}

#[test]
fn lines_fit_terminals() {
    let trace = story();
    let path = trace.path.str();
    for columns in [80, 200] {
        let output = command(&["strace", path, "-q"]).env("COLUMNS", columns.to_string()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let longest = text.lines().map(|l| l.chars().count()).max().unwrap();
        // Names and results are never cut, and of texts in quotes some characters stay.
        assert!(longest <= columns.max(140), "{columns}: {longest}\n{text}");
        assert!(
            text.contains("NtCreateFile(") && text.contains("STATUS_OBJECT_NAME_NOT_FOUND <0.000500>"),
            "{text}"
        );
    }
}

#[test]
fn files_pipes_and_traces_without_calls() {
    let trace = story();
    let to = trace.path.with_extension("txt");
    let (out, _) = trace.strace(&["-o", to.str()]);
    assert!(out.is_empty());
    assert_eq!(std::fs::read_to_string(&to).unwrap().lines().count(), 9);

    let many = synth(
        "[machine]\nduration = \"1s\"\nsamples = false\ncontext_switches = true\n[[syscall]]\nfunction = \"NtClose\"\ncount = 20000\n",
    );
    let mut child = command(&["strace", many.path.str(), "-q"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());

    let none = synth("[[process]]\nname = \"app.exe\"\n[[samples]]\nprocess = \"app.exe\"\nbusy = 1\n");
    let output = run(&["strace", none.path.str(), "-q"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.stdout.is_empty()
            && errors.contains("no system calls")
            && errors.contains("etwhy record --print syscall"),
        "{errors}"
    );
    // Nor does it have context switches, of any thread.
    let path = run(&["path", none.path.str(), "-q", "--process", "app.exe"]);
    let said = String::from_utf8_lossy(&path.stdout);
    assert!(path.status.success() && said.contains("context switches were not recorded"), "{path:?}");
}

#[test]
fn without_context_switches_only_stacks_name_threads() {
    let scenario = |stack: &str| {
        format!(
            "[machine]\nduration = \"1s\"\nsamples = false\ncontext_switches = false\n\
             [[process]]\nname = \"a.exe\"\n[[syscall]]\nprocess = \"a.exe\"\nfunction = \"NtClose\"\ncount = 10\n{stack}"
        )
    };
    for (stack, pid) in [("", false), ("stack = \"a.exe!main;ntdll.dll!NtClose\"\n", true)] {
        let trace = synth(&scenario(stack));
        let calls = trace.json(&[]);
        assert_eq!(calls.len(), 10);
        for call in &calls {
            assert_eq!(call["pid"].is_i64(), pid, "{call}");
            assert!(call["dur_ns"].is_null() && call["status"].is_null() && call["outcome"] == "unknown");
        }
        let (_, errors) = trace.strace(&["-c"]);
        assert!(errors.contains("syscalls_without_context_switches"), "{errors}");
    }
}

#[test]
fn missing_buffers_never_make_pairs_up() {
    // Every call holds its processor for exactly 40 us: what is paired across a hole would take longer.
    let trace = synth(
        "[machine]\ncpus = 2\nduration = \"4s\"\nsamples = false\ncontext_switches = true\nbuffer_size = \"4KB\"\n\
         [[process]]\nname = \"a.exe\"\nthreads = \"t*4\"\n\
         [[syscall]]\nprocess = \"a.exe\"\nfunction = [\"NtClose\", \"NtReadFile\", \"NtOpenKey\"]\ncount = 4000\nduration = \"40us\"\n",
    );
    let whole = trace.json(&[]);
    assert_eq!(whole.len(), 4000);
    let mut bytes = std::fs::read(&trace.path).unwrap();
    let damaged = Trace { path: trace.path.with_file_name("damaged.etl"), ..trace };
    // Every tenth buffer is gone; the session's first one stays.
    let mut kept = Vec::new();
    for (number, buffer) in bytes.chunks(4096).enumerate() {
        if number == 0 || number % 10 != 5 {
            kept.extend_from_slice(buffer);
        }
    }
    bytes = kept;
    std::fs::write(&damaged.path, bytes).unwrap();
    let left = damaged.json_in_part();
    assert!(left.len() > 3000, "{}", left.len());
    let known =
        |c: &Value| (c["start_ns"].as_i64(), (c["tid"].clone(), c["function"].clone(), c["ts_ns"].clone()));
    let truth: std::collections::BTreeMap<_, _> = whole.iter().map(known).collect();
    let mut returned = 0;
    for call in left.iter().filter(|c| c["outcome"] == "returned") {
        let (start, what) = known(call);
        assert_eq!(truth.get(&start), Some(&what), "{call}");
        assert_eq!(call["dur_ns"], 40_000, "{call}");
        returned += 1;
    }
    for call in left.iter().filter(|c| c["tid"].is_i64() && c["start_ns"].is_i64()) {
        assert_eq!(truth.get(&call["start_ns"].as_i64()).map(|t| &t.0), Some(&call["tid"]), "{call}");
    }
    println!("{returned} of 4000 paired without every tenth buffer");
    assert!(returned > 2000, "{returned}");
}

impl Trace {
    /// As [`Trace::json`], of a trace that cannot be read in full.
    fn json_in_part(&self) -> Vec<Value> {
        let output = run(&["strace", self.path.str(), "--quiet", "--json"]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(Path::new(&self.path).is_file());
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}
