//! CPU time of suspects, by operation.
//!
//! It is measured while each sample is taken ([`Sample::others_cpu_ns`](crate::Sample::others_cpu_ns)). Where it was not, nothing is divided: what a
//! scanner does while files are made says nothing of opening them.

use super::cells::{Cells, Kind};

use crate::amount::time;
use crate::outcome::ProbeOutcome;
use crate::who::{LIKELY, PROVEN, Suspect};
use std::collections::{BTreeMap, BTreeSet};

/// Part of the CPU time of suspects outside of all operations from which on it is worth a sentence.
const WORTH_A_NOTE: f64 = 0.1;

/// Fills in what is known: 0 where nobody was at work, nothing on both sides where it was not measured on one. By probe, whose CPU time
/// is not separated.
pub(super) fn settle(
    sides: [&mut BTreeMap<Kind, Cells>; 2],
    results: [&Results<'_>; 2],
) -> BTreeMap<String, String> {
    let mut unknown: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (_, result) in results.into_iter().flatten() {
        let working = result.suspects.iter().filter(|one| is_accused(one) && one.cpu_ns.unwrap_or(0) > 0);
        if result.samples.iter().any(|sample| sample.others_cpu_ns.is_none()) {
            for suspect in working {
                unknown.entry(result.probe.clone()).or_default().insert(suspect.name.clone());
            }
        }
    }
    for side in sides {
        for (kind, cells) in side.iter_mut() {
            let is_known = !unknown.contains_key(&kind.probe);
            for cell in cells.rounds.values_mut() {
                cell.others_cpu_ns = is_known.then(|| cell.others_cpu_ns.unwrap_or(0.0));
            }
        }
    }
    unknown
        .into_iter()
        .map(|(probe, names)| (probe, names.into_iter().collect::<Vec<_>>().join(", ")))
        .collect()
}

/// What suspects did between the operations that were measured.
pub(super) fn between(before: &Results<'_>, after: &Results<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    for (_, result) in before.iter().chain(after) {
        let accused = result.suspects.iter().filter(|one| is_accused(one));
        let all = accused.filter_map(|one| one.cpu_ns).fold(0, u64::saturating_add);
        let measured: Option<u64> =
            result.samples.iter().try_fold(0_u64, |sum, s| Some(sum.saturating_add(s.others_cpu_ns?)));
        let Some(rest) = measured.map(|measured| all.saturating_sub(measured)) else { continue };
        if all > 0 && rest as f64 >= WORTH_A_NOTE * all as f64 {
            let state = if result.state.is_empty() { String::new() } else { format!(" ({})", result.state) };
            notes.push(format!(
                "{}{state}: {} of the {} of CPU time of those proven or likely at work fell between the measured operations and is part of \
                 none of them.",
                result.probe,
                time(rest as f64),
                time(all as f64)
            ));
        }
    }
    notes
}

/// Results of a side with the number of their file.
pub(super) type Results<'a> = Vec<(usize, &'a ProbeOutcome)>;

/// Whether more speaks against a suspect than that it was there.
pub(super) fn is_accused(suspect: &Suspect) -> bool {
    suspect.confidence == PROVEN || suspect.confidence == LIKELY
}
