//! What is to be read: files that are not known yet, sorted into recordings.

use crate::inbox::Found;
use crate::known::Known;
use etwhy_trace::identity::{Identity, group};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Boot times that differ by more are of two boots. 100 ns. (`identity::machine` decides; this only keeps apart what cannot be one.)
const OTHER_BOOT: i64 = 60 * 10_000_000;
/// Files that lie further apart in time are of two recordings.
const OTHER_TIME_NS: i64 = 180_000_000_000;

/// A file that was given, with what is known of its content.
#[derive(Clone, Debug)]
pub struct Item {
    /// The file.
    pub found: Found,
    /// Name of its content.
    pub content_id: String,
    /// SHA-256 of the file, if it had to be compared with another one.
    pub sha256: Option<String>,
    /// It may hold several traces.
    pub archive: bool,
    /// What it says of its recording; none of archives and of what is no trace.
    pub identity: Option<Known>,
    /// Its content was read before with the same settings.
    pub done: bool,
    /// The store has a row for this file.
    pub noted: bool,
    /// The file of which it is the beginning and nothing else ([`crate::cut`]), by its number.
    pub cut_of: Option<usize>,
}

/// Files that are read together, by their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Its files, in the order of their names.
    pub files: Vec<usize>,
    /// Bytes of its files.
    pub bytes: u64,
}

/// What is to be done.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// What is read together.
    pub units: Vec<Unit>,
    /// New files whose content is known: their numbers, and those of the files of that content that are there.
    pub copies: Vec<(usize, Option<usize>)>,
    /// New files that are the beginning of another one: their numbers, and those of the others.
    pub cut: Vec<(usize, usize)>,
}

/// Sorts files into recordings and leaves out those that are done. A recording of which one file is new is read anew with all of its files
/// that are there.
pub fn plan(items: &[Item]) -> Plan {
    let mut plan = Plan::default();
    // What is done comes first, so that it is the copies that are new.
    let mut by_content: HashMap<&str, usize> = HashMap::new();
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|&n| items.get(n).map(|item| (!item.done, !item.noted)));
    let mut unique = BTreeSet::new();
    for n in order {
        let Some(item) = items.get(n) else { continue };
        if let Some(of) = item.cut_of {
            plan.cut.extend((!item.noted).then_some((n, of)));
            continue;
        }
        match by_content.get(item.content_id.as_str()) {
            Some(&first) => plan.copies.extend((!item.noted).then_some((n, Some(first)))),
            None => {
                by_content.insert(&item.content_id, n);
                unique.insert(n);
                plan.copies.extend((item.done && !item.noted).then_some((n, None)));
            }
        }
    }
    for files in recordings(items, &unique) {
        if files.iter().any(|&n| items.get(n).is_some_and(|item| !item.done)) {
            let bytes = files.iter().filter_map(|&n| items.get(n)).map(|item| item.found.bytes);
            plan.units.push(Unit { bytes: bytes.fold(0, u64::saturating_add), files });
        }
    }
    // Large ones first, so that the last one to end is a small one.
    plan.units.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.files.cmp(&b.files)));
    plan.copies.sort_unstable();
    plan.cut.sort_unstable();
    plan
}

fn recordings(items: &[Item], unique: &BTreeSet<usize>) -> Vec<Vec<usize>> {
    let mut all = Vec::new();
    let mut known: Vec<(usize, Identity)> = Vec::new();
    for &n in unique {
        let Some(item) = items.get(n) else { continue };
        match &item.identity {
            Some(identity) if !item.archive => known.push((n, identity.identity(item.found.path.clone()))),
            _ => all.push(vec![n]),
        }
    }
    for cluster in clusters(known) {
        let new = cluster.iter().any(|(n, _)| items.get(*n).is_some_and(|item| !item.done));
        if !new {
            continue;
        }
        let (numbers, identities): (Vec<usize>, Vec<Identity>) = cluster.into_iter().unzip();
        let groups = group(&identities).recordings;
        all.extend(
            groups.iter().map(|members| members.iter().filter_map(|&m| numbers.get(m)).copied().collect()),
        );
    }
    all
}

/// Files that may be of one recording, since comparing each with each would take too long. Those that do not tell their boot are compared
/// with all of their time.
fn clusters(mut files: Vec<(usize, Identity)>) -> Vec<Vec<(usize, Identity)>> {
    files.sort_by_key(|(n, identity)| (identity.span_ns.0, *n));
    let mut by_time: Vec<Vec<(usize, Identity)>> = Vec::new();
    let mut end = i64::MIN;
    for file in files {
        let (first, last) = file.1.span_ns;
        match by_time.last_mut() {
            Some(open) if first.saturating_sub(end) <= OTHER_TIME_NS => open.push(file),
            _ => by_time.push(vec![file]),
        }
        end = end.max(last);
    }
    by_time.into_iter().flat_map(by_boot).collect()
}

fn by_boot(files: Vec<(usize, Identity)>) -> Vec<Vec<(usize, Identity)>> {
    if files.len() < 3 || files.iter().any(|(_, identity)| identity.machine.boot.is_none()) {
        return vec![files];
    }
    let mut boots: BTreeMap<i64, Vec<(usize, Identity)>> = BTreeMap::new();
    for file in files {
        boots.entry(file.1.machine.boot.unwrap_or(0)).or_default().push(file);
    }
    let mut all: Vec<Vec<(usize, Identity)>> = Vec::new();
    let mut last = None;
    for (boot, files) in boots {
        match (all.last_mut(), last) {
            (Some(open), Some(before)) if boot.saturating_sub(before) <= OTHER_BOOT => open.extend(files),
            _ => all.push(files),
        }
        last = Some(boot);
    }
    for files in &mut all {
        files.sort_by_key(|(n, _)| *n);
    }
    all
}
