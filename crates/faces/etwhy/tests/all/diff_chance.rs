//! `diff` of equal runs finds nothing, of different ones what is different: pairs of traces that differ by their dice only.

use crate::{ETWHY, Json as _, Str as _};
use serde_json::Value;
use std::path::Path;

/// What a run is made of; the defaults are those of all equal runs.
struct Plan {
    duration: &'static str,
    nic_rate: u32,
    svc_busy: f64,
    more: &'static str,
}

const SAME: Plan = Plan { duration: "2s", nic_rate: 3000, svc_busy: 0.3, more: "" };

/// Steady load, load in bursts, DPCs at random moments and in bursts.
fn trace(folder: &Path, name: &str, seed: u32, plan: &Plan) -> String {
    let Plan { duration, nic_rate, svc_busy, more } = plan;
    let scenario = format!(
        r#"
[machine]
name = "SAME"
cpus = 4
duration = "{duration}"
seed = {seed}

[[process]]
name = "app.exe"

[[process]]
name = "svc.exe"

[[samples]]
process = "app.exe"
busy = 0.6
stacks = [
  {{ weight = 3, frames = "ntdll.dll!RtlUserThreadStart;app.exe!main;app.exe!Work" }},
  {{ weight = 1, frames = "ntdll.dll!RtlUserThreadStart;app.exe!main;ntdll.dll!NtReadFile;ntoskrnl.exe!NtReadFile;Ntfs.sys!NtfsFsdRead" }},
]

[[samples]]
process = "svc.exe"
busy = {svc_busy}
burst = {{ on = "40ms", off = "120ms" }}
stack = "ntdll.dll!RtlUserThreadStart;svc.exe!Serve"

[[dpc]]
routine = "nic.sys!Receive"
cpus = [0, 1]
rate = {nic_rate}
duration = {{ lognormal = ["20us", 0.6] }}

[[dpc]]
routine = "storport.sys!Complete"
cpus = [2]
rate = 600
burst = {{ on = "50ms", off = "150ms" }}
duration = {{ lognormal = ["30us", 0.8] }}

[[isr]]
routine = "nic.sys!Interrupt"
cpus = [0, 1]
rate = 2000
duration = {{ lognormal = ["3us", 0.4] }}
{more}
"#
    );
    let (text, etl) = (folder.join(format!("{name}.toml")), folder.join(format!("{name}.etl")));
    std::fs::write(&text, scenario).unwrap();
    ETWHY.synth(&text, &etl, &[]);
    etl.str().to_owned()
}

fn diff(traces: &[String]) -> Value {
    let mut arguments = vec!["diff", "--json", "--quiet"];
    arguments.extend(traces.iter().map(String::as_str));
    serde_json::from_str(&ETWHY.run(&arguments)).unwrap()
}

/// All changes as `kind name`, with the trace that they lead to.
fn changes(diff: &Value) -> Vec<(usize, String, Value)> {
    let mut all = Vec::new();
    for entity in diff["entities"].list() {
        let name = format!("{} {}", entity["kind"].str(), entity["name"].str());
        for (at, change) in entity["changes"].list().iter().enumerate() {
            all.push((at, name.clone(), change.clone()));
        }
    }
    for module in diff["interrupts"].list() {
        let name = format!("{} {}", module["class"].str(), module["module"].str());
        for (kind, list) in [("sum of ", "changes"), ("mean of ", "mean_changes")] {
            for (at, change) in module[list].list().iter().enumerate() {
                all.push((at, format!("{kind}{name}"), change.clone()));
            }
        }
    }
    all
}

