//! The verdicts of `why`: planted causes are named first, vanish with their cause, and cannot be determined without their
//! events; healthy machines and real traces raise no alarm.

use crate::unfilled;
use crate::{ETWHY, Json as _, Str as _};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Stories tell hours; their patterns show in a part of them. This one needs enough starts to show growth.
fn scale(name: &str) -> &'static str {
    if name == "process_start_growth" { "0.5" } else { "0.05" }
}

fn scenarios(folder: &str) -> Vec<PathBuf> {
    etwhy_testkit::scenarios(&[folder])
}

/// Writes a scenario and asks why; with its truth.
fn why(scenario: &Path, options: &[&str]) -> (Value, Value) {
    let folder = tempfile::tempdir().unwrap();
    let name = scenario.file_stem().unwrap().to_string_lossy().into_owned();
    let trace = folder.path().join("trace.etl");
    let mut arguments = options.to_vec();
    if scenario.parent().unwrap().ends_with("scenarios") {
        arguments.extend(["--scale", scale(&name)]);
    }
    ETWHY.synth(scenario, &trace, &arguments);
    let truth = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.to_string_lossy().ends_with("truth.json"))
        .map(|path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap())
        .unwrap_or(Value::Null);
    let report = ETWHY.json(&["why", "--json", "-q", trace.str()]);
    assert_eq!(unfilled::in_json(&report), Vec::<String>::new(), "{name}");
    (report, truth)
}

fn found(report: &Value) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let findings = report["findings"].list();
    let is_found = |f: &&Value| f["answer"] == "found";
    findings
        .iter()
        .filter(is_found)
        .map(|f| (text(&f["id"]), text(&f["severity"]), text(&f["hits"][0]["culprit"])))
        .collect()
}

fn answer<'r>(report: &'r Value, id: &str) -> &'r str {
    let findings = report["findings"].list();
    findings.iter().find(|f| f["id"] == id).map_or("no such finding", |f| f["answer"].str())
}

/// No query may fail, whatever the trace holds.
fn assert_queries_work(report: &Value, name: &str) {
    for finding in report["findings"].list() {
        for reason in finding["reasons"].list() {
            let text = reason["text"].str();
            assert!(!text.contains("query failed"), "{name}: {}: {text}", finding["id"]);
        }
    }
}

/// The finding that a scenario plants: the one without `role = "also"`.
fn planted(truth: &Value) -> Vec<(String, String)> {
    let Some(findings) = truth["finding"].as_object() else { return Vec::new() };
    let main = |(_, f): &(&String, &Value)| f["role"] != "also";
    let pair = |(id, f): (&String, &Value)| (id.clone(), f["culprit"].as_str().unwrap_or("").to_owned());
    findings.iter().filter(main).map(pair).collect()
}

/// Scenarios whose culprit a finding names in other words, or that stand behind a finding of the same cause.
const OTHER_WORDS: &[&str] = &["memory.low", "memory.pool-leak"];

