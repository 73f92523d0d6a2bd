//! The bill: its rows add up to the machine, whatever the trace lacks, and the stories name their culprits.
//! The tables that it rests on are compared with the rows that they sum up.

use etwhy_testkit::{Json as _, Program, Str as _};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The program.
const ETWHY: Program = crate::ETWHY.partly();

type Row = serde_json::Map<String, Value>;

fn rows(table: &str, trace: &Path) -> Vec<Row> {
    ETWHY.dump(table, trace)
}

fn number(row: &Row, column: &str) -> f64 {
    row.get(column).and_then(Value::as_f64).unwrap_or(0.0)
}

fn text<'r>(row: &'r Row, column: &str) -> &'r str {
    row.get(column).and_then(Value::as_str).unwrap_or("")
}

fn scenarios() -> PathBuf {
    etwhy_testkit::root().join("scenarios")
}

/// A scenario as a trace, written small.
fn synth(folder: &Path, scenario: &Path, more: &[&str]) -> PathBuf {
    let trace = folder.join(scenario.file_name().unwrap()).with_extension("etl");
    ETWHY.synth(scenario, &trace, more);
    trace
}

/// Checks that each kind is a partition of the observed time; gives the share of the recorded time that was not observed.
fn adds_up(name: &str, trace: &Path) -> Option<f64> {
    let machine = rows("machine", trace);
    let machine = machine.first()?;
    let (capacity, elapsed) = (number(machine, "capacity_ns"), number(machine, "elapsed_cpu_ns"));
    let bill = rows("bill", trace);
    if elapsed <= 0.0 {
        assert!(bill.is_empty(), "{name}");
        return None;
    }
    let known = machine.get("busy_ns").is_some_and(Value::is_number);
    let mut open = 0.0;
    for kind in ["process", "driver", "product", "category"] {
        let all: Vec<&Row> = bill.iter().filter(|row| text(row, "kind") == kind).collect();
        let sum: f64 = all.iter().map(|row| number(row, "total_cpu_ns")).sum();
        let share: f64 = all.iter().map(|row| number(row, "share_percent")).sum();
        if known {
            assert!((sum / capacity - 1.0).abs() < 0.001, "{name}: {kind} adds up to {sum} of {capacity}");
            assert!((share - 100.0).abs() < 0.1, "{name}: {kind} {share} %");
        } else {
            // Nobody looked: no CPU time, no share.
            assert_eq!((sum, share), (0.0, 0.0), "{name}: {kind}");
        }
        for row in &all {
            let parts = ["own_cpu_ns", "frames_cpu_ns", "dpc_ns", "isr_ns"].map(|c| number(row, c));
            assert!(parts.iter().all(|&n| n >= 0.0) && number(row, "total_cpu_ns") >= 0.0, "{name}: {row:?}");
            let part = text(row, "part");
            let flag = |column: &str| row.get(column) == Some(&Value::Bool(true));
            assert_eq!(flag("is_idle"), part == "idle", "{name}: {row:?}");
            assert_eq!(
                flag("is_unattributed"),
                ["unattributed", "unobserved"].contains(&part),
                "{name}: {row:?}"
            );
            if !["idle", "unattributed", "unobserved"].contains(&part) {
                assert_eq!(parts.iter().sum::<f64>(), number(row, "total_cpu_ns"), "{name}: {row:?}");
                let joules = ["energy_low_j", "energy_j", "energy_high_j"].map(|c| number(row, c));
                assert!(joules[0] <= joules[1] && joules[1] <= joules[2], "{name}: {row:?}");
            }
            if part == "unobserved" {
                open = number(row, "unobserved_ns") / elapsed;
                assert!(row.get("share_percent").is_none_or(Value::is_null), "{name}: {row:?}");
                assert!(open < 0.001 || !text(row, "why").is_empty(), "{name}: nobody says why");
            }
        }
    }
    if known {
        agrees(name, trace, machine, &bill);
    }
    Some(open)
}