/// 24 pairs of equal runs: four first ones, six others for each.
#[test]
fn equal_runs_are_not_different() {
    let folder = tempfile::tempdir().unwrap();
    let (mut compared, mut wrong, mut pairs) = (0, Vec::new(), std::collections::BTreeSet::new());
    for group in 0..4 {
        let traces: Vec<String> = (0..7)
            .map(|at| trace(folder.path(), &format!("{group}-{at}"), 100 + group * 10 + at, &SAME))
            .collect();
        let diff = diff(&traces);
        assert_eq!(diff["caveats"], Value::Array(Vec::new()));
        for (at, name, change) in changes(&diff) {
            compared += 1;
            let run = &change["per_run"]["significant"];
            if change["significant"] == true || *run == true {
                pairs.insert((group, at));
                wrong.push(format!("{group}-{at} {name}: {change}"));
            }
        }
        for path in &traces {
            std::fs::remove_file(path).unwrap();
        }
    }
    println!(
        "{compared} comparisons of equal runs, {} called different, in {} pairs",
        wrong.len(),
        pairs.len()
    );
    assert!(compared > 24 * 10, "{compared}");
    // Each kind of names is wrong in one of 20 pairs at most; there are five.
    assert!(wrong.len() * 100 <= compared && pairs.len() <= 4, "{}", wrong.join("\n"));
}

/// A trace against itself with some of its buffers missing, either way round: nothing that the data could show has changed.
#[test]
fn missing_buffers_are_no_change() {
    let folder = tempfile::tempdir().unwrap();
    let more = r#"
[[process]]
name = "spin.exe"

[[samples]]
process = "spin.exe"
busy = 0.9
stack = "ntdll.dll!RtlUserThreadStart;spin.exe!Run;libiomp5md.dll!__kmp_wait_template"

[[dpc]]
routine = "long.sys!Dpc"
cpus = [3]
rate = 200
duration = "300us"
"#;
    let whole = trace(folder.path(), "whole", 7, &Plan { duration: "6s", more, ..SAME });
    let partly = ETWHY.partly();
    for percent in ["3%", "10%", "30%"] {
        let lost = folder.path().join("lost.etl");
        partly.synth(&folder.path().join("whole.toml"), &lost, &["--drop-buffers", percent]);
        let lost = lost.str().to_owned();
        for pair in [[whole.as_str(), &lost], [&lost, whole.as_str()]] {
            let found: Value = partly.json(&["diff", "--json", "--quiet", pair[0], pair[1]]);
            let findings = found["verdicts"].list();
            assert!(findings.iter().any(|verdict| verdict["id"] == "cpu.spin-wait"), "{percent}");
            for verdict in findings {
                let change = verdict["changes"][0].str();
                assert!(["same", "cannot_tell"].contains(&change), "{percent} {}: {change}", verdict["id"]);
            }
            for (_, name, change) in changes(&found) {
                let significant = change["significant"] == true || change["per_run"]["significant"] == true;
                assert!(!significant, "{percent} {name}: {change}");
            }
        }
    }
}

#[test]
fn what_is_different_is_found() {
    let folder = tempfile::tempdir().unwrap();
    // 75 bursts: in a dozen of them twice the load would be chance.
    let before = trace(folder.path(), "before", 1, &Plan { duration: "12s", ..SAME });
    let plan = Plan {
        duration: "12s",
        nic_rate: 4000,
        svc_busy: 0.6,
        more: r#"
[[samples]]
process = "app.exe"
busy = 0.2
stack = "ntdll.dll!RtlUserThreadStart;app.exe!main;app.exe!Extra"

[[dpc]]
routine = "new.sys!Dpc"
cpus = [3]
rate = 300
duration = { lognormal = ["30us", 0.5] }
"#,
    };
    let after = trace(folder.path(), "after", 2, &plan);
    let found = |diff: &Value, name: &str, what: &str| {
        let all = changes(diff);
        let change = all.iter().find(|(_, n, _)| n == name).unwrap_or_else(|| panic!("no {name}: {all:?}"));
        assert!(
            change.2["what"] == what && change.2["significant"] == true,
            "{name} is {what}: {}",
            change.2
        );
    };
    let there = diff(&[before.clone(), after.clone()]);
    for (name, what) in [
        ("function app.exe!Extra", "new"),
        ("process svc.exe", "more"),
        ("sum of dpc nic.sys", "more"),
        ("sum of dpc new.sys", "new"),
    ] {
        found(&there, name, what);
    }
    let back = diff(&[after, before]);
    for (name, what) in [
        ("function app.exe!Extra", "gone"),
        ("process svc.exe", "less"),
        ("sum of dpc nic.sys", "less"),
        ("sum of dpc new.sys", "gone"),
    ] {
        found(&back, name, what);
    }
}

