//! What only Windows does to a command line program: UTF-16 arguments, long paths, reserved names, drives, line ends.
//! `scripts/test-windows` runs it under Wine; docs/windows.md says what Wine does otherwise.
#![cfg(windows)]

use crate::{ETWHY, Json as _, Str as _};
use etwhy_testkit::Run as _;
use std::ffi::{OsStr, OsString};
use std::os::windows::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

struct Ran {
    code: Option<i32>,
    out: Vec<u8>,
    errors: String,
}

fn etwhy<T: AsRef<OsStr>>(arguments: &[T]) -> Ran {
    let output = ETWHY.command(arguments).env("COLUMNS", "200").stdin(Stdio::null()).outcome();
    let errors = String::from_utf8(output.stderr).expect("messages are UTF-8");
    assert!(!errors.contains("panicked"), "{errors}");
    Ran { code: output.status.code(), out: output.stdout, errors }
}

fn with(command: &[&str], path: &Path) -> Ran {
    let mut arguments: Vec<OsString> = command.iter().map(OsString::from).collect();
    arguments.push(path.into());
    etwhy(&arguments)
}

/// Writes the demonstration trace to that path.
fn demo(path: &Path) {
    let ran = with(&["synth", "--demo", "--quiet", "-o"], path);
    assert_eq!(ran.code, Some(0), "{}", ran.errors);
    assert!(path.metadata().unwrap().len() > 100_000);
}

fn text(ran: &Ran) -> &str {
    std::str::from_utf8(&ran.out).expect("output is UTF-8, redirected too")
}

#[test]
fn names_in_any_script_are_taken_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    // Latin, Greek, Chinese, and one character that UTF-16 writes as two.
    let inside = folder.path().join("Prüfung Ωμέγα 測試 🦀");
    std::fs::create_dir(&inside).unwrap();
    let trace = inside.join("spur 🐢.etl");
    demo(&trace);
    let ran = with(&["info", "--quiet"], &trace);
    assert_eq!(ran.code, Some(0), "{}", ran.errors);
    assert!(text(&ran).contains("spur 🐢.etl"), "{}", text(&ran));

    let missing = with(&["info"], &inside.join("fehlt ☃ 🦀.etl"));
    assert_eq!(missing.code, Some(2));
    assert!(missing.errors.contains("fehlt ☃ 🦀.etl"), "{}", missing.errors);

    let csv = inside.join("aus 🦀.csv");
    let trace = trace.str();
    let ran = etwhy(&["dump", "process", trace, "--quiet", "-o", csv.str()]);
    assert_eq!(ran.code, Some(0), "{}", ran.errors);
    assert!(std::fs::read_to_string(csv).unwrap().lines().count() > 2);
}

#[test]
fn names_that_are_no_text_make_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    // Halves of characters, which Windows allows in names.
    for units in [&[0xD800, 0x78][..], &[0x78, 0xDC00], &[0xDFFF, 0xD800], &[0xD83E]] {
        let name = OsString::from_wide(units);
        let path = folder.path().join(&name).with_extension("etl");
        for command in
            [&["info"][..], &["why", "--quiet"], &["dump", "process"], &["evtx"], &["symbols", "path"]]
        {
            let ran = with(command, &path);
            assert!(matches!(ran.code, Some(0..=5)), "{command:?} {units:x?}: {:?} {}", ran.code, ran.errors);
        }
        for arguments in [
            &[OsStr::new("sql"), &name, path.as_os_str()][..],
            &[OsStr::new("probe"), OsStr::new("list"), &name],
            &[&name],
            &[
                OsStr::new("synth"),
                OsStr::new("--demo"),
                OsStr::new("--quiet"),
                OsStr::new("-o"),
                path.as_os_str(),
            ],
        ] {
            let ran = etwhy(arguments);
            assert!(matches!(ran.code, Some(0..=5)), "{arguments:?}: {:?} {}", ran.code, ran.errors);
        }
        // Where the file system takes such a name, its file is read as any other.
        if path.is_file() {
            assert_eq!(with(&["info", "--quiet"], &path).code, Some(0));
        }
    }
}

/// A folder whose path is longer than `MAX_PATH` (260).
fn deep(folder: &Path) -> PathBuf {
    let mut path = folder.to_path_buf();
    for n in 0..8 {
        path.push(format!("{n}-{}", "long folder name ".repeat(3).trim_end()));
    }
    std::fs::create_dir_all(&path).unwrap();
    assert!(path.as_os_str().len() > 350);
    path
}

