//! A trace and an event log of the same time: `why --logs` and the marks of `serve --logs`.
//!
//! The log is real (`System.evtx` of plaso's test data). A walk over its record headers in Python finds 85 records in the minute from
//! 2015-06-23 06:00:00 UTC on: two before second 20, 83 from 39.2 to 58.6, the next at 71.1. The trace is written for that time.

use crate::server::Server;
use crate::{ETWHY, Json as _, Str as _};
use std::process::Command;

const SCENARIO: &str = r#"
[machine]
name = "WS-1"
cpus = 2
start = "2015-06-23T06:00:20"
duration = "45s"

[[process]]
name = "app.exe"

[[samples]]
process = "app.exe"
cpu_time = "44s"
arrival = "exact"
stacks = [{ weight = 1, frames = "ntdll!RtlUserThreadStart;app.exe!main;app.exe!Work" }]
"#;

#[test]
fn records_of_a_log_stand_on_the_clock_of_the_trace() {
    let Some(log) = etwhy_testkit::corpus_file("evtx/log2timeline+plaso/System.evtx") else { return };
    let trace = ETWHY.scenario(SCENARIO);
    let why = Command::new(env!("CARGO_BIN_EXE_etwhy"))
        .args(["why", "--quiet"])
        .arg(&*trace)
        .arg("--logs")
        .arg(&log)
        .output()
        .unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&why.stdout), String::from_utf8_lossy(&why.stderr));
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("83 of 5,009 records are of the time of the trace"), "{said}");
    assert!(said.contains("the trace of WS-1"), "another computer is named: {said}");
    // What happened to another computer in other years is told, but not as the reason of what is in the trace.
    assert!(said.contains("stopped once without shutting down"), "{said}");
    assert!(said.starts_with("The processors were busy"), "{said}");
    // What the trace tells of its own machine comes first, however little that is.
    let place = |text: &str| said.find(text).unwrap_or_else(|| panic!("no `{text}` in {said}"));
    assert!(place("info app.exe used") < place("stopped once without shutting down"), "{said}");
    assert!(
        place("Findings")
            < place("but This is of another computer (37L4247F27-26, DC1, DC1.internal.greendale.edu"),
        "{said}"
    );
}

#[test]
fn records_of_a_log_are_marks_of_the_timeline() {
    let Some(log) = etwhy_testkit::corpus_file("evtx/log2timeline+plaso/System.evtx") else { return };
    let trace = ETWHY.scenario(SCENARIO);
    let server = Server::start(&[trace.as_os_str(), "--logs".as_ref(), log.as_os_str()]);
    let asked = serde_json::json!({ "trace": 0, "lanes": ["marks"], "width": 4096 });
    let answer = server.ask("lanes", &asked);
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    let reader = arrow_ipc::reader::StreamReader::try_new(&answer.body[..], None).unwrap();
    let facts: serde_json::Value = serde_json::from_str(&reader.schema().metadata()["etwhy.answer"]).unwrap();
    let lane = facts["lanes"].list().iter().find(|lane| lane["id"] == "logs").unwrap();
    let marks = lane["marks"].list();
    let records: i64 = marks.iter().map(|mark| mark["count"].int()).sum();
    assert_eq!(records, 83, "{lane}");
    // From second 39.2 to 58.6 of the minute: 19.2 to 38.6 of the trace.
    let at = |mark: &serde_json::Value| mark["from"].int();
    let (first, last) = (marks.iter().map(at).min().unwrap(), marks.iter().map(at).max().unwrap());
    assert!((19_100_000_000..19_300_000_000).contains(&first), "{first}");
    assert!((38_500_000_000..38_700_000_000).contains(&last), "{last}");
    assert!(lane["sql"].str().contains("log_record"));
}