#[test]
fn every_planted_culprit_is_named_and_nothing_else_is_as_severe() {
    let mut faults = Vec::new();
    for scenario in scenarios("scenarios/findings") {
        let (report, truth) = why(&scenario, &[]);
        let name = scenario.file_stem().unwrap().to_string_lossy().into_owned();
        assert_queries_work(&report, &name);
        let planted = planted(&truth);
        let (id, culprit) = planted.first().unwrap_or_else(|| panic!("{name} plants nothing"));
        let all = found(&report);
        let Some((_, severity, named)) = all.iter().find(|(found, _, _)| found == id) else {
            faults.push(format!("{name}: {id} is {}", answer(&report, id)));
            continue;
        };
        if !culprit.is_empty() && culprit != named && !OTHER_WORDS.contains(&name.as_str()) {
            faults.push(format!("{name}: {id} names {named}, not {culprit}"));
        }
        let also = |found: &String| truth["finding"].get(found).is_some();
        for (other, as_severe, _) in &all {
            let rank = |s: &str| ["info", "notice", "warning", "critical"].iter().position(|x| *x == s);
            if !also(other) && rank(as_severe) >= rank(severity) && severity != "info" {
                faults.push(format!("{name}: {other} is {as_severe}, {id} {severity}"));
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// The same machines with a 32-bit Windows: whatever is written or read in the width of a pointer.
#[test]
fn every_planted_culprit_is_named_on_32_bit_windows_too() {
    let folder = tempfile::tempdir().unwrap();
    let mut faults = Vec::new();
    for scenario in scenarios("scenarios/findings") {
        let name = scenario.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&scenario).unwrap();
        let narrow = folder.path().join(format!("{name}.toml"));
        std::fs::write(&narrow, text.replacen("[machine]", "[machine]\npointer_size = 4", 1)).unwrap();
        let (report, truth) = why(&narrow, &[]);
        let planted = planted(&truth);
        let (id, culprit) = planted.first().unwrap_or_else(|| panic!("{name} plants nothing"));
        match found(&report).iter().find(|(found, ..)| found == id) {
            None => faults.push(format!("{name}: {id} is {}", answer(&report, id))),
            Some((.., named)) => {
                if !culprit.is_empty() && culprit != named && !OTHER_WORDS.contains(&name.as_str()) {
                    faults.push(format!("{name}: {id} names {named}, not {culprit}"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn a_story_without_its_cause_loses_the_finding() {
    let mut faults = Vec::new();
    for scenario in scenarios("scenarios/findings") {
        let name = scenario.file_stem().unwrap().to_string_lossy().into_owned();
        // It is found where nothing is.
        if name == "trace.nothing-slow" {
            continue;
        }
        let (report, _) = why(&scenario, &["--no-cause"]);
        assert_queries_work(&report, &name);
        if answer(&report, &name) == "found" {
            faults.push(format!("{name} is found without its cause"));
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn stories_name_their_culprits() {
    let mut faults = Vec::new();
    for scenario in scenarios("scenarios") {
        let (report, truth) = why(&scenario, &[]);
        let name = scenario.file_stem().unwrap().to_string_lossy().into_owned();
        assert_queries_work(&report, &name);
        let all = found(&report);
        for (id, culprit) in planted(&truth) {
            match all.iter().find(|(found, _, _)| *found == id) {
                Some((_, _, named)) if culprit.is_empty() || *named == culprit => {}
                Some((_, _, named)) => faults.push(format!("{name}: {id} names {named}, not {culprit}")),
                None => faults.push(format!("{name}: {id} is {}", answer(&report, &id))),
            }
        }
        if name.starts_with("clean") {
            let alarms: Vec<_> = all.iter().filter(|(_, severity, _)| severity != "info").collect();
            assert!(alarms.is_empty(), "{name}: {alarms:?}");
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn without_any_kernel_event_nothing_is_called_not_found() {
    let scenario = etwhy_testkit::root().join("scenarios/findings/dpc.over-limit.toml");
    for (without, id) in [
        ("DPC,ThreadedDPC,TimerDPC", "dpc.over-limit"),
        ("DPC,ThreadedDPC,TimerDPC", "dpc.flood"),
        ("SampledProfile", "cpu.spin-wait"),
        ("SampledProfile", "security.driver-hot-path"),
        ("SampledProfile", "trace.syscall-tracing-cost"),
        ("CSwitch", "cpu.starvation"),
    ] {
        let (report, _) = why(&scenario, &["--without", without]);
        assert_eq!(answer(&report, id), "cannot_tell", "{id} without {without}");
    }
}

/// What is said about real traces above *info*, with the reason why it is right.
const REAL: &[(&str, &str)] = &[];

#[test]
fn real_traces_raise_no_alarm() {
    let Some(corpus) = etwhy_testkit::corpus_file("etl") else { return };
    let mut alarms = Vec::new();
    let mut traces = 0;
    for path in etwhy_testkit::traces(&corpus) {
        let out = ETWHY.output(&["why", "--json", "-q", path.str()]);
        let Ok(report) = serde_json::from_slice::<Value>(&out.stdout) else { continue };
        traces += 1;
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert_queries_work(&report, &name);
        for (id, severity, culprit) in found(&report) {
            if severity != "info" && !REAL.contains(&(name.as_str(), id.as_str())) {
                alarms.push(format!("{name}: {severity} {id} {culprit}"));
            }
        }
    }
    assert!(traces > 30, "only {traces} traces");
    assert!(alarms.is_empty(), "\n{}", alarms.join("\n"));
}
