//! Files of several recordings, through every command that takes several traces: refused with the reason, or answered one by one.

use crate::{ETWHY, Json as _, Str as _};
use etwhy_etl::read::{EtlFile, OpenOptions};
use etwhy_testkit::{root, text};
use etwhy_trace::identity::recording::{Relation, relation};
use etwhy_trace::identity::{Identity, group};
use serde_json::Value;
use std::path::Path;

/// Writes a shipped scenario, small.
fn synth(name: &str, scale: f64, trace: &Path) {
    let story = std::fs::read_to_string(root().join(format!("scenarios/{name}.toml"))).unwrap();
    let mut scenario = etwhy_synth::Scenario::parse(&story, name).unwrap();
    scenario.scale(scale).unwrap();
    etwhy_synth::write(&scenario, trace, &mut |_| {}).unwrap();
}

/// Two machines, one trace each.
struct Two {
    folder: tempfile::TempDir,
    a: String,
    b: String,
}

fn two() -> Two {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["dpc_flood", "openmp_spin"].map(|name| {
        let path = folder.path().join(format!("{name}.etl"));
        synth(name, 0.01, &path);
        path.str().to_owned()
    });
    Two { folder, a, b }
}

/// Commands that take several traces, as the reference of the command line says.
fn commands() -> Vec<String> {
    let reference = std::fs::read_to_string(root().join("docs/reference/cli.md")).unwrap();
    let usage = reference.lines().filter_map(|line| line.strip_prefix("Usage: etwhy "));
    let several = usage.filter(|line| line.contains("TRACE]...") || line.contains("<TRACE>..."));
    several
        .map(|line| line.split([' ', '[', '<']).take_while(|w| word(w)).collect::<Vec<_>>().join(" "))
        .collect()
}

fn word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase())
}

/// What a command wants besides traces.
fn arguments(command: &str, folder: &Path) -> (Vec<String>, Vec<String>) {
    let out = |name: &str| folder.join(name).str().to_owned();
    // Written beside a trace.
    let symbols = out("symbols");
    let (before, after): (Vec<&str>, Vec<String>) = match command {
        "dump" => (vec!["process"], vec![]),
        "explain" => (vec!["backup.exe"], vec![]),
        "export" => (vec![], vec!["-o".into(), out("x.speedscope.json")]),
        "extract" => (vec![], vec!["-o".into(), out("x")]),
        "flame" => (vec![], vec!["-o".into(), out("x.svg")]),
        "record merge" => (vec![], vec!["-o".into(), out("merged.etl")]),
        "sql" => (vec![], vec!["SELECT computer FROM trace".into()]),
        // A folder with symbols comes first.
        "symbols verify" => (vec![symbols.as_str()], vec![]),
        _ => (vec![], vec![]),
    };
    (before.into_iter().map(str::to_owned).collect(), after)
}

/// Those that answer each trace by itself, or compare them.
const ONE_BY_ONE: [&str; 5] = ["why", "diff", "serve", "segments", "fleet detail"];

#[test]
fn every_command_refuses_two_machines_and_says_why() {
    let two = two();
    let all = commands();
    assert!(all.len() > 12, "{all:?}");
    for known in ONE_BY_ONE {
        assert!(all.iter().any(|command| command == known), "{known} of {all:?}");
    }
    for command in all.iter().filter(|command| !ONE_BY_ONE.contains(&command.as_str())) {
        let folder = two.folder.path().str();
        for given in [vec![two.a.as_str(), two.b.as_str()], vec![folder]] {
            let (before, after) = arguments(command, two.folder.path());
            let mut line: Vec<&str> = command.split(' ').collect();
            line.extend(before.iter().map(String::as_str));
            line.extend(given);
            line.extend(after.iter().map(String::as_str));
            let out = ETWHY.output(&line);
            let said = text(&out.stderr);
            assert_eq!(out.status.code(), Some(2), "{line:?}: {said}");
            for part in ["computer: BACKUP01 and WS-OMP", "processors: 24 and 16", "--merge", "2 recordings"]
            {
                assert!(said.contains(part), "{line:?}: no `{part}` in {said}");
            }
            assert!(out.stdout.is_empty(), "{line:?}");
        }
    }
}

/// A folder of a side of a comparison is read as one, so it has to be one.
#[test]
fn sides_of_a_comparison_are_one_recording_each() {
    let two = two();
    let folder = two.folder.path().str();
    let out = ETWHY.output(&["diff", &two.a, folder]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("computer: "), "{}", text(&out.stderr));
    assert_eq!(ETWHY.output(&["diff", "-q", &two.a, &two.b]).status.code(), Some(0));
}