#[test]
fn paths_may_be_longer_than_260() {
    let folder = tempfile::tempdir().unwrap();
    let deep = deep(folder.path());
    let trace = deep.join("trace.etl");
    demo(&trace);
    let path = trace.str();
    for command in [&["info", "--quiet"][..], &["why", "--quiet"]] {
        let ran = with(command, &trace);
        assert_eq!(ran.code, Some(0), "{command:?}: {}", ran.errors);
        assert!(!ran.out.is_empty());
    }
    // Everything that is written: tables, an extract, SQLite, a report, temporary files.
    let temp = deep.join("temp");
    std::fs::create_dir(&temp).unwrap();
    for (arguments, file) in [
        (&["dump", "process", "-o"][..], "process.parquet"),
        (&["extract", "-o"], "part"),
        (&["extract", "--sqlite"], "all.sqlite"),
        (&["why", "--html"], "report.html"),
    ] {
        let target = deep.join(file);
        let mut all = arguments.to_vec();
        all.extend([target.str(), path, "--quiet", "--temp-dir", temp.str()]);
        let ran = etwhy(&all);
        assert_eq!(ran.code, Some(0), "{all:?}: {}", ran.errors);
        assert!(target.exists(), "{file}");
    }
    assert_eq!(with(&["info", "--quiet"], &deep.join("part")).code, Some(0));
    // The same file under the name that Windows does not interpret.
    let verbatim = PathBuf::from(format!(r"\\?\{path}"));
    assert_eq!(with(&["info", "--quiet"], &verbatim).code, Some(0));
}

#[test]
fn reserved_names_are_devices_and_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("demo.etl");
    demo(&trace);
    let names = || -> std::collections::BTreeSet<OsString> {
        std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect()
    };
    let before = names();
    assert!(!before.is_empty());
    let run = |arguments: &[&str]| {
        let output = ETWHY.command(arguments).current_dir(folder.path()).stdin(Stdio::null()).outcome();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    // Output into nothing, as /dev/null: done, and nothing is left in the folder.
    for name in ["NUL", "nul"] {
        let (code, errors) = run(&["dump", "process", "demo.etl", "--quiet", "--format", "csv", "-o", name]);
        assert_eq!(code, Some(0), "{name}: {errors}");
        let (code, errors) = run(&["record", "--print", "cpu", "-o", name]);
        assert_eq!(code, Some(0), "{name}: {errors}");
    }
    // A device that is not there, or that cannot be read: told, with its name.
    for name in ["COM9", "LPT3"] {
        let (code, errors) = run(&["dump", "process", "demo.etl", "--quiet", "--format", "csv", "-o", name]);
        assert!(code == Some(0) || (code == Some(2) && errors.contains(name)), "{name}: {code:?} {errors}");
    }
    for name in ["NUL", "CON", "AUX", "COM9"] {
        let (code, errors) = run(&["info", name]);
        assert!(matches!(code, Some(2 | 3)) && errors.contains(name), "{name}: {code:?} {errors}");
        assert!(!errors.contains("panicked"), "{errors}");
    }
    assert_eq!(names(), before);
}

#[test]
fn drives_shares_and_devices_are_named_in_messages() {
    for path in [
        r"C:no such trace.etl",
        r"Q:\no such drive\trace.etl",
        r"\no such folder\trace.etl",
        r"\\.\no such device",
        r"\\?\C:\no such folder\trace.etl",
        r"\\127.0.0.1\no such share\trace.etl",
        r"C:\con<>|?.etl",
        "x.etl:stream",
    ] {
        let ran = etwhy(&["info", path]);
        assert_eq!(ran.code, Some(2), "{path}: {}", ran.errors);
        let last = path.rsplit(['\\', ':']).next().unwrap();
        assert!(ran.errors.contains(last), "{path}: {}", ran.errors);
        assert_eq!(ran.errors.lines().count(), 1, "{path}: {}", ran.errors);
    }
}