/// Everything that says how busy the processors were says the same.
fn agrees(name: &str, trace: &Path, machine: &Row, bill: &[Row]) {
    let busy = number(machine, "busy_percent");
    let near = |who: &str, percent: f64| {
        assert!((percent - busy).abs() < 0.2, "{name}: {who} says busy {percent} %, machine {busy} %");
    };
    let of_kind = |kind: &str| -> f64 {
        let nobodys = |row: &&Row| ["idle", "unattributed", "unobserved"].contains(&text(row, "part"));
        bill.iter()
            .filter(|row| text(row, "kind") == kind && !nobodys(row))
            .map(|row| number(row, "share_percent"))
            .sum()
    };
    let by_switches = bill.iter().any(|row| text(row, "source") == "cswitch");
    for kind in ["process", "product"] {
        // Sums of threads and of processors differ a little at the ends of the trace.
        let (busy, got) = (busy, of_kind(kind));
        assert!(
            (got - busy).abs() < if by_switches { 5.0 } else { 0.2 },
            "{name}: {kind} {got} %, machine {busy} %"
        );
    }
    let path = trace.str();
    let why: Value = serde_json::from_str(&ETWHY.run(&["why", "--json", "--quiet", path])).unwrap();
    let cpu = |column: &str| why["cpu"][column].float();
    let idle_known = machine.get("idle_ns").is_some_and(Value::is_number);
    if !by_switches && idle_known {
        near("why", 100.0 * cpu("busy_ns") / (cpu("busy_ns") + cpu("idle_ns")));
        let sentence = why["sentence"].str();
        if let Some((_, said)) = sentence.split_once("were busy ") {
            let said: f64 = said.split_once(" %").unwrap().0.parse().unwrap();
            assert!((said - busy).abs() <= 0.7, "{name}: {said} % is not {busy} %: {sentence}");
        }
    }
    for row in why["bill"].list() {
        let row = row.fields();
        let is = |other: &&Row| {
            ["kind", "part", "culprit"].iter().all(|c| text(row, c) == text(other, c))
                && number(row, "total_cpu_ns") == number(other, "total_cpu_ns")
        };
        assert!(bill.iter().any(|other| is(&other)), "{name}: {row:?}");
    }
    let diff: Value = serde_json::from_str(&ETWHY.run(&["diff", "--json", "--quiet", path, path])).unwrap();
    near("diff", 100.0 * diff["traces"][0]["busy_share"].float());
    let entities = diff["entities"].list();
    assert!(entities.iter().all(|e| e["changes"][0]["significant"] == false), "{name}: differs from itself");
    if !by_switches {
        let view = ETWHY.run(&[
            "sql",
            path,
            "SELECT sum(share) AS share FROM cpu_by_process",
            "--format",
            "jsonl",
            "--quiet",
        ]);
        let row: Value = serde_json::from_str(view.trim()).unwrap();
        near("cpu_by_process", 100.0 * row["share"].as_f64().unwrap_or(0.0));
    }
}

#[test]
fn every_scenario_adds_up() {
    let folder = tempfile::tempdir().unwrap();
    let scales = [
        ("antivirus_opens", "0.01"),
        ("clean_busy_machine", "0.1"),
        ("directory_watcher", "0.004"),
        ("virtual_alloc_top_down", "0.02"),
    ];
    let (mut seen, mut sampled) = (0, 0);
    for path in etwhy_testkit::scenarios(&["scenarios", "scenarios/tables"]) {
        let name = path.file_stem().unwrap().str().to_owned();
        let small = scales.iter().find(|(n, _)| *n == name).map_or("0.02", |(_, s)| s);
        let scale = if path.parent().unwrap().ends_with("tables") { "1" } else { small };
        let trace = synth(folder.path(), &path, &["--scale", scale]);
        let open = adds_up(&name, &trace);
        seen += 1;
        // Traces without any samples are those of other tables.
        if rows("machine", &trace).iter().any(|row| row.get("sampled_busy_ns").is_some_and(Value::is_number))
        {
            sampled += 1;
            // The kernel's session of this one is taken over in the middle.
            let taken = if name == "loggers" { 0.5 } else { 0.0 };
            assert!(open.unwrap() <= 0.05 + taken, "{name}: {:.1} % not observed", 100.0 * open.unwrap());
        }
        std::fs::remove_file(trace).unwrap();
    }
    assert!(seen > 25 && sampled > 12, "{seen} scenarios, {sampled} with samples");
}

