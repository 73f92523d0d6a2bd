//! Findings over counter logs say *not found* only where the log could have shown it: each is asked of logs that lack what it needs.

use crate::{Json as _, Str as _};
use etwhy_rules::{Rule, Subject, builtin, counter_needs};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// Counters with their instances and a quiet value: all that findings read.
fn quiet() -> Vec<(String, f64)> {
    let mut all = Vec::new();
    let mut add = |object: &str, instances: &[&str], names: &[(&str, f64)]| {
        for (name, value) in names {
            if instances.is_empty() {
                all.push((format!("\\{object}\\{name}"), *value));
            }
            all.extend(instances.iter().map(|instance| (format!("\\{object}({instance})\\{name}"), *value)));
        }
    };
    add(
        "Processor",
        &["0", "1", "_Total"],
        &[
            ("% Processor Time", 9.0),
            ("% DPC Time", 0.5),
            ("% Interrupt Time", 0.4),
            ("% Privileged Time", 3.0),
        ],
    );
    add("System", &[], &[("Processor Queue Length", 0.0), ("Context Switches/sec", 900.0)]);
    add(
        "PhysicalDisk",
        &["0 C:", "_Total"],
        &[("Avg. Disk sec/Read", 0.001), ("Avg. Disk sec/Write", 0.001), ("Avg. Disk Queue Length", 0.1)],
    );
    add(
        "Memory",
        &[],
        &[
            ("Available MBytes", 9000.0),
            ("Pages/sec", 1.0),
            ("Pool Nonpaged Bytes", 3e8),
            ("Pool Paged Bytes", 3e8),
        ],
    );
    add("Network Interface", &["card"], &[("Output Queue Length", 0.0)]);
    add("Process", &["agent", "_Total"], &[("Handle Count", 500.0)]);
    all
}

/// A log with a sample each minute from 10:00; `value` may change what a counter says, or leave it out.
fn log(counters: &[(String, f64)], minutes: &[u32], value: &dyn Fn(&str, f64) -> Option<f64>) -> String {
    let mut text = String::from("\"(PDH-CSV 4.0) (UTC)(0)\"");
    for (path, _) in counters {
        write!(text, ",\"\\\\SRV1{path}\"").unwrap();
    }
    for minute in minutes {
        write!(text, "\n\"05/06/2024 {:02}:{:02}:00.000\"", 10 + minute / 60, minute % 60).unwrap();
        for (path, quiet) in counters {
            match value(path, *quiet) {
                Some(value) => write!(text, ",\"{value}\"").unwrap(),
                None => text.push_str(",\" \""),
            }
        }
    }
    text.push('\n');
    text
}

