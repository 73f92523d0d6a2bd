//! One small scenario for each finding: all can be written, with their cause and without it, in little time and room.

use etwhy_synth::{Report, Scenario, write};
use etwhy_testkit::scenarios;
use std::path::Path;

/// What a scenario of the folder may take.
const MOST_BYTES: u64 = 30_000_000;

/// Name, text and scenario of a file.
fn scenario(path: &Path) -> (String, String, Scenario) {
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    let text = std::fs::read_to_string(path).unwrap();
    let scenario = Scenario::parse(&text, &path.display().to_string()).unwrap();
    (name, text, scenario)
}

/// Writes a scenario and gives the report, the truth file's text and the trace.
fn written(scenario: &Scenario, name: &str) -> (Report, String, Vec<u8>) {
    let folder = std::env::temp_dir().join(format!("etwhy-findings-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let report = write(scenario, &folder.join("out.etl"), &mut |_| ()).unwrap();
    let truth = std::fs::read_to_string(&report.truth).unwrap();
    let trace = std::fs::read(folder.join("out.etl")).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
    (report, truth, trace)
}

fn findings(truth: &str) -> &str {
    truth.split("\"finding\": {").nth(1).unwrap().split("\"scale\"").next().unwrap()
}

/// Tests run side by side: each takes every fourth scenario.
fn part(number: usize) {
    let files = scenarios(&["scenarios/findings"]);
    assert!(files.len() >= 75, "{}", files.len());
    for path in files.iter().skip(number).step_by(4) {
        let (name, _, mut scenario) = scenario(path);
        let (report, truth, trace) = written(&scenario, &name);
        assert!(report.bytes < MOST_BYTES, "{name}: {} bytes", report.bytes);
        assert!(report.records > 300, "{name}: {} records", report.records);
        let stated = findings(&truth);
        assert!(stated.contains(&format!("\"{name}\": {{")), "{name} is not stated: {stated}");
        let proper = stated.matches("\"culprit\"").count() - stated.matches("\"role\": \"also\"").count();
        assert_eq!(proper, 1, "{name}: one finding proper");
        if !scenario.has_cause() {
            // A trace of nothing has nothing to leave out.
            assert_eq!(name, "trace.nothing-slow");
            continue;
        }
        scenario.without_cause().unwrap();
        let (_, other, healthy) = written(&scenario, &name);
        assert!(!findings(&other).contains("culprit"), "{name}");
        assert!(healthy != trace, "{name}: the cause changes nothing");
    }
}

#[test]
fn a_quarter_of_the_findings() {
    part(0);
}

#[test]
fn another_quarter_of_the_findings() {
    part(1);
}

#[test]
fn the_third_quarter_of_the_findings() {
    part(2);
}

#[test]
fn the_last_quarter_of_the_findings() {
    part(3);
}

#[test]
fn stories_name_their_findings_and_clean_machines_have_none() {
    let mut clean = 0;
    for path in scenarios(&["scenarios"]) {
        let (name, text, mut scenario) = scenario(&path);
        // The same opens with and without the scanner: the other half of a story.
        let healthy = name.starts_with("clean_") || name == "antivirus_opens_excluded";
        assert_eq!(text.contains("[truth.finding."), !healthy, "{name}");
        assert_eq!(scenario.has_cause(), !healthy, "{name}");
        clean += usize::from(name.starts_with("clean_"));
        if !healthy {
            scenario.without_cause().unwrap();
            scenario.scale(0.01).unwrap();
            let (report, truth, _) = written(&scenario, &name);
            assert!(report.records > 300 && !findings(&truth).contains("culprit"), "{name}");
        }
    }
    assert!(clean >= 4, "{clean}");
}