/// `clean_busy_machine` with other lines in its machine.
fn changed(folder: &Path, name: &str, lines: &str, more: &[&str]) -> PathBuf {
    let scenario = std::fs::read_to_string(scenarios().join("clean_busy_machine.toml")).unwrap();
    let path = folder.join(format!("{name}.toml"));
    let scenario = scenario.replacen("context_switches = true\n", "", 1);
    let own = if lines.contains("context_switches") { "" } else { "\ncontext_switches = true" };
    std::fs::write(&path, scenario.replacen("[machine]", &format!("[machine]\n{lines}{own}"), 1)).unwrap();
    let mut arguments = vec!["--scale", "0.1"];
    arguments.extend(more);
    synth(folder, &path, &arguments)
}

#[test]
fn it_adds_up_whatever_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let source = |trace: &Path| {
        let bill = rows("bill", trace);
        let mut sources: Vec<String> = bill.iter().map(|row| text(row, "source").to_owned()).collect();
        sources.dedup();
        assert_eq!(sources.len(), 1, "one source for the whole column");
        sources.remove(0)
    };
    let whole = changed(folder.path(), "whole", "", &[]);
    assert!(adds_up("whole", &whole).unwrap() < 0.01);
    assert_eq!(source(&whole), "sample");

    // Context switches alone tell the same of processes.
    let switches = changed(folder.path(), "switches", "samples = false", &[]);
    assert!(adds_up("switches", &switches).unwrap() < 0.05);
    assert_eq!(source(&switches), "cswitch");
    let build = |trace: &Path| {
        let bill = rows("bill", trace);
        let row = bill
            .iter()
            .find(|row| text(row, "kind") == "process" && text(row, "culprit").starts_with("build"));
        number(row.unwrap(), "total_cpu_ns")
    };
    assert!((build(&switches) / build(&whole) - 1.0).abs() < 0.03, "{} {}", build(&switches), build(&whole));

    // Without samples of idle processors, context switches still tell that they were idle.
    let busy_only = changed(folder.path(), "busy_only", "idle_samples = false", &[]);
    assert!(adds_up("busy_only", &busy_only).unwrap() < 0.05);
    assert_eq!(source(&busy_only), "sample");

    // Nothing tells: it says so.
    let unknown = changed(folder.path(), "unknown", "idle_samples = false\ncontext_switches = false", &[]);
    adds_up("unknown", &unknown).unwrap();
    let idle = rows("bill", &unknown).into_iter().find(|row| text(row, "part") == "idle").unwrap();
    assert!((30.0..50.0).contains(&number(&idle, "share_percent")), "{idle:?}");
    assert!(text(&idle, "why").contains("cannot be distinguished"), "{idle:?}");
    let nothing = changed(folder.path(), "nothing", "samples = false\ncontext_switches = false", &[]);
    assert_eq!(adds_up("nothing", &nothing), Some(1.0));
    assert_eq!(source(&nothing), "none");
    assert!(rows("bill", &nothing).iter().all(|row| text(row, "confidence") == "cannot tell"));

    let lost = changed(folder.path(), "lost", "", &["--drop-buffers", "20%"]);
    let open = adds_up("lost", &lost).unwrap();
    assert!(open > 0.02, "{open}");
    assert!(rows("bill", &lost).iter().any(|row| text(row, "why").contains("lost")));
}

