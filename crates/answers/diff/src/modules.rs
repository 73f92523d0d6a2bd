//! Drivers and programs that came, went, or have another version.

use super::scale::Side;
use etwhy_analysis::derived::module::ModuleRow;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use ts_rs::TS;

/// What changed from the first trace to another one.
#[derive(Clone, Debug, Default, Serialize, TS)]
#[ts(rename = "ModuleChanges")]
pub struct Changes {
    /// Modules that came.
    pub added: Vec<String>,
    /// Modules that went.
    pub removed: Vec<String>,
    /// Modules with another version or file: name, before, after.
    pub replaced: Vec<(String, String, String)>,
    /// Several kernel modules changed at once: a difference cannot be credited to one of them.
    pub together: bool,
}

#[derive(Clone)]
struct Module {
    kernel: bool,
    /// Of the version resource, where it is known.
    version: Option<String>,
    size_bytes: i64,
}

impl Module {
    /// Both in words, if they are of two builds: by the version, or by the size where one of them has none.
    fn other_build(&self, after: &Module) -> Option<(String, String)> {
        let size = |module: &Module| format!("{} bytes", module.size_bytes);
        match (&self.version, &after.version) {
            (Some(old), Some(new)) => (old != new).then(|| (old.clone(), new.clone())),
            _ if self.size_bytes <= 0 || after.size_bytes <= 0 => None,
            _ => (self.size_bytes != after.size_bytes).then(|| (size(self), size(after))),
        }
    }
}

/// For each trace but the first.
pub fn compare(sides: &[Side<'_>]) -> Vec<Changes> {
    let all: Vec<BTreeMap<String, Module>> = sides.iter().map(read).collect();
    let Some((base, others)) = all.split_first() else { return Vec::new() };
    others.iter().map(|other| between(base, other)).collect()
}

fn between(before: &BTreeMap<String, Module>, after: &BTreeMap<String, Module>) -> Changes {
    let mut changes = Changes::default();
    // A trace that does not list its modules has lost none.
    if before.is_empty() || after.is_empty() {
        return changes;
    }
    let mut kernel = BTreeSet::new();
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for name in names {
        let (old, new) = (before.get(name), after.get(name));
        match (old, new) {
            (None, Some(_)) => changes.added.push(name.clone()),
            (Some(_), None) => changes.removed.push(name.clone()),
            (Some(old), Some(new)) => {
                let Some((old, new)) = old.other_build(new) else { continue };
                changes.replaced.push((name.clone(), old, new));
            }
            (None, None) => continue,
        }
        if old.or(new).is_some_and(|m| m.kernel) {
            kernel.insert(name);
        }
    }
    changes.together = kernel.len() > 1;
    changes
}

fn read(side: &Side<'_>) -> BTreeMap<String, Module> {
    let mut found = BTreeMap::new();
    for row in &side.db.read_or_empty::<ModuleRow>() {
        let version = row.file_version().map(str::to_owned);
        let module = Module { kernel: row.kind() == "kernel", version, size_bytes: row.size_bytes() };
        found.insert(row.name().to_owned(), module);
    }
    found
}
