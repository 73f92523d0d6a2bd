//! Two states of a machine compared: what became slower, and by how much at least.
//!
//! # Method
//! The unit is the round: samples of one round share what the machine did just then. Values are compared on logarithms, because
//! noise of durations is a factor; the ratio is that of the typical values (medians over rounds). Its interval and the verdict come from one
//! test of all comparisons together ([`family`]; states alternated: rounds are pairs; two files: two samples, with
//! [`family::caution`]): the interval excludes 1 exactly if the test shows a difference. A verdict needs six rounds a side, and more than the
//! machine's own noise: what two rounds in the same state differ by. `tests/all/coverage.rs` shows by simulation on recorded runs how often
//! all this is wrong. Totals rest on means (`totals`).

pub mod cells;
mod contrasts;
mod difference;
pub mod family;
mod others;
pub mod tax;
mod totals;
pub mod warnings;

pub use contrasts::{Against, contrasts};
pub use difference::{Difference, LEAST_FLOOR, Verdict};
pub use family::ALPHA;

use crate::outcome::{Outcome, ProbeOutcome};
use crate::who::{self, Suspect};
use cells::{cells, join_sizes};
use difference::{Sides, differences, floor};
use others::{Results, is_accused};
use std::collections::BTreeMap;

/// State of the run that other runs are compared with.
pub const OFF: &str = "off";
/// The other state.
pub const ON: &str = "on";
/// The two runs in the same state that show the noise before anything is compared.
pub const TWICE: [&str; 2] = ["off-1", "off-2"];

/// A comparison.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// What the sides are called.
    pub labels: [String; 2],
    /// True if rounds are pairs.
    pub paired: bool,
    /// What speaks against comparing these at all.
    pub warnings: Vec<String>,
    /// All series that both sides have.
    pub differences: Vec<Difference>,
    /// Kinds that only one side has.
    pub alone: [usize; 2],
    /// By probe, whose CPU time cannot be separated by operation: figures of CPU time are without it.
    pub not_separated: BTreeMap<String, String>,
    /// CPU time of suspects that is part of no operation: sentences.
    pub notes: Vec<String>,
    /// Who was proven or likely to be at work meanwhile, on each side.
    pub suspects: [Vec<Suspect>; 2],
    /// The processor, for its energy.
    pub cpu: String,
}

/// Compares the two states of a run with `--ab`.
///
/// # Errors
/// If it has no states.
pub fn states(outcome: &Outcome, labels: [String; 2]) -> Result<Comparison, String> {
    let of = |state: &str| -> Results<'_> {
        outcome.probes.iter().filter(|result| result.state == state).map(|result| (0, result)).collect()
    };
    let (before, after) = (of(OFF), of(ON));
    if before.is_empty() || after.is_empty() {
        return Err(
            "these results have no states to compare; `etwhy probe run … --ab ON OFF` makes them".into()
        );
    }
    let twice = TWICE.map(of);
    let warnings = warnings::of_states(outcome);
    compare(&before, &after, &twice, labels, true, warnings, outcome)
}

/// Compares files: `before` with `after`, each with its name.
///
/// # Errors
/// If there is nothing that can be compared.
pub fn files(
    before: &[(String, Outcome)],
    after: &[(String, Outcome)],
    labels: [String; 2],
) -> Result<Comparison, String> {
    let warnings = warnings::of_files(before, after)?;
    let of = |files: &'_ [(String, Outcome)], from: usize| -> Vec<(usize, ProbeOutcome)> {
        let number = |(at, (_, outcome)): (usize, &(String, Outcome))| -> Vec<(usize, ProbeOutcome)> {
            outcome.probes.iter().map(|result| (from + at, result.clone())).collect()
        };
        files.iter().enumerate().flat_map(number).collect()
    };
    let (b, a) = (of(before, 0), of(after, before.len()));
    let (Some((_, any)), true) = (before.first(), !after.is_empty()) else {
        return Err("a file for each side is needed".into());
    };
    fn borrow(all: &[(usize, ProbeOutcome)]) -> Results<'_> {
        all.iter().map(|(at, result)| (*at, result)).collect()
    }
    compare(&borrow(&b), &borrow(&a), &[Vec::new(), Vec::new()], labels, false, warnings, any)
}

fn compare(
    before: &Results<'_>,
    after: &Results<'_>,
    twice: &[Results<'_>; 2],
    labels: [String; 2],
    paired: bool,
    warnings: Vec<String>,
    machine: &Outcome,
) -> Result<Comparison, String> {
    let [mut b, mut a] = [before, after].map(|results| cells(results.iter().copied()));
    let not_separated = others::settle([&mut b, &mut a], [before, after]);
    join_sizes([&mut b, &mut a]);
    let [mut first, mut again] = [&twice[0], &twice[1]].map(|results| cells(results.iter().copied()));
    join_sizes([&mut first, &mut again]);
    let mut all = Vec::new();
    for (kind, old) in &b {
        let same = |new: &&cells::Cells| new.unit == old.unit && new.more_is_better == old.more_is_better;
        let Some(new) = a.get(kind).filter(same) else { continue };
        let noise = floor(old, new, first.get(kind).zip(again.get(kind)));
        let sides = Sides::new(old, new, paired);
        if !sides.before.rounds.is_empty() && !sides.after.rounds.is_empty() {
            all.push((kind.clone(), sides, noise));
        }
    }
    if all.is_empty() {
        return Err("they have nothing in common: no probe measured the same thing in both".into());
    }
    let mut differences = differences(&all);
    // In the order in which they were measured.
    let order: Vec<(&str, &str, &str)> = before
        .iter()
        .flat_map(|(_, r)| {
            r.samples.iter().map(|s| (r.probe.as_str(), s.case.measure.as_str(), s.case.variant.as_str()))
        })
        .collect();
    let mut place: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
    for (at, key) in order.into_iter().enumerate() {
        place.entry(key).or_insert(at);
    }
    let at = |d: &Difference| place.get(&(d.probe.as_str(), d.measure.as_str(), d.variant.as_str())).copied();
    differences.sort_by_cached_key(|d| at(d).unwrap_or(usize::MAX));
    let alone = [
        b.keys().filter(|kind| !a.contains_key(kind)).count(),
        a.keys().filter(|kind| !b.contains_key(kind)).count(),
    ];
    Ok(Comparison {
        labels,
        paired,
        warnings,
        differences,
        alone,
        not_separated,
        notes: others::between(before, after),
        suspects: [before, after].map(accused),
        cpu: machine.machine.get("cpu").unwrap_or_default().to_owned(),
    })
}

/// Who was proven or likely to be at work during these results.
fn accused(results: &Results<'_>) -> Vec<Suspect> {
    let mut all = Vec::new();
    for (_, result) in results {
        who::join(&mut all, result.suspects.iter().filter(|suspect| is_accused(suspect)).cloned());
    }
    all
}

#[cfg(test)]
mod tests;