#[test]
fn the_culprits_of_the_stories() {
    let folder = tempfile::tempdir().unwrap();
    let first = |scenario: &str, scale: &str, kind: &str| {
        let trace = synth(folder.path(), &scenarios().join(format!("{scenario}.toml")), &["--scale", scale]);
        let bill = rows("bill", &trace);
        bill.into_iter().find(|row| text(row, "kind") == kind && text(row, "part") == "culprit").unwrap()
    };
    // 2,167,695 of 4,172,541 ms of samples, all of it below a system call of somebody else.
    let row = first("syscall_hook", "0.01", "driver");
    assert_eq!((text(&row, "culprit"), text(&row, "vendor")), ("tedrdrv.sys", "Palo Alto Networks"));
    let (frames, total) = (number(&row, "frames_cpu_ns"), number(&row, "total_cpu_ns"));
    assert!(frames == total && (total / 21_676_950_000.0 - 1.0).abs() < 0.02, "{total}");
    // 3.66 W for each busy processor, between 1.28 and 10.07.
    let joules = total / 1e9 * 3.66;
    assert!((number(&row, "energy_j") / joules - 1.0).abs() < 0.01, "{row:?}");
    assert!((number(&row, "energy_wh") * 3600.0 / joules - 1.0).abs() < 0.01);
    assert!((number(&row, "energy_low_j") / (joules * 1.28 / 3.66) - 1.0).abs() < 0.02, "{row:?}");
    assert!((number(&row, "energy_high_j") / (joules * 10.07 / 3.66) - 1.0).abs() < 0.02, "{row:?}");

    let row = first("dpc_flood", "0.1", "driver");
    assert_eq!(text(&row, "culprit"), "IDSvia64.sys");
    assert_eq!(number(&row, "dpc_ns"), number(&row, "total_cpu_ns"));
    let row = first("antivirus_opens", "0.01", "product");
    assert_eq!(text(&row, "culprit"), "Example Antivirus");
    assert!(number(&row, "filter_ns") > 0.0);
    let row = first("openmp_spin", "0.1", "process");
    assert!(text(&row, "culprit").starts_with("render.exe"), "{row:?}");
}

#[test]
fn tracing_makes_the_api_33_times_slower() {
    let folder = tempfile::tempdir().unwrap();
    let trace = synth(folder.path(), &scenarios().join("syscall_hook.toml"), &["--scale", "0.05"]);
    let api = rows("api_cost", &trace);
    let sum = |tracing: bool| -> f64 {
        let of = api.iter().filter(|r| text(r, "api") == "KernelBase.dll!SleepEx");
        of.filter(|r| (text(r, "tracing") == "syscall") == tracing).map(|r| number(r, "cost_ns")).sum()
    };
    // Truth: (1,387,533 + 1,061,081) / (2,522,541 - 1,387,533 - 1,061,081).
    let factor = sum(true) / sum(false);
    assert!((factor / 33.12 - 1.0).abs() < 0.02, "{factor}");
    let tags = rows("tag_cost", &trace);
    let lock = tags.iter().find(|r| text(r, "level") == "category" && text(r, "category") == "lock").unwrap();
    assert_eq!(text(lock, "owner"), "tedrdrv.sys");
}

/// Waits of `wait_chain` are those of `cswitch`.
#[test]
fn chains_are_sums_of_switches() {
    let folder = tempfile::tempdir().unwrap();
    for scenario in ["tables/cswitch.toml", "clean_busy_machine.toml"] {
        let trace = synth(folder.path(), &scenarios().join(scenario), &["--scale", "0.5"]);
        type Sums = BTreeMap<(String, String, String), (f64, f64, f64)>;
        let mut expected = Sums::new();
        for row in rows("cswitch", &trace) {
            let waited =
                text(&row, "prev_state") == "Waiting" && row.get("ready_ts_ns").is_some_and(Value::is_number);
            if !waited || !row.get("wait_ns").is_some_and(Value::is_number) {
                continue;
            }
            let by = if row.get("readied_in_dpc") == Some(&Value::Bool(true)) {
                "dpc"
            } else {
                text(&row, "readying_process")
            };
            let key = (text(&row, "new_process"), by, text(&row, "prev_wait_reason"));
            let sum = expected.entry((key.0.into(), key.1.into(), key.2.into())).or_default();
            *sum = (sum.0 + 1.0, sum.1 + number(&row, "wait_ns"), sum.2 + number(&row, "ready_ns"));
        }
        let mut found = Sums::new();
        for row in rows("wait_chain", &trace) {
            let by = if text(&row, "readied_by") == "dpc" { "dpc" } else { text(&row, "readying_process") };
            let key = (text(&row, "waiting_process"), by, text(&row, "wait_reason"));
            let sum = found.entry((key.0.into(), key.1.into(), key.2.into())).or_default();
            let (count, wait, ready) =
                (number(&row, "count"), number(&row, "wait_sum_ns"), number(&row, "ready_ns"));
            *sum = (sum.0 + count, sum.1 + wait, sum.2 + ready);
            let union = number(&row, "wait_union_ns");
            assert!(union <= wait && union >= number(&row, "wait_max_ns"), "{row:?}");
        }
        assert!(expected.len() > 2, "{scenario}");
        assert_eq!(found, expected, "{scenario}");
    }
}

