//! `etwhy probe run --record` with a script in the place of `wpr`: which commands it gets, in which order, and what happens when
//! they fail. That the real `wpr` records is not shown here.
#![cfg(unix)]

use crate::ETWHY;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

struct ToolFolder {
    folder: tempfile::TempDir,
}

impl ToolFolder {
    /// A folder with a program that writes down how it is called, and does `start` or `stop` (lines of a shell script).
    fn new(start: &str, stop: &str) -> ToolFolder {
        let folder = tempfile::tempdir().unwrap();
        let place = ToolFolder { folder };
        let script = format!(
            "#!/bin/sh\nhere='{0}'\necho \"$@\" >> \"$here/calls\"\ncase $1 in\n-start) cp \"${{2%!*}}\" \"$here/profile\"; {start};;\n\
             -stop) {stop};;\nesac\n",
            place.folder.path().display()
        );
        let file = place.path("wpr");
        std::fs::write(&file, script).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, more: &[&str]) -> Command {
        let probes = self.path("probes");
        std::fs::create_dir_all(&probes).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_etwhy"));
        command
            .args(["probe", "run", "name-search", "--quick", "--rounds", "1", "--quiet", "--folder"])
            .arg(probes)
            .arg("--record")
            .arg(self.path("out.etl"))
            .args(more)
            .env("ETWHY_WPR", self.path("wpr"))
            .stdin(Stdio::null());
        command
    }

    fn run(&self, more: &[&str]) -> Output {
        self.command(more).output().unwrap()
    }

    /// What the program was asked for: the first word of each call.
    fn calls(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path("calls")).unwrap_or_default();
        text.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    }
}

fn errors(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_recording_is_started_stopped_and_checked() {
    let place = ToolFolder::new(":", "cp \"$here/demo.etl\" \"$2\"");
    ETWHY.demo(&place.path("demo.etl"));
    let output = place.run(&["--set", "files=100", "--record-profile", "cpu,registry"]);
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    assert_eq!(place.calls(), ["-start", "-stop"]);
    let calls = std::fs::read_to_string(place.path("calls")).unwrap();
    assert!(calls.lines().next().unwrap().ends_with(".wprp!cpu-registry -filemode"), "{calls}");
    let profile = std::fs::read_to_string(place.path("profile")).unwrap();
    // The profile is the one that `etwhy record` prints.
    let printed = Command::new(env!("CARGO_BIN_EXE_etwhy"))
        .args(["record", "--print", "cpu,registry"])
        .output()
        .unwrap();
    assert_eq!(profile, String::from_utf8(printed.stdout).unwrap());
    let said = errors(&output);
    assert!(said.contains("`etwhy why ") && said.contains("out.etl"), "{said}");
}

#[test]
fn what_is_refused_is_not_cancelled() {
    let place = ToolFolder::new("echo 'Zugriff verweigert' >&2; exit 5", "exit 1");
    let output = place.run(&[]);
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("administrator's console") && said.contains("Zugriff verweigert"), "{said}");
    // Somebody else's recording may run: it is not ours to end.
    assert_eq!(place.calls(), ["-start"]);
    assert!(output.stdout.is_empty(), "no probe ran");
}

#[test]
fn a_stop_that_fails_ends_the_recording_and_keeps_the_results() {
    let place = ToolFolder::new(":", "echo 'disk full'; exit 112");
    let output = place.run(&["--set", "files=100"]);
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("disk full") && said.contains("cancelled"), "{said}");
    assert_eq!(place.calls(), ["-start", "-stop", "-cancel"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("name-search"));
}

#[test]
fn success_without_a_trace_is_not_believed() {
    for (stop, hint) in [(":", "not there"), ("echo nothing > \"$2\"", "no trace")] {
        let place = ToolFolder::new(":", stop);
        let output = place.run(&["--set", "files=100"]);
        let said = errors(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("wpr reports success") && said.contains(hint), "{said}");
    }
}

#[test]
fn a_file_that_is_there_stays() {
    let place = ToolFolder::new(":", ":");
    std::fs::write(place.path("out.etl"), "precious").unwrap();
    let output = place.run(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("is there already"), "{}", errors(&output));
    assert!(place.calls().is_empty());
    assert_eq!(std::fs::read_to_string(place.path("out.etl")).unwrap(), "precious");
}

#[test]
fn ctrl_c_cancels() {
    let place = ToolFolder::new(":", "exit 1");
    let child = place
        .command(&["--set", "files=20000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while place.calls().is_empty() && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(place.calls(), ["-start", "-cancel"], "{}", errors(&output));
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(std::fs::read_dir(place.path("probes")).unwrap().count(), 0);
}

#[test]
fn elsewhere_it_is_windows_that_is_missing() {
    let output = Command::new(env!("CARGO_BIN_EXE_etwhy"))
        .args(["probe", "run", "name-search", "--record", "/tmp/never-written.etl"])
        .env_remove("ETWHY_WPR")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("only Windows has"), "{}", errors(&output));
}
