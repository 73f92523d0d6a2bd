//! Scenarios without their cause, traces without some kinds of events, and stated findings; an independent reader agrees.

use crate::EVERYTHING;
use etwhy_synth::{Report, Scenario, write};
use etwhy_testkit::dissected;
use std::path::PathBuf;

const STORM: &str = r#"
[machine]
name = "CAUSES"
cpus = 2
duration = "1s"
keywords = ["DPC"]

[machine.cause]
events_lost = 5000

[truth.registry."storm.exe"]
count = 900

[truth.finding."registry.storm"]
culprit = "storm.exe"
count = 900
share = 0.25
severity = "warning"

[[process]]
name = "quiet.exe"

[[process]]
name = "storm.exe"
cause = true

[[registry]]
process = "quiet.exe"
op = "open"
key = 'HKLM\SOFTWARE\Quiet'
count = 10

[[registry]]
process = "storm.exe"
cause = true
op = "open"
key = 'HKLM\SOFTWARE\Storm'
count = 900
stack = "storm.exe!main;nt!NtOpenKeyEx"

[[mark]]
text = "in place of it"
cause = false
count = 3
"#;

struct Written {
    folder: PathBuf,
    report: Report,
    truth: String,
}

impl Drop for Written {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Writes a scenario and has another reader count its records.
fn written(scenario: &Scenario, name: &str) -> Written {
    let folder = std::env::temp_dir().join(format!("etwhy-causes-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let out = folder.join("out.etl");
    let report = write(scenario, &out, &mut |_| ()).unwrap();
    let truth = std::fs::read_to_string(&report.truth).unwrap();
    if let Some(counted) = dissected(&out, &[]) {
        assert_eq!(counted, report.events, "{name}");
    }
    Written { folder, report, truth }
}

fn without(text: &str, names: &[&str]) -> Scenario {
    let mut scenario = Scenario::parse(text, "s.toml").unwrap();
    let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
    scenario.without_events(&names).unwrap();
    scenario
}

#[test]
fn the_cause_can_be_left_out() {
    let mut scenario = Scenario::parse(STORM, "s.toml").unwrap();
    let with = written(&scenario, "with");
    assert_eq!(with.report.events["kernel/9/11"], 910);
    assert!(!with.report.events.contains_key("kernel/15/34"), "the mark stands in for the cause");
    for line in [
        "\"culprit\": \"storm.exe\"",
        "\"severity\": \"warning\"",
        "\"share\": 0.25",
        "\"registry.storm\": {",
    ] {
        assert!(with.truth.contains(line), "{line} in {}", with.truth);
    }
    scenario.without_cause().unwrap();
    let other = written(&scenario, "other");
    assert_eq!(other.report.events["kernel/9/11"], 10);
    assert_eq!(other.report.events["kernel/15/34"], 3);
    assert!(other.truth.contains("\"finding\": {}") && !other.truth.contains("storm.exe"), "{}", other.truth);
    // Events lost stand in the header, after 0x38 bytes of names and times (`TRACE_LOGFILE_HEADER.EventsLost`).
    let lost = |w: &Written| {
        let bytes = std::fs::read(w.folder.join("out.etl")).unwrap();
        bytes.windows(4).take(1024).any(|four| four == 5000u32.to_le_bytes())
    };
    assert!(lost(&with) && !lost(&other));
}

#[test]
fn a_scenario_without_a_cause_has_none_to_leave_out() {
    let text = STORM.replace("cause = true", "").replace("[machine.cause]", "[truth.law.x]");
    let error = Scenario::parse(&text, "s.toml").unwrap().without_cause().unwrap_err().to_string();
    assert!(error.contains("cause = true"), "{error}");
    let text = STORM.replace("events_lost = 5000", "events_lots = 5000");
    let error = Scenario::parse(&text, "s.toml").unwrap_err().to_string();
    assert!(error.starts_with("s.toml:2:") && error.contains("events_lots"), "{error}");
    let text = STORM.replace("culprit = \"storm.exe\"", "culprit = 5");
    let error = Scenario::parse(&text, "s.toml").unwrap_err().to_string();
    assert!(error.contains("culprit"), "{error}");
}

#[test]
fn events_can_be_left_out_with_their_stacks() {
    let whole = written(&Scenario::parse(EVERYTHING, "s.toml").unwrap(), "whole");
    let less =
        written(&without(EVERYTHING, &["CSwitch", "Registry", "Microsoft-Windows-DotNETRuntime"]), "less");
    let gone = |key: &str| {
        key == "kernel/5/36"
            || key.starts_with("kernel/9/")
            || key.contains("e13c0d23-ccbc-4e12-931b-d9cc2eee27e4")
    };
    let mut stacks = 0;
    for (key, count) in &whole.report.events {
        match less.report.events.get(key) {
            None => assert!(gone(key), "{key} is gone"),
            Some(left) if key.starts_with("kernel/24/") => stacks += count - left,
            Some(left) => assert!(left == count && !gone(key), "{key}: {left} of {count}"),
        }
    }
    assert!(stacks > 100, "{stacks}");
    let none = written(&without(EVERYTHING, &["Stack"]), "stackless");
    assert!(!none.report.events.keys().any(|k| k.starts_with("kernel/24/")));
    let names = ["NoSuchEvent".to_owned()];
    let error = Scenario::parse(EVERYTHING, "s").unwrap().without_events(&names).unwrap_err().to_string();
    assert!(error.contains("NoSuchEvent"), "{error}");
}