#[test]
fn the_same_work_that_takes_longer_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let short = trace(folder.path(), "short", 3, &Plan { duration: "300ms", ..SAME });
    let long = trace(folder.path(), "long", 4, &Plan { duration: "6s", ..SAME });
    let found = diff(&[short.clone(), long.clone()]);
    let caveat = found["caveats"][0].str();
    assert!(caveat.contains("times as long") && caveat.contains("per run"), "{caveat}");
    let (_, _, app) = changes(&found).into_iter().find(|(_, name, _)| name == "process app.exe").unwrap();
    assert_eq!(app["significant"], false, "{app}");
    assert_eq!(app["per_run"]["significant"], true, "{app}");
    assert!((app["per_run"]["ratio"].float() / 20.0 - 1.0).abs() < 0.2, "{app}");
    // The text says both; a table of any kind does too.
    let text = |arguments: &[&str]| ETWHY.run(arguments);
    let page = text(&["diff", "--quiet", &short, &long]);
    assert!(page.contains("But:") && page.contains("per run"), "{page}");
    let table = text(&["diff", "--quiet", &short, &long, "--table", "dpc_by_module", "--by", "module"]);
    assert!(table.contains("But:") && table.contains("whole runs"), "{table}");
}

/// Ten runs, of which the last four have a busier service: that run is named, nothing else, and CI can stop there.
#[test]
fn the_run_from_which_on_it_costs_more_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let busier = Plan { svc_busy: 0.45, ..SAME };
    let mut runs: Vec<String> = (0..10u32)
        .map(|run| {
            let plan = if run < 6 { &SAME } else { &busier };
            trace(folder.path(), &format!("run-{run:02}"), 300 + run, plan)
        })
        .collect();
    let asked = |runs: &[String], more: &[&str]| {
        let mut arguments = vec!["diff", "--series", "--quiet"];
        arguments.extend(more);
        arguments.extend(runs.iter().map(String::as_str));
        ETWHY.ran(&arguments)
    };
    let page = folder.path().join("steps.html");
    let (code, text, said) =
        asked(&runs, &["--json", "--fail-on", "slower", "--html", page.to_str().unwrap()]);
    assert_eq!(code, 5, "{said}");
    assert!(said.contains("slower: process svc.exe from run 7 (run-06.etl) on"), "{said}");
    let series: Value = serde_json::from_str(&text).unwrap();
    let service = series["courses"].list().iter().find(|c| c["kind"] == "process" && c["name"] == "svc.exe");
    let step = &service.unwrap()["steps"][0];
    assert_eq!((step["run"].as_i64(), step["label"].str()), (Some(6), "run-06.etl"));
    let ratio = |end: &str| step[end].as_f64().unwrap();
    assert!(ratio("ratio_low") < 1.5 && ratio("ratio_high") > 1.5 && ratio("ratio_low") > 1.2, "{step}");
    // What rises with it is the same load: the CPU time of the run, its module and function. Nothing of anybody else.
    let others = ["app.exe", "nic.sys", "storport.sys", "Ntfs.sys"];
    for course in series["courses"].list() {
        let steps = course["steps"].list();
        assert!(steps.is_empty() || !others.contains(&course["name"].str()), "{course}");
    }
    assert!(std::fs::read_to_string(&page).unwrap().contains("run-06.etl"));
    let (code, markdown, _) = asked(&runs, &["--md", "--fail-on", "faster"]);
    assert!(code == 0 && markdown.contains("## Steps") && markdown.contains("svc.exe"), "{markdown}");

    let (code, text, _) = asked(&runs[..6], &["--json", "--fail-on", "slower,faster"]);
    let series: Value = serde_json::from_str(&text).unwrap();
    assert!(series["courses"].list().iter().all(|course| course["steps"].list().is_empty()), "{series}");
    assert_eq!(code, 0);
    runs.truncate(4);
    let (code, _, said) = asked(&runs, &[]);
    assert!(code != 0 && said.contains("at least 5 runs, there are 4"), "{said}");
}