#[test]
fn backslashes_and_slashes_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    demo(&folder.path().join("demo.etl"));
    let back = folder.path().join("demo.etl").str().to_owned();
    let slash = back.replace('\\', "/");
    let (a, b) = (
        etwhy(&["dump", "process", &back, "--format", "csv", "--quiet"]),
        etwhy(&["dump", "process", &slash, "--format", "csv", "--quiet"]),
    );
    assert_eq!((a.code, &a.out), (Some(0), &b.out));
}

#[test]
fn line_ends_of_windows_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scenarios/findings");
    let scenario = std::fs::read_dir(scenario).unwrap().map(|e| e.unwrap().path()).min().unwrap();
    let lf = std::fs::read_to_string(scenario).unwrap().replace("\r\n", "\n");
    let mut traces = Vec::new();
    for (name, text) in [("lf", lf.clone()), ("crlf", lf.replace('\n', "\r\n"))] {
        let (file, trace) =
            (folder.path().join(format!("{name}.toml")), folder.path().join(format!("{name}.etl")));
        std::fs::write(&file, text).unwrap();
        let ran = etwhy(&[
            OsStr::new("synth"),
            file.as_os_str(),
            OsStr::new("-o"),
            trace.as_os_str(),
            OsStr::new("--scale"),
            OsStr::new("0.1"),
            OsStr::new("--quiet"),
        ]);
        assert_eq!(ran.code, Some(0), "{}", ran.errors);
        traces.push(std::fs::read(trace).unwrap());
    }
    assert!(traces[0] == traces[1], "a scenario with CRLF is another trace");
    // And output has the line ends of everywhere.
    let ran = etwhy(&["record", "--print", "cpu", "--format", "xperf"]);
    assert!(!ran.out.contains(&b'\r') && ran.out.contains(&b'\n'));
}

#[test]
fn exit_codes_come_through() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("demo.etl");
    demo(&trace);
    let no_trace = folder.path().join("notes.etl");
    std::fs::write(&no_trace, "These are notes and no trace at all.\r\n").unwrap();
    assert_eq!(with(&["info", "--quiet"], &trace).code, Some(0));
    assert_eq!(with(&["info"], &folder.path().join("missing.etl")).code, Some(2));
    assert_eq!(with(&["info"], &no_trace).code, Some(3));
    assert_eq!(etwhy(&["no-such-command"]).code, Some(2));
    assert_eq!(etwhy(&["--version"]).code, Some(0));
    let cut = folder.path().join("cut.etl");
    let whole = std::fs::read(&trace).unwrap();
    std::fs::write(&cut, &whole[..whole.len() / 2 + 100]).unwrap();
    let ran = with(&["why", "--quiet"], &cut);
    assert_eq!(ran.code, Some(1), "{}", ran.errors);
}

#[test]
fn a_folder_that_is_given_is_read_and_a_broken_pipe_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    demo(&folder.path().join("demo.etl"));
    let ran = with(&["info", "--quiet"], folder.path());
    assert_eq!(ran.code, Some(0), "{}", ran.errors);
    // The reader goes before everything is written.
    let mut child = ETWHY
        .command(&["dump", "thread", "--format", "csv", "--quiet"])
        .arg(folder.path().join("demo.etl"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .started();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(0) && errors.is_empty(), "{:?} {errors}", output.status);
}

#[test]
fn probes_are_listed_and_run_and_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let list = etwhy(&["probe", "list", "--json"]);
    let list: serde_json::Value = serde_json::from_slice(&list.out).unwrap();
    let probes = list.list();
    let registry = probes.iter().find(|probe| probe["name"] == "registry").unwrap();
    assert_eq!(registry["runs_here"], true);
    let place = folder.path().join("Ordner 🦀");
    std::fs::create_dir(&place).unwrap();
    let run = etwhy(&[
        "probe",
        "run",
        "name-search",
        "registry",
        "--quick",
        "--rounds",
        "1",
        "--json",
        "--set",
        "files=100",
        "--set",
        "reads=200",
        "--folder",
        place.str(),
    ]);
    assert_eq!(run.code, Some(0), "{}", run.errors);
    let outcome: serde_json::Value = serde_json::from_slice(&run.out).unwrap();
    assert!(outcome["probes"].list().iter().all(|p| !p["samples"].list().is_empty()));
    let facts = outcome["machine"]["facts"].list();
    for name in ["os", "kernel", "cpu", "memory_bytes"] {
        assert!(facts.iter().any(|fact| fact["name"] == name), "{facts:?}");
    }
    assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0);
}
