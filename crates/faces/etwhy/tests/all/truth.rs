//! Every scenario that ships, written as a trace and judged: the verdict must say what the scenario's truth says.
//!
//! The truth counts what the writer put into the trace. That the trace itself is a correct one is shown elsewhere, by an
//! independent reader.

use crate::{ETWHY, Json as _, Str as _};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn scenarios() -> Vec<PathBuf> {
    let files = etwhy_testkit::scenarios(&["scenarios", "scenarios/tables", "scenarios/findings"]);
    assert!(files.len() >= 20);
    files
}

/// (exclusive, inclusive) in nanoseconds by name.
fn costs(list: &Value) -> BTreeMap<String, (i64, i64)> {
    let ns = |cost: &Value, key: &str| cost[key].int();
    let costs = list.list().iter();
    costs.map(|c| (c["name"].str().to_owned(), (ns(c, "exclusive_ns"), ns(c, "inclusive_ns")))).collect()
}

/// True when the writer left a symbol file for the module, or the runtime names its methods.
fn has_symbols(folder: &Path, module: &str) -> bool {
    let stem = match module.rsplit_once('.').map_or(module, |(stem, _)| stem) {
        "ntoskrnl" => "ntkrnlmp".to_owned(),
        stem => stem.to_lowercase(),
    };
    module == "[.NET]" || folder.join("symbols").join(format!("{stem}.pdb")).is_dir()
}

#[test]
fn verdicts_say_the_truth() {
    for scenario in scenarios() {
        let folder = tempfile::tempdir().unwrap();
        let name = scenario.file_stem().unwrap().str();
        // The stories small: rates, shares and averages are those of the whole.
        let small = ["tables", "findings"].iter().any(|f| scenario.parent().unwrap().ends_with(f));
        let scale = if small { "1" } else { "0.02" };
        let trace = folder.path().join(format!("{name}.etl"));
        ETWHY.synth(&scenario, &trace, &["--scale", scale]);
        let truth = std::fs::read(folder.path().join(format!("{name}.truth.json"))).unwrap();
        let truth: Value = serde_json::from_slice(&truth).unwrap();
        let verdict: Value = ETWHY.json(&["why", trace.str(), "--json", "--top", "100000"]);
        let cpu = &verdict["cpu"];
        // Stacks name their event by thread and time: where a thread's operation (registry, page fault) ends in the
        // very tick of a sample of it, nothing tells which stack is whose. One sample may have the other's.
        let allowed = match name {
            "directory_watcher" | "event_log" | "registry_storm" => 1_000_000,
            "file.directory-watch" | "growth.top-down-alloc" | "process_start_growth" => 1_000_000,
            "memory.demand-zero" | "security.minifilter-delay" => 3_000_000,
            _ => 0,
        };
        let ms = |value: &Value| value.int() * 1_000_000;

        assert_eq!(cpu["busy_ns"].as_i64(), Some(ms(&truth["cpu"]["busy_ms"])), "{name}: busy");
        assert_eq!(cpu["idle_ns"].as_i64(), Some(ms(&truth["cpu"]["idle_ms"])), "{name}: idle");
        assert_eq!(cpu["dpc_ns"].as_i64(), Some(ms(&truth["cpu"]["dpc_ms"])), "{name}: DPCs");
        for (process, time) in truth["cpu_by_process_ms"].fields() {
            // Ids are used again: the truth has one sum for all that had this name and pid.
            let same = |p: &&Value| format!("{} ({})", p["name"].str(), p["pid"]) == *process;
            let found = cpu["processes"].list().iter().filter(same);
            let found: i64 = found.map(|p| p["cpu_ns"].int()).sum();
            assert_eq!(found, ms(time), "{name}: {process}");
        }
        for (key, list) in [("cpu_by_module_ms", "modules"), ("cpu_by_function_ms", "functions")] {
            let mut ours = costs(&cpu[list]);
            if list == "functions" {
                // By exclusive time only those that have any; the rest is in the other list.
                ours.extend(costs(&cpu["inclusive"]));
            }
            let truths = truth[key].fields();
            assert!(!truths.is_empty() || scale == "1", "{name}: {key}");
            for (what, time) in truths {
                // Who has no stacks has functions of the innermost frame at best.
                if name == "trace.stacks-missing" {
                    continue;
                }
                // The writer's name for methods that were compiled while the program ran.
                let what = if what == "jit" { "[.NET]" } else { what };
                let want = (ms(&time["exclusive"]), ms(&time["inclusive"]));
                // A module without exclusive time does not appear in the list by exclusive time.
                if want.0 == 0 && list == "modules" {
                    continue;
                }
                // Some modules of a scenario have no symbols on purpose: nobody can name their functions.
                let module = what.split('!').next().unwrap();
                if list == "functions" && !has_symbols(folder.path(), module) {
                    continue;
                }
                let found = ours.get(what).copied().unwrap_or_default();
                let off = (found.0 - want.0).abs().max((found.1 - want.1).abs());
                assert!(off <= allowed, "{name}: {what}: {found:?}, the truth is {want:?}");
            }
        }
    }
}
