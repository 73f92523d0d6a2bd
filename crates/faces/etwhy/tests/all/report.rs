//! The report of the demonstration and of real traces in all forms: the JSON follows the published schema, the page fits.

use crate::unfilled;
use crate::{ETWHY, Json as _, Str as _};
use serde_json::Value;
use std::path::Path;
use std::process::Output;

fn why(arguments: &[&str], files: &[&Path]) -> Output {
    ETWHY.command(&["why", "--quiet"]).args(arguments).args(files).output().unwrap()
}

/// All forms of the report of a trace; gives back the JSON that was printed, and that of the page.
fn forms(trace: &[&str]) -> (Value, Value) {
    let folder = tempfile::tempdir().unwrap();
    let (html, md) = (folder.path().join("why.html"), folder.path().join("why.md"));
    let files = [Path::new("--html"), &html, Path::new("--md"), &md];
    let output = why(&[trace, &["--json"]].concat(), &files);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code().is_some_and(|code| code <= 1), "{trace:?}: {errors}");
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let page = std::fs::read_to_string(&html).unwrap();
    assert!(page.len() < 2_000_000, "{trace:?}: {} bytes", page.len());
    let (_, data) = page.split_once("id=\"etwhy-report\">").unwrap();
    let data: Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    for json in [&printed, &data] {
        assert_eq!(etwhy_testkit::schema::violations(json), Vec::<String>::new(), "{trace:?}");
    }
    let text = std::fs::read_to_string(&md).unwrap();
    let prose: String = text.split("```").step_by(2).collect();
    assert_eq!(unfilled::unfilled(&prose), None, "{trace:?}");
    assert_eq!(unfilled::in_json(&data), Vec::<String>::new(), "{trace:?}");
    // Limits have names that people read, not keys.
    let is_key = |line: &str| line.starts_with("- `") && line.contains("_") && !line.contains(".etl`");
    assert!(!prose.lines().any(is_key), "{trace:?}: {prose}");
    for heading in ["# Why was it slow?", "## Findings", "## The bill", "## CPU"] {
        assert!(text.lines().any(|line| line == heading), "{trace:?}: no {heading}");
    }
    (printed, data)
}

#[test]
fn the_demonstration_in_all_forms() {
    let (printed, page) = forms(&["--demo"]);
    assert!(printed.get("charts").is_none());
    for part in ["sentence", "quality", "bill", "cpu", "clr", "disk", "cannot_tell"] {
        assert_eq!(printed[part], page[part], "{part}");
    }
    let charts = &page["charts"];
    // Bands and flame graph hold all CPU time of the verdict, which adds it up from other tables.
    let sum = |list: &Value, key: &str| -> i64 { list.list().iter().map(|item| item[key].int()).sum() };
    let busy = printed["cpu"]["busy_ns"].int();
    let idle = printed["cpu"]["idle_ns"].int();
    assert_eq!(sum(&charts["timeline"]["series"], "total_ns"), busy + idle);
    assert_eq!(charts["flame"]["total_ns"][0].as_i64(), Some(busy));
    assert!(charts["histograms"][0]["over_limit"].int() > 0);
    let first = &printed["cpu"]["processes"][0];
    let name = format!("{} ({})", first["name"].str(), first["pid"]);
    assert_eq!(charts["timeline"]["series"][0]["name"], Value::from(name));
    assert_eq!(charts["timeline"]["series"][0]["total_ns"], first["cpu_ns"]);
}

#[test]
fn real_traces_in_all_forms() {
    let Some(corpus) = etwhy_testkit::corpus_file("etl") else { return };
    let traces = [
        "microsoft+perfview/net.4.5.2.x64.etl",
        "airbus-cert+etl-parser/ShutdownPerfDiagLogger.etl",
        "microsoft+Tx/HTTP_Server.etl",
        "microsoft+perfview/smallEtlFile.etl",
    ];
    for trace in traces {
        let path = corpus.join(trace);
        forms(&[path.str()]);
    }
}

#[test]
fn two_forms_do_not_share_standard_output() {
    let output = why(&["--demo", "--json", "--md"], &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).contains("name a file: --md=FILE"));
    let output = why(&["--demo", "--md"], &[]);
    assert!(output.status.success());
    assert!(output.stdout.starts_with(b"# Why was it slow?"));
}

/// The demonstration begins with context switches; its first sample comes after one millisecond.
#[test]
fn a_part_without_samples_does_not_say_that_the_trace_has_none() {
    let part = ["--demo", "--from", "0", "--to", "0.0009s"];
    let output = why(&[&part[..], &["--md"]].concat(), &[]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("the trace has CPU samples, but none in this part of it"), "{text}");
    assert!(!text.contains("holds no CPU samples"), "{text}");
    let (json, _) = forms(&part);
    assert_eq!((&json["cpu"]["samples"], &json["quality"]["samples_recorded"]), (&0.into(), &true.into()));
}

/// `--html *.etl` names a trace where a page was meant.
#[test]
fn no_report_replaces_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("a.etl");
    std::fs::write(&trace, "recorded").unwrap();
    for line in [
        &["why", "--demo", "--html", trace.str()][..],
        &["dump", "process", "--demo", "--format", "csv", "-o", trace.str()],
        &["export", "folded", "--demo", "-o", trace.str()],
    ] {
        let (code, _, errors) = ETWHY.ran(line);
        assert!(code > 1 && errors.contains("is a recording"), "{line:?}: {code} {errors}");
        assert_eq!(std::fs::read(&trace).unwrap(), b"recorded", "{line:?}");
    }
}
