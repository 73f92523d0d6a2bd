//! A culprit inside the program, on Windows: a library that is injected before the program's first instruction is found however it
//! puts itself in the way, and nobody is accused who does not.
//!
//! `scripts/test-windows` makes library and injector (`scripts/windows`) and names their folder in `ETWHY_WINDOWS_HOOK`.
#![cfg(windows)]

use crate::ETWHY;
use etwhy_testkit::Run as _;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const LIBRARY: &str = "fabrikamhook.dll";

/// Runs the probe of files, with the library in it if it is to hook in some way.
fn probe(hook: Option<(&Path, &str)>) -> (Value, String) {
    let _turn = etwhy_testkit::alone();
    let folder = tempfile::tempdir().unwrap();
    let mut command = match hook {
        None => ETWHY.command::<&str>(&[]),
        Some((tools, how)) => {
            let mut command = Command::new(tools.join("inject.exe"));
            command.arg(tools.join(LIBRARY)).arg(env!("CARGO_BIN_EXE_etwhy")).env("ETWHY_HOOK", how);
            command
        }
    };
    command.args(["probe", "run", "file-open", "--quick", "--rounds", "1", "--json", "--quiet", "--folder"]);
    command.arg(folder.path()).args(["--set", "files=20", "--set", "bytes=4096", "--set", "operations=open"]);
    let output = command.outcome();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let all: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (all["probes"][0].clone(), text)
}

/// Suspects inside the program.
fn inside(probe: &Value) -> Vec<Value> {
    let all = probe["suspects"].as_array().cloned().unwrap_or_default();
    all.into_iter().filter(|one| one["kind"].as_str().unwrap().ends_with(" inside this program")).collect()
}

/// Where the library and its injector are.
fn tools() -> Option<PathBuf> {
    let tools = std::env::var_os("ETWHY_WINDOWS_HOOK").map(PathBuf::from);
    if tools.is_none() {
        etwhy_testkit::skipped(&format!("ETWHY_WINDOWS_HOOK names no folder with inject.exe and {LIBRARY}"));
    }
    tools
}

#[test]
fn a_program_with_nobody_in_it_accuses_nobody() {
    let (probe, text) = probe(None);
    assert!(inside(&probe).is_empty(), "{text}");
    for words in ["inside this program", "loaded into this program", "not looked at", "in memory and with"] {
        assert!(!probe["notes"].to_string().contains(words), "{words}: {text}");
    }
}

#[test]
fn a_library_that_patches_what_the_probe_calls_is_named() {
    let Some(tools) = tools() else { return };
    for (how, telling) in [
        ("absolute", "kernelbase.dll!CreateFileW begins with 48 b8 "),
        ("relay", "kernelbase.dll!CreateFileW begins with e9 "),
        ("import", "this program's import of CreateFileW leads to 0x"),
    ] {
        let (probe, text) = probe(Some((&tools, how)));
        let all = inside(&probe);
        let [one] = all.as_slice() else { panic!("{how}: {text}") };
        assert_eq!(
            (one["name"].as_str(), one["confidence"].as_str()),
            (Some(LIBRARY), Some("likely")),
            "{how}"
        );
        let evidence = one["evidence"].to_string();
        for part in [
            telling,
            "it answers in the place of ",
            "CreateFileW, which the probe calls",
            LIBRARY,
            "nothing that this program imports needs it",
            "its version resource names Fabrikam Endpoint Inc.",
        ] {
            assert!(evidence.contains(part), "{how}: {part}: {evidence}");
        }
    }
}

#[test]
fn code_of_no_library_is_told_apart() {
    let Some(tools) = tools() else { return };
    let (probe, text) = probe(Some((&tools, "hidden")));
    let all = inside(&probe);
    let [one] = all.as_slice() else { panic!("{text}") };
    assert_eq!(
        (one["name"].as_str(), one["kind"].as_str()),
        (Some("code of no library"), Some("code inside this program"))
    );
    assert!(one["evidence"].to_string().contains("which is in no library"), "{text}");
    assert!(probe["notes"].to_string().contains(LIBRARY), "{text}");
}

#[test]
fn a_library_that_patches_nothing_is_a_note_and_no_suspect() {
    let Some(tools) = tools() else { return };
    let (probe, text) = probe(Some((&tools, "not at all")));
    assert!(inside(&probe).is_empty(), "{text}");
    let notes = probe["notes"].to_string();
    assert!(notes.contains("without a place in what the probe calls") && notes.contains(LIBRARY), "{text}");
}
