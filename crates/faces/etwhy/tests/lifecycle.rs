//! Temporary files are gone whatever ends the program, and input that changes or never ends does not end it badly.
//!
//! A process of its own: programs are ended by signals at moments that a busy machine would miss.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use etwhy_testkit::text;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

fn etwhy(folder: &Path, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_etwhy"));
    command.args(line.split(' ').map(|word| word.replace('~', " ")));
    command.current_dir(folder).env("TMPDIR", folder.join("tmp"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn system(folder: &Path, program: &str, arguments: &[&str]) {
    assert!(
        Command::new(program).args(arguments).current_dir(folder).status().unwrap().success(),
        "{program}"
    );
}

/// A packed trace, an empty folder for temporary files, and a pipe that holds a command up when everything is unpacked and
/// open: nothing is read from it before somebody writes.
fn place() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("tmp")).unwrap();
    let made = etwhy(folder.path(), "synth --demo --scale 0.02 -o t.etl --quiet").output().unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
    system(folder.path(), "gzip", &["-k", "t.etl"]);
    system(folder.path(), "mkfifo", &["pipe"]);
    folder
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Waits until the command has opened its traces and asks for the pipe. Who opens a pipe for writing waits for the reader.
fn opened(folder: &Path) -> File {
    File::options().write(true).open(folder.join("pipe")).unwrap()
}

fn send(child: &Child, signal: &str) {
    system(Path::new("/"), "kill", &[&format!("-{signal}"), &child.id().to_string()]);
}

/// Commands that read traces, with what else they need.
const LINES: &[(&str, &str)] = &[
    ("dump", "dump process t.etl.gz"),
    ("explain", "explain app.exe!main t.etl.gz"),
    ("export", "export folded t.etl.gz -o f.txt"),
    ("extract", "extract t.etl.gz -o x --sqlite x.db"),
    ("flame", "flame t.etl.gz -o f.svg"),
    ("info", "info t.etl.gz"),
    ("modules", "modules t.etl.gz"),
    ("path", "path t.etl.gz"),
    ("sql", "sql t.etl.gz -c SELECT~1"),
    ("strace", "strace t.etl.gz"),
    ("tree", "tree t.etl.gz"),
    ("why", "why t.etl.gz"),
    ("diff", "diff t.etl.gz t.etl.gz"),
    ("segments", "segments t.etl.gz --fresh"),
    ("serve", "serve t.etl.gz"),
];

/// Whoever runs the tests may have had the signal ignored (`nohup`, a job in the background), and then the program leaves it so.
fn is_ignored(number: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (number - 1) & 1 == 1
}

#[test]
fn signals_leave_nothing_in_any_command() {
    let folder = place();
    let folder = folder.path();
    let before = entries(folder).len();
    let help = text(&etwhy(folder, "--help").output().unwrap().stdout);
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    for name in list.lines().filter_map(|line| line.trim().split(' ').next()) {
        let help = text(&etwhy(folder, &format!("{name} --help")).output().unwrap().stdout);
        if help.contains("--loggers") {
            assert!(LINES.iter().any(|line| line.0 == name), "`{name}` reads traces and needs a line here");
        }
    }
    let (ignored, signals): (Vec<_>, Vec<_>) =
        [("INT", 2), ("TERM", 15), ("HUP", 1)].into_iter().partition(|(_, number)| is_ignored(*number));
    if !ignored.is_empty() {
        etwhy_testkit::skipped(&format!("{ignored:?}, ignored where the tests run"));
    }
    assert!(!signals.is_empty());
    for (n, (_, line)) in LINES.iter().enumerate() {
        // All signals for some, one in turn for the others: they share everything but the command.
        for (name, number) in if n < 4 { &signals[..] } else { &signals[n % signals.len()..][..1] } {
            let child = etwhy(folder, &format!("{line} --loggers pipe -q")).spawn().unwrap();
            let pipe = opened(folder);
            assert!(!entries(&folder.join("tmp")).is_empty(), "{line}: unpacked to somewhere else");
            send(&child, name);
            let output = child.wait_with_output().unwrap();
            drop(pipe);
            // A server is there before its traces are read: asked to end, it ends well.
            let well = line.starts_with("serve") && output.status.code().is_some();
            let signal = output.status.signal();
            assert!(well || signal == Some(*number), "{line}: {signal:?} {}", text(&output.stderr));
            // The process that reads for a server ends after it.
            let gone = (0..200).any(|_| {
                std::thread::sleep(std::time::Duration::from_millis(25));
                entries(&folder.join("tmp")).is_empty()
            });
            assert!(gone, "{line} {name}: {:?}", entries(&folder.join("tmp")));
            assert_eq!(entries(folder).len(), before, "{line} {name}: {:?}", entries(folder));
        }
    }
}

#[test]
fn a_hangup_that_is_ignored_does_not_end_it() {
    let folder = place();
    let folder = folder.path();
    let line = format!("trap '' HUP; exec '{}' info t.etl.gz --loggers pipe -q", env!("CARGO_BIN_EXE_etwhy"));
    let mut command = Command::new("sh");
    command.args(["-c", &line]).current_dir(folder).env("TMPDIR", folder.join("tmp"));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pipe = opened(folder);
    send(&child, "HUP");
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(entries(&folder.join("tmp")), [] as [PathBuf; 0]);
}

#[test]
fn what_a_killed_run_left_goes_with_the_next_one() {
    let folder = place();
    let folder = folder.path();
    let child = etwhy(folder, "extract t.etl.gz --sqlite x.db --loggers pipe -q").spawn().unwrap();
    let pipe = opened(folder);
    send(&child, "KILL");
    child.wait_with_output().unwrap();
    drop(pipe);
    assert!(!entries(&folder.join("tmp")).is_empty());
    // Somebody else's, and one that is at work.
    fs::create_dir(folder.join("tmp/etwhy-mine00.tmp")).unwrap();
    let working = etwhy(folder, "info t.etl.gz --loggers pipe -q").spawn().unwrap();
    let pipe = opened(folder);
    let output = etwhy(folder, "info t.etl.gz -q").output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(entries(&folder.join("tmp")).len(), 2, "{:?}", entries(&folder.join("tmp")));
    drop(pipe);
    assert!(working.wait_with_output().unwrap().status.success());
    assert_eq!(entries(&folder.join("tmp")), [folder.join("tmp/etwhy-mine00.tmp")]);
}

#[test]
fn input_without_an_end_is_judged_by_its_beginning() {
    let folder = place();
    let folder = folder.path();
    for line in ["why /dev/zero", "why /dev/urandom", "evtx /dev/zero", "evtx /dev/urandom"] {
        let output = etwhy(folder, line).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{line}: {}", text(&output.stderr));
        assert_eq!(text(&output.stderr).lines().count(), 1, "{line}: {}", text(&output.stderr));
        // The marks of what was never made.
        assert_eq!(entries(&folder.join("tmp")), [] as [PathBuf; 0]);
    }
    for line in ["why -", "evtx -"] {
        let zeros = File::open("/dev/zero").unwrap();
        let output = etwhy(folder, line).stdin(zeros).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{line}: {}", text(&output.stderr));
    }
    // A trace from a pipe is read.
    let trace = File::open(folder.join("t.etl")).unwrap();
    let output = etwhy(folder, "info - -q").stdin(trace).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn a_trace_that_becomes_shorter_is_answered_in_words() {
    let folder = place();
    let folder = folder.path();
    let whole = fs::read(folder.join("t.etl")).unwrap();
    for (line, left) in
        [("why t.etl", 2), ("extract t.etl -o x --force", 3), ("dump process t.etl", whole.len())]
    {
        fs::write(folder.join("t.etl"), &whole).unwrap();
        let child = etwhy(folder, &format!("{line} --loggers pipe -q")).spawn().unwrap();
        let pipe = opened(folder);
        // The trace is open and mapped; what is behind is gone when it is read.
        let trace = File::options().write(true).open(folder.join("t.etl")).unwrap();
        trace.set_len((whole.len() / left) as u64).unwrap();
        drop(pipe);
        let output = child.wait_with_output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line}: {said}");
        assert!(said.contains("file_shrank (t.etl)"), "{line}: {said}");
    }
}

#[test]
fn a_server_outlives_a_trace_that_becomes_shorter() {
    let folder = place();
    let folder = folder.path();
    let mut child = etwhy(folder, "serve t.etl --port 0 --loggers pipe -q").spawn().unwrap();
    let pipe = opened(folder);
    let trace = File::options().write(true).open(folder.join("t.etl")).unwrap();
    trace.set_len(trace.metadata().unwrap().len() / 2).unwrap();
    drop(pipe);
    let mut address = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut address)
        .unwrap();
    let host = address.trim().strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
    let mut page = std::net::TcpStream::connect(&host).unwrap();
    page.write_all(format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes())
        .unwrap();
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut page, &mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 "), "{answer}");
    // The page is there before the trace is read; what is wrong with that is said afterwards.
    let said = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().unwrap()));
    assert!(said.map_while(Result::ok).any(|line| line.contains("file_shrank")));
    send(&child, "INT");
    let status = child.wait().unwrap();
    assert!(status.code().is_some(), "{status:?}");
}
