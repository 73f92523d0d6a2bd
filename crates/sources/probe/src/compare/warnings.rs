//! What speaks against a comparison.

use crate::outcome::Outcome;
use std::collections::BTreeSet;

/// Facts that results depend on: where they differ, the machine may be the reason.
const FACTS: [(&str, &str); 9] = [
    ("os", "operating systems"),
    ("kernel", "kernels"),
    ("cpu", "processors"),
    ("processors", "numbers of processors"),
    ("memory_bytes", "sizes of memory"),
    ("file_system", "file systems"),
    ("storage", "disks"),
    ("folder", "folders"),
    ("virtual", "kinds of virtual machine"),
];

/// Warnings for two sides of files.
///
/// # Errors
/// If they are the same run.
pub fn of_files(before: &[(String, Outcome)], after: &[(String, Outcome)]) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for (old_name, old) in before {
        for (new_name, new) in after {
            if old.started_utc_s == new.started_utc_s && old.took_ns == new.took_ns && old.took_ns > 0 {
                return Err(format!("{old_name} and {new_name} are the same run: nothing can differ"));
            }
        }
    }
    let both = || before.iter().chain(after).map(|(_, outcome)| outcome);
    for (fact, what) in FACTS {
        let values: BTreeSet<&str> = both().filter_map(|outcome| outcome.machine.get(fact)).collect();
        if values.len() > 1 {
            let values: Vec<&str> = values.into_iter().take(4).collect();
            all.push(format!("different {what}: {}", values.join(" / ")));
        }
    }
    let versions: BTreeSet<&str> = both().map(|outcome| outcome.version.as_str()).collect();
    if versions.len() > 1 {
        let versions: Vec<&str> = versions.into_iter().take(4).collect();
        all.push(format!("different versions of etwhy: {}; probes may have changed", versions.join(" / ")));
    }
    let names: BTreeSet<&str> = both().flat_map(|o| o.probes.iter().map(|p| p.probe.as_str())).collect();
    for name in names {
        let mut seen: Vec<&std::collections::BTreeMap<String, String>> = Vec::new();
        for result in both().flat_map(|outcome| &outcome.probes).filter(|p| p.probe == name) {
            if !seen.contains(&&result.parameters) {
                seen.push(&result.parameters);
            }
        }
        if seen.len() > 1 {
            let keys: BTreeSet<&String> = seen.iter().flat_map(|parameters| parameters.keys()).collect();
            let differ: Vec<String> = keys
                .into_iter()
                .filter_map(|key| {
                    let values: BTreeSet<&str> =
                        seen.iter().map(|p| p.get(key).map_or("none", String::as_str)).collect();
                    let values: Vec<&str> = values.into_iter().take(4).collect();
                    (values.len() > 1).then(|| format!("{key} {}", values.join(" / ")))
                })
                .take(6)
                .collect();
            all.push(format!("{name} ran with different parameters: {}", differ.join(", ")));
        }
    }
    for (file, outcome) in before.iter().chain(after) {
        for result in outcome.probes.iter().filter(|p| !p.ended.is_empty()) {
            all.push(format!("{file}: {} ended early: {}", result.probe, result.ended));
        }
        if outcome.probes.iter().any(|p| !p.state.is_empty()) {
            all.push(format!("{file} holds states of --ab, which are mixed here: compare it alone"));
        }
    }
    all.push(
        "two files were measured at different times: what else the machine did then is part of the difference; --ab alternates states"
            .to_owned(),
    );
    Ok(all)
}

/// Warnings for the states of one run.
pub fn of_states(outcome: &Outcome) -> Vec<String> {
    let ended = outcome.probes.iter().filter(|p| !p.ended.is_empty());
    ended.map(|p| format!("{} ({}) ended early: {}", p.probe, p.state, p.ended)).collect()
}
