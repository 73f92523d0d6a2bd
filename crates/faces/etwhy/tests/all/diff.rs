//! Before, after and after: the backup server of the story, whose table `diff` must reproduce.

use crate::{ETWHY, Json as _, Str as _};
use serde_json::Value;
use std::path::Path;

/// The three traces, a twentieth of their length.
fn traces(folder: &Path) -> Vec<String> {
    ["dpc_flood", "dpc_flood_three_changes", "dpc_flood_ids_uninstalled"]
        .map(|name| ETWHY.story(name, "0.05", folder).str().to_owned())
        .to_vec()
}

#[test]
fn the_story_of_the_backup_server() {
    let folder = tempfile::tempdir().unwrap();
    let traces = traces(folder.path());
    let out = ETWHY.output(&["diff", &traces[0], &traces[1], &traces[2], "-q", "--json"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let diff: Value = serde_json::from_slice(&out.stdout).unwrap();
    let list = |key: &str| diff[key].list().clone();
    let ndis =
        list("interrupts").into_iter().find(|m| m["class"] == "dpc" && m["module"] == "ndis.sys").unwrap();
    // In 10 s: 163,230 DPCs took 36.8 s, then 55,000 took 37.7 s (682 µs each), then 127,000 took 11 s (about 90 µs).
    for (at, (count, seconds)) in
        [(163_230.0, 36.8), (55_000.0, 37.7), (127_000.0, 11.0)].into_iter().enumerate()
    {
        let figures = &ndis["traces"][at];
        let near = |key: &str, wanted: f64| {
            let found = figures[key].float();
            assert!((found / wanted - 1.0).abs() < 0.02, "trace {at}: {key} is {found}, not {wanted}");
        };
        near("count", count / 20.0);
        near("total_ns", seconds / 20.0 * 1e9);
        near("mean_ns", seconds / count * 1e9);
    }
    for change in ndis["mean_changes"].list() {
        let get = |key: &str| change[key].float();
        assert!(get("ratio_low") <= get("ratio") && get("ratio") <= get("ratio_high"), "{change}");
        assert_eq!(change["significant"], true);
    }
    let verdict = |id: &str, culprit: &str| {
        let is = |v: &Value| v["id"] == id && v["culprit"] == culprit;
        list("verdicts").into_iter().find(is).unwrap_or_else(|| panic!("no {id} of {culprit}"))
    };
    assert_eq!(verdict("dpc.filter-in-path", "IDSvia64.sys")["changes"][1], "resolved");
    // With the filters gone nearly all DPCs are below the limit.
    assert_eq!(verdict("dpc.over-limit", "ndis.sys")["changes"][1], "resolved");
    // Team dissolved, driver of the card updated and more: nobody gets the credit alone.
    let last = list("modules").pop().unwrap();
    let removed: Vec<&str> = last["removed"].list().iter().map(|m| m.str()).collect();
    assert!(removed.contains(&"IDSvia64.sys") && removed.contains(&"iansw60e.sys"), "{removed:?}");
    assert_eq!(last["together"], true);
    // The same work: its share has not changed beyond chance.
    let backup =
        list("entities").into_iter().find(|e| e["kind"] == "process" && e["name"] == "backup.exe").unwrap();
    assert!(backup["changes"].list().iter().all(|c| c["significant"] == false), "{backup}");
}

#[test]
fn a_condition_sets_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let traces = traces(folder.path());
    let code = |from: usize, to: usize, condition: &str| {
        ETWHY.output(&["diff", &traces[from], &traces[to], "-q", "--fail-on", condition]).status.code()
    };
    assert_eq!(code(2, 0, "new"), Some(5), "the filter is new");
    assert_eq!(code(0, 2, "new,worse"), Some(0), "nothing got worse");
    assert_eq!(code(0, 0, "new,worse"), Some(0), "a trace against itself");
    assert_eq!(code(0, 1, "sooner"), Some(2));
    let table = ETWHY.output(&[
        "diff",
        &traces[0],
        &traces[2],
        "-q",
        "--table",
        "dpc_by_module",
        "--by",
        "module",
        "--json",
    ]);
    assert!(table.status.success(), "{}", String::from_utf8_lossy(&table.stderr));
    let table: Value = serde_json::from_slice(&table.stdout).unwrap();
    let lines = table["lines"].list();
    let time = lines.iter().find(|l| l["metric"] == "exclusive_ns" && l["key"][0] == "ndis.sys").unwrap();
    assert!((time["ratios"][0].float() - 11.0 / 36.8).abs() < 0.02, "{time}");
}