#[test]
fn why_answers_each_recording_by_itself() {
    let two = two();
    let folder = two.folder.path().str();
    let alone = |trace: &str| -> Value {
        serde_json::from_slice(&ETWHY.output(&["why", "-q", "--json", trace]).stdout).unwrap()
    };
    let (a, b) = (alone(&two.a), alone(&two.b));
    for given in [vec![two.a.as_str(), two.b.as_str()], vec![folder]] {
        let mut line = vec!["why", "-q", "--json"];
        line.extend(given);
        let out = ETWHY.output(&line);
        assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
        let all: Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(all["schema"], "etwhy.why-several/1");
        let traces = all["traces"].list();
        assert_eq!(traces.len(), 2);
        assert_eq!([&traces[0]["computer"], &traces[1]["computer"]], ["BACKUP01", "WS-OMP"]);
        assert_eq!([&traces[0]["report"], &traces[1]["report"]], [&a, &b], "as when asked alone");
        assert_ne!(traces[0]["trace_id"], traces[1]["trace_id"]);
        assert_ne!(traces[0]["machine_id"], traces[1]["machine_id"]);
        assert!(all["apart"][0].str().contains("computer: BACKUP01 and WS-OMP"));
    }
    let out = ETWHY.output(&["why", "-q", folder]);
    let said = text(&out.stdout);
    let summary = said.split("Summary of 2 recordings").nth(1).unwrap();
    for part in ["dpc_flood.etl", "BACKUP01", "openmp_spin.etl", "WS-OMP", "render.exe"] {
        assert!(summary.contains(part), "{part}: {summary}");
    }
    // What one machine did is never said of another's process.
    let about_a = said.split("2 of 2").next().unwrap();
    assert!(!about_a.contains("render.exe") && !about_a.contains("libiomp5md"), "{about_a}");
    let [page, document] = ["why.html", "why.md"].map(|name| two.folder.path().join("out").join(name));
    std::fs::create_dir(two.folder.path().join("out")).unwrap();
    let (page_name, document_name) = (page.str(), document.str());
    let out = ETWHY.output(&["why", "-q", &two.a, &two.b, "--html", page_name, "--md", document_name]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("href=\"./why.1.html\"") && page.contains("href=\"./why.2.html\""));
    for number in 1..=2 {
        let one = two.folder.path().join("out").join(format!("why.{number}.html"));
        assert!(std::fs::read_to_string(one).unwrap().contains("etwhy.why/1"));
    }
    let document = std::fs::read_to_string(document).unwrap();
    assert!(document.contains("# Why was it slow? 2 recordings") && document.contains("WS-OMP"));
}

/// `--merge` forces; what a machine is called is still what its own file says.
#[test]
fn merged_by_force_machines_keep_their_facts() {
    let two = two();
    let query = "SELECT file, computer, cpus, machine_id, recording_id FROM trace";
    let out = ETWHY.output(&["sql", "-q", "--merge", &two.a, &two.b, query, "--format", "json"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    assert!(text(&out.stderr).contains("computer: BACKUP01 and WS-OMP"));
    let rows: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!([&rows[0]["computer"], &rows[1]["computer"]], ["BACKUP01", "WS-OMP"]);
    assert_ne!(rows[0]["machine_id"], rows[1]["machine_id"]);
    assert_eq!(rows[0]["recording_id"], rows[1]["recording_id"]);
    let ledger = ETWHY.output(&["why", "-q", "--merge", &two.a, &two.b]);
    assert!(text(&ledger.stdout).contains("machines_differ"), "{}", text(&ledger.stdout));
}

/// All shipped stories in pairs: none is part of another.
#[test]
fn no_two_shipped_scenarios_are_one_recording() {
    let folder = tempfile::tempdir().unwrap();
    let mut all = Vec::new();
    for entry in std::fs::read_dir(root().join("scenarios")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "toml") {
            continue;
        }
        let name = path.file_stem().unwrap().str().to_owned();
        let trace = folder.path().join(format!("{name}.etl"));
        synth(&name, 0.002, &trace);
        all.push(Identity::from_file(&EtlFile::open(&trace, &trace, &OpenOptions::default()).unwrap()));
    }
    assert!(all.len() > 12);
    for (n, a) in all.iter().enumerate() {
        for b in &all[n + 1..] {
            let found = relation(a, b);
            assert!(
                matches!(found, Relation::Apart(_)),
                "{} and {}: {found:?}",
                a.shown.display(),
                b.shown.display()
            );
        }
    }
    assert_eq!(group(&all).recordings.len(), all.len());
}