#[test]
fn real_traces_add_up() {
    let Some(folder) = etwhy_testkit::corpus_file("etl/microsoft+perfview") else { return };
    let mut sampled = 0;
    for path in etwhy_testkit::traces(&folder) {
        let name = path.file_name().unwrap().str().to_owned();
        if adds_up(&name, &path).is_none() {
            continue;
        }
        let costs =
            |table: &str, column: &str| -> f64 { rows(table, &path).iter().map(|r| number(r, column)).sum() };
        let all = costs("stack_cost", "weight_ns");
        sampled += i32::from(all > 0.0);
        assert_eq!(costs("module_cost", "exclusive_ns"), all, "{name}");
        assert_eq!(costs("function_cost", "exclusive_ns"), all, "{name}");
        assert_eq!(costs("driver_cost", "charged_ns"), all, "{name}");
        assert_eq!(costs("process_slice", "samples"), rows("sample", &path).len() as f64, "{name}");
    }
    assert!(sampled >= 2, "{sampled}");
}

/// The provider's manifest, as far as the test needs it; the layout of a real one is the user's or the trace's.
const ENERGY_MANIFEST: &str = r#"<instrumentationManifest xmlns="http://schemas.microsoft.com/win/2004/08/events">
<instrumentation><events>
<provider name="Microsoft-Windows-Energy-Estimation-Engine" guid="{ddcc3826-a68a-4e0d-bcfd-9c06c27c6948}" symbol="E3"
 resourceFileName="x" messageFileName="x">
<events><event value="37" version="0" template="T" symbol="e37"/></events>
<templates><template tid="T">
<data name="AppName" inType="win:UnicodeString"/>
<data name="CpuEnergy" inType="win:UInt64"/>
<data name="EmiEnergy" inType="win:UInt64"/>
<data name="TimeInMSec" inType="win:UInt32"/>
</template></templates>
</provider></events></instrumentation></instrumentationManifest>"#;

#[test]
fn recorded_energy_by_program() {
    let folder = tempfile::tempdir().unwrap();
    let event = |at: &str, app: &str, cpu: u64, emi: u64| {
        format!(
            "[[manifest_event]]\nprocess = \"app.exe\"\nprovider = \"ddcc3826-a68a-4e0d-bcfd-9c06c27c6948\"\nid = 37\n\
             at = [\"{at}\"]\nfields = [\"{app}\", {{ type = \"u64\", value = {cpu} }}, {{ type = \"u64\", value = {emi} }}, \
             {{ type = \"u32\", value = 60000 }}]\n"
        )
    };
    let mut scenario =
        String::from("[machine]\ncpus = 2\nduration = \"10s\"\n[[process]]\nname = \"app.exe\"\n");
    scenario += &event("2s", "C:/x/app.exe", 1500, 0);
    scenario += &event("2s", "EMI_RAPL_Package0_PKG", 0, 9000);
    let path = folder.path().join("energy.toml");
    std::fs::write(&path, scenario).unwrap();
    let trace = synth(folder.path(), &path, &[]);
    let manifest = folder.path().join("e3.man");
    std::fs::write(&manifest, ENERGY_MANIFEST).unwrap();
    let (trace, manifest) = (trace.str(), manifest.str());
    let text = ETWHY.run(&["dump", "energy", trace, "--manifests", manifest, "--format", "jsonl", "--quiet"]);
    let found: Vec<Row> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(found.len(), 2, "{text}");
    assert_eq!(found[0]["app"], "C:/x/app.exe");
    assert_eq!(
        (found[0]["cpu_energy"].as_i64(), found[0]["dur_ns"].as_i64()),
        (Some(1500), Some(60_000_000_000))
    );
    assert_eq!(found[1]["emi_energy"].as_i64(), Some(9000));
    assert!(found[0]["gpu_energy"].is_null());
}