fn ask(folder: &Path, text: &str) -> Value {
    let file = folder.join("log.csv");
    std::fs::write(&file, text).unwrap();
    let out =
        Command::new(env!("CARGO_BIN_EXE_etwhy")).args(["counters", "--json"]).arg(&file).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// Answers and reasons by finding.
fn answers(report: &Value) -> BTreeMap<String, (String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let findings = report["findings"].list();
    findings.iter().map(|f| (text(&f["id"]), (text(&f["answer"]), f["reasons"].to_string()))).collect()
}

fn rules() -> Vec<Rule> {
    builtin().unwrap().into_iter().filter(|rule| rule.over == Subject::Counters).collect()
}

/// The path without its instance.
fn kind(path: &str) -> String {
    let need =
        path.split_once('(').and_then(|(object, rest)| Some(format!("{object}{}", rest.split_once(')')?.1)));
    need.unwrap_or_else(|| path.to_owned())
}

#[test]
fn not_found_needs_what_would_show_it() {
    let folder = tempfile::tempdir().unwrap();
    let minutes: Vec<u32> = (0..200).collect();
    let as_it_is = |_: &str, value: f64| Some(value);
    let all = quiet();
    let rules = rules();
    let whole = answers(&ask(folder.path(), &log(&all, &minutes, &as_it_is)));
    assert_eq!(whole.len(), rules.len());
    for (id, (answer, reasons)) in &whole {
        assert_eq!(answer, "not_found", "{id} of a quiet log: {reasons}");
    }
    let expect = |what: &str, report: &Value, needs: &dyn Fn(&str) -> bool, says: &str| {
        for (id, (answer, reasons)) in answers(report) {
            let rule = rules.iter().find(|rule| rule.id == id).unwrap();
            let lacks = rule.counters.iter().any(|path| needs(path));
            assert_eq!(answer, if lacks { "cannot_tell" } else { "not_found" }, "{what}: {id}: {reasons}");
            assert!(!lacks || reasons.contains(says), "{what}: {id}: {reasons}");
        }
    };
    // One counter after the other was not logged, or has no value.
    let mut kinds: Vec<String> = all.iter().map(|(path, _)| kind(path)).collect();
    kinds.dedup();
    assert!(kinds.len() >= 15);
    for (at, missing) in kinds.iter().enumerate() {
        let rest: Vec<(String, f64)> =
            all.iter().filter(|(path, _)| kind(path) != *missing).cloned().collect();
        let report = ask(folder.path(), &log(&rest, &minutes, &as_it_is));
        expect(missing, &report, &|path| kind(path) == *missing, "was not logged");
        if at % 3 == 0 {
            let blank = |path: &str, value: f64| (kind(path) != *missing).then_some(value);
            let report = ask(folder.path(), &log(&all, &minutes, &blank));
            expect(missing, &report, &|path| kind(path) == *missing, "has no value");
        }
    }
    // Only sums, only single instances.
    let is_total = |path: &str| path.contains("(_Total)");
    let sums: Vec<(String, f64)> = all
        .iter()
        .filter(|(path, _)| is_total(path) || !path.contains('(') || path.contains("card"))
        .cloned()
        .collect();
    let report = ask(folder.path(), &log(&sums, &minutes, &as_it_is));
    let has_sum = |path: &str| path.contains("(*)") && !path.contains("Network");
    expect("sums", &report, &has_sum, "only the sum over all instances (_Total)");
    let command = report["log_missing"].str();
    for rule in &rules {
        for path in rule.counters.iter().filter(|path| has_sum(path)) {
            assert!(command.contains(&format!("\"{path}\"")), "{path} is not in {command}");
        }
    }
    let single: Vec<(String, f64)> = all.iter().filter(|(path, _)| !is_total(path)).cloned().collect();
    let report = ask(folder.path(), &log(&single, &minutes, &as_it_is));
    expect("single instances", &report, &is_total, "the sum over all instances");
    // A language that is not known: nobody can say what was logged.
    let foreign: Vec<(String, f64)> =
        all.iter().map(|(path, value)| (path.replacen('\\', "\\プ", 1), *value)).collect();
    let report = ask(folder.path(), &log(&foreign, &minutes, &as_it_is));
    expect("language", &report, &|_| true, "language that is not known");
    assert!(
        report["log_missing"].is_null() && !report["findings"].to_string().contains("was not logged"),
        "{report}"
    );
    // Too few samples.
    let report = ask(folder.path(), &log(&all, &[0, 1], &as_it_is));
    expect("two samples", &report, &|_| true, "");
    // Every path of every finding was tried above.
    for path in rules.iter().flat_map(|rule| &rule.counters) {
        let need = counter_needs::parse(path).unwrap();
        assert!(
            kinds.contains(&format!("\\{}\\{}", need.object, need.name)),
            "{path} is not in the quiet log"
        );
    }
}

/// What was pegged lies within the log, and what nobody saw is said.
#[test]
fn times_stay_within_the_log_and_gaps_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let all = quiet();
    let pegged = |path: &str, value: f64| {
        Some(match path {
            "\\Processor(0)\\% Processor Time" => 99.0,
            "\\Processor(0)\\% DPC Time" => 95.0,
            _ => value,
        })
    };
    for (length, gap) in [(300, None), (37, None), (301, Some(100..105)), (13, Some(12..18))] {
        let minutes: Vec<u32> = (7..7 + length)
            .filter(|m| gap.as_ref().is_none_or(|gap: &std::ops::Range<u32>| !gap.contains(m)))
            .collect();
        let report = ask(folder.path(), &log(&all, &minutes, &pegged));
        let finding =
            report["findings"].list().iter().find(|f| f["id"] == "counters.cpu-pegged-by-dpc").unwrap();
        let values = &finding["hits"][0]["values"];
        let logged = i64::from(length - 1) * 60_000_000_000;
        let (first, observed) = (values["since"].str(), values["observed_ns"].int());
        assert_eq!(first, "2024-05-06 10:07:00", "{finding}");
        assert!(observed <= logged && observed >= logged / 3, "{observed} of {logged}");
        assert!(values["pegged_ns"].int() <= observed);
        let machine = &report["machines"][0];
        let expected = gap.as_ref().map_or((0, 0), |gap| (1, (gap.end - gap.start + 1) * 60));
        assert_eq!(
            (machine["gaps"].as_i64(), machine["gap_ns"].as_i64()),
            (Some(expected.0), Some(i64::from(expected.1) * 1_000_000_000))
        );
        let noted = report["notes"].list().iter().any(|note| note["name"] == "gap");
        assert_eq!(noted, gap.is_some());
        let file = folder.path().join("log.csv");
        let out = Command::new(env!("CARGO_BIN_EXE_etwhy")).arg("counters").arg(&file).output().unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        assert_eq!(text.contains("1 gap without samples"), gap.is_some(), "{text}");
    }
}
