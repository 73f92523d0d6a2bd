//! Who may know whom: crates depend on each other in one direction.

use crate::repo::Repo;
use anyhow::{Result, bail};
use serde_json::Value;

/// What each crate of `crates/` may depend on. Those that are not listed (tools such as `fuzz` and `bench`)
/// may know everything, and nothing may know them. Everybody may know `base`.
const ALLOWED: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("os", &[]),
    ("scratch", &["os"]),
    ("child", &["os"]),
    ("stats", &[]),
    ("symbols", &["os", "scratch"]),
    ("knowledge", &[]),
    ("etl", &["os"]),
    ("table", &["os"]),
    ("vtab", &[]),
    // Nobody but tests knows it.
    ("testkit", &[]),
    // What it judges must not help it.
    ("truth", &[]),
    ("audit", &["table", "knowledge"]),
    ("counters", &["table"]),
    ("decode", &["etl"]),
    ("input", &["scratch", "etl", "symbols"]),
    ("messages", &["scratch", "input"]),
    ("evtx", &["os", "etl", "table", "messages"]),
    ("trace", &["etl", "decode", "symbols", "table", "knowledge", "stats"]),
    ("doc", &[]),
    ("export", &["scratch", "doc", "table", "trace"]),
    ("probe", &["os", "table", "doc", "stats", "knowledge"]),
    ("sql", &["table", "trace", "vtab", "stats", "knowledge"]),
    ("analysis", &["table", "trace", "evtx", "audit", "counters", "sql", "stats", "knowledge"]),
    ("rules", &["table", "trace", "counters", "sql", "analysis", "knowledge"]),
    ("diff", &["decode", "table", "trace", "analysis", "rules", "stats"]),
    ("report", &["table", "trace", "sql", "analysis", "rules", "doc", "export"]),
    (
        "hud",
        &[
            "child",
            "scratch",
            "table",
            "trace",
            "sql",
            "analysis",
            "rules",
            "diff",
            "export",
            "report",
            "knowledge",
        ],
    ),
    (
        "fleet",
        &[
            "child",
            "scratch",
            "etl",
            "input",
            "table",
            "trace",
            "sql",
            "analysis",
            "rules",
            "doc",
            "export",
            "stats",
            "knowledge",
        ],
    ),
    ("record", &["os", "etl", "decode", "symbols", "messages"]),
    ("live", &["etl", "decode", "table", "trace", "sql", "analysis", "rules", "report", "record", "doc"]),
    ("synth", &["etl", "decode"]),
    (
        "etwhy",
        &[
            "child",
            "scratch",
            "etl",
            "input",
            "decode",
            "table",
            "doc",
            "export",
            "symbols",
            "knowledge",
            "trace",
            "sql",
            "analysis",
            "rules",
            "diff",
            "report",
            "hud",
            "fleet",
            "live",
            "record",
            "synth",
            "messages",
            "evtx",
            "audit",
            "counters",
            "probe",
        ],
    ),
];

/// Fails if a crate knows another that it should not. Dependencies of tests are free.
///
/// # Errors
/// The forbidden dependencies.
pub fn check(repo: &Repo) -> Result<()> {
    let edges = edges(&repo.metadata()?);
    let wrong = violations(&edges);
    if !wrong.is_empty() {
        bail!("dependencies against the flow (xtask/src/layers.rs has the table):\n  {}", wrong.join("\n  "));
    }
    let unused = unused(ALLOWED, &edges);
    if !unused.is_empty() {
        bail!("xtask/src/layers.rs allows what no crate uses:\n  {}", unused.join("\n  "));
    }
    Ok(())
}

/// (crate, crate that it depends on) within the workspace, by folder name.
fn edges(metadata: &Value) -> Vec<(String, String)> {
    let list =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let mut edges = Vec::new();
    for package in list(metadata, "packages") {
        let Some(from) =
            text(&package, "manifest_path").and_then(|path| folder_of(path.trim_end_matches("Cargo.toml")))
        else {
            continue;
        };
        for dependency in list(&package, "dependencies") {
            // A normal dependency has no kind.
            if text(&dependency, "kind").is_some_and(|kind| kind == "dev") {
                continue;
            }
            if let Some(to) = text(&dependency, "path").and_then(|path| folder_of(&path)) {
                edges.push((from.clone(), to));
            }
        }
    }
    edges
}

/// The last component of a folder's path.
fn folder_of(path: &str) -> Option<String> {
    path.split(['/', '\\']).rfind(|part| !part.is_empty()).map(str::to_owned)
}

fn violations(edges: &[(String, String)]) -> Vec<String> {
    let allowed = |name: &str| ALLOWED.iter().find(|(crate_name, _)| *crate_name == name);
    edges
        .iter()
        .filter(|(from, to)| match allowed(from) {
            Some(_) if to == "base" => false,
            Some((_, may)) => !may.contains(&to.as_str()),
            None => allowed(to).is_none(),
        })
        .map(|(from, to)| format!("{from} -> {to}"))
        .collect()
}

/// Rules that no dependency needs.
fn unused(allowed: &[(&str, &[&str])], edges: &[(String, String)]) -> Vec<String> {
    let used = |from: &str, to: &str| edges.iter().any(|edge| edge.0 == from && edge.1 == to);
    let rules = allowed.iter().flat_map(|(from, may)| may.iter().map(move |to| (*from, *to)));
    rules.filter(|(from, to)| !used(from, to)).map(|(from, to)| format!("{from} -> {to}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_nothing_uses_is_named() {
        let edges = [("etl".to_owned(), "os".to_owned())];
        assert_eq!(unused(&[("etl", &["os", "table"])], &edges), ["etl -> table"]);
    }

    #[test]
    fn the_table_itself_has_one_direction() {
        for (at, (name, may)) in ALLOWED.iter().enumerate() {
            for other in *may {
                let place = ALLOWED.iter().position(|(name, _)| name == other);
                assert!(place.is_some_and(|place| place < at), "{name} -> {other}");
            }
        }
    }

    #[test]
    fn a_forbidden_dependency_is_named() {
        let metadata = serde_json::json!({ "packages": [
            { "manifest_path": "/r/crates/formats/etl/Cargo.toml", "dependencies": [
                { "path": "/r/crates/foundation/os", "kind": null },
                { "path": "/r/crates/foundation/base", "kind": null },
                { "path": "/r/crates/model/trace", "kind": null },
                { "path": "/r/crates/sources/synth", "kind": "dev" },
                { "kind": null },
            ] },
            { "manifest_path": "C:\\r\\crates\\fuzz\\Cargo.toml", "dependencies": [
                { "path": "C:\\r\\crates\\etl", "kind": null },
            ] },
            { "manifest_path": "/r/crates/answers/analysis/Cargo.toml", "dependencies": [
                { "path": "/r/crates/tools/fuzz", "kind": null },
            ] },
        ] });
        assert_eq!(violations(&edges(&metadata)), ["etl -> trace", "analysis -> fuzz"]);
    }
}
