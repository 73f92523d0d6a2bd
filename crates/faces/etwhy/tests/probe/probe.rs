//! `etwhy probe run` when things go wrong: interrupted, no room, no rights, folders that are none, what killed runs leave.
#![cfg(target_os = "linux")]

use crate::ETWHY;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The exit code of a run that was not whole (docs/guide/ci.md, "Exit codes").
const IN_PART: i32 = 1;

fn etwhy(folder: &Path, words: &[&str]) -> Command {
    let mut command = ETWHY.command(&["probe", "run"]);
    command.args(words).arg("--quick").arg("--folder").arg(folder).env("COLUMNS", "80");
    command
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}

fn signal(name: &str, process: u32) {
    assert!(Command::new("kill").args([name, &process.to_string()]).status().unwrap().success());
}

/// Waits until so many folders of probes have been there, one after the other.
fn wait_for_folders(folder: &Path, count: usize) {
    let start = Instant::now();
    let mut seen = std::collections::BTreeSet::new();
    while seen.len() < count {
        assert!(start.elapsed() < Duration::from_secs(120), "{seen:?}");
        seen.extend(fs::read_dir(folder).unwrap().flatten().map(|entry| entry.file_name()));
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn ctrl_c_leaves_nothing_and_keeps_results() {
    let (folder, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = out.path().join("results.json");
    let words = [
        "file-open",
        "--rounds",
        "1000",
        "--set",
        "files=100",
        "--quiet",
        "--output",
        file.to_str().unwrap(),
    ];
    let child = etwhy(folder.path(), &words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The first operation has a folder of its own: with the third one there are results of two.
    wait_for_folders(folder.path(), 3);
    signal("-INT", child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(IN_PART), "{}", said(&output));
    assert!(said(&output).contains("interrupted"), "{}", said(&output));
    assert!(is_empty(folder.path()));
    let results: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let probe = &results["probes"][0];
    assert_eq!(probe["ended"], "interrupted");
    assert!(probe["samples"].as_array().unwrap().len() >= 3, "{probe}");
}

#[test]
fn what_killed_runs_leave_is_removed_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["file-open", "--rounds", "1000", "--set", "files=3000", "--set", "bytes=100", "--quiet"];
    let mut child = etwhy(folder.path(), &words).stdout(Stdio::null()).spawn().unwrap();
    wait_for_folders(folder.path(), 1);
    std::thread::sleep(Duration::from_millis(200));
    signal("-KILL", child.id());
    child.wait().unwrap();
    // Another one with thousands of files, of a process number that Linux never gives.
    let old = folder.path().join("etwhy-probe-4194305-00000000");
    fs::create_dir_all(old.join("files")).unwrap();
    fs::write(old.join(".etwhy-probe"), "").unwrap();
    for number in 0..4000 {
        fs::write(old.join(format!("files/{number}")), "").unwrap();
    }
    let before = fs::read_dir(folder.path()).unwrap().count();
    let output =
        etwhy(folder.path(), &["name-search", "--rounds", "1", "--set", "files=100"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        said(&output).contains(&format!("{before} folders of runs that were killed were removed")),
        "{}",
        said(&output)
    );
    assert!(is_empty(folder.path()));
}

/// A small file system in memory; none without the right to mount it.
struct Small(tempfile::TempDir, PathBuf);

impl Small {
    fn new(options: &str) -> Option<Small> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("small");
        fs::create_dir(&path).unwrap();
        let output = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(&path).output();
        match output {
            Ok(output) if output.status.success() => Some(Small(folder, path)),
            other => {
                etwhy_testkit::skipped(&format!(
                    "a small file system cannot be mounted: {}",
                    other.map_or_else(|e| e.to_string(), |o| said(&o)).trim()
                ));
                None
            }
        }
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.1).status();
        let _ = &self.0;
    }
}

#[test]
fn a_disk_that_is_too_small_is_told_before_anything_is_written() {
    let Some(small) = Small::new("size=4m") else { return };
    let output = etwhy(&small.1, &["file-open", "--rounds", "1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(IN_PART), "{}", said(&output));
    assert!(
        said(&output).contains("bytes are needed and") && said(&output).contains("--folder"),
        "{}",
        said(&output)
    );
    assert!(is_empty(&small.1));
}

#[test]
fn a_disk_that_gets_full_is_an_error_with_its_file() {
    // Room for bytes, none for names: that shows only when files are made.
    let Some(small) = Small::new("size=256m,nr_inodes=200") else { return };
    let output = etwhy(&small.1, &["file-open", "--rounds", "1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(IN_PART), "{}", said(&output));
    let said = said(&output).replace('\n', " ");
    assert!(said.contains("No space left on device") && said.contains("create"), "{said}");
    assert!(is_empty(&small.1));
}

#[test]
fn a_folder_without_rights_is_told() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let plain = etwhy(folder.path(), &["name-search", "--rounds", "1"]);
    let is_root =
        fs::metadata("/proc/self").is_ok_and(|facts| std::os::unix::fs::MetadataExt::uid(&facts) == 0);
    let output = if is_root {
        // Rights bind everybody but root: as nobody, who must be able to start the program.
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(plain.get_program())
            .args(plain.get_args());
        match command.output() {
            Ok(output) if output.status.code() != Some(126) && output.status.code() != Some(127) => output,
            other => {
                return etwhy_testkit::skipped(&format!(
                    "the program cannot be started as nobody: {other:?}"
                ));
            }
        }
    } else {
        let mut plain = plain;
        plain.output().unwrap()
    };
    assert_eq!(output.status.code(), Some(IN_PART), "{}", said(&output));
    let said = said(&output).replace('\n', " ");
    assert!(said.contains("Permission denied") && said.contains("create"), "{said}");
    assert!(is_empty(folder.path()));
}

#[test]
fn places_that_hold_no_files_are_told() {
    let output = etwhy(Path::new("/proc"), &["file-open", "--rounds", "1"]).output().unwrap();
    let text = said(&output).replace('\n', " ");
    assert!(!output.status.success() && text.contains("/proc: "), "{text}");
    let output = etwhy(Path::new("/no/such/folder"), &["file-open"]).output().unwrap();
    assert!(
        !output.status.success() && said(&output).contains("/no/such/folder: no folder"),
        "{}",
        said(&output)
    );
}
