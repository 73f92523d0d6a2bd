//! What is compared: typical values by round, of each kind of sample that both sides have.

use crate::outcome::ProbeOutcome;
use crate::sample::Sample;
use crate::summary::{middle, typical};
use std::collections::BTreeMap;

/// A round: number of the file and of the round in it.
pub type RoundId = (usize, u32);

/// Of how many sizes a curve is compared as a whole: a verdict for each of forty sizes helps nobody.
const MOST_SIZES: usize = 8;

/// What tells kinds apart. Sizes are compared by their bits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// Probe.
    pub probe: String,
    /// What was done.
    pub measure: String,
    /// Under which conditions.
    pub variant: String,
    /// Size; absent for probes without sizes, and where sizes were put together.
    pub n: Option<u64>,
}

/// What one round measured of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cell {
    /// Typical value.
    pub typical: f64,
    /// Mean of all operations.
    pub mean: f64,
    /// Operations.
    pub operations: f64,
    /// Mean CPU time of an operation.
    pub cpu_ns: Option<f64>,
    /// Mean CPU time of suspects while an operation was done ([`Sample::others_cpu_ns`]).
    pub others_cpu_ns: Option<f64>,
    /// Mean time of an operation that its thread was blocked.
    pub blocked_ns: Option<f64>,
}

/// All rounds of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cells {
    /// Unit of values.
    pub unit: String,
    /// True if more is better.
    pub more_is_better: bool,
    /// By round.
    pub rounds: BTreeMap<RoundId, Cell>,
    /// Sizes that were put together; 0 if none were.
    pub sizes: usize,
}

impl Cells {
    /// Typical values, in the order of rounds.
    pub fn typical(&self) -> Vec<f64> {
        self.rounds.values().map(|cell| cell.typical).collect()
    }

    /// The mean of all operations of all rounds; absent if a round does not tell it.
    pub fn mean(&self, of: impl Fn(&Cell) -> Option<f64>) -> Option<f64> {
        mean(self.rounds.values().map(|cell| Some((of(cell)?, cell.operations))))
    }
}

/// The mean of means, each of so many operations.
fn mean(means: impl Iterator<Item = Option<(f64, f64)>>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for one in means {
        let (mean, n) = one?;
        sum += mean * n;
        count += n;
    }
    (count > 0.0).then_some(sum / count)
}

/// The kinds of these results; `usize` is the number of their file. Their state does not matter here.
pub fn cells<'a>(results: impl Iterator<Item = (usize, &'a ProbeOutcome)>) -> BTreeMap<Kind, Cells> {
    let mut groups: BTreeMap<(Kind, RoundId), Vec<&Sample>> = BTreeMap::new();
    for (file, result) in results {
        for sample in &result.samples {
            let n = sample.case.n;
            if !sample.value.is_finite() || sample.value < 0.0 || n.is_some_and(|n| !n.is_finite()) {
                continue;
            }
            let kind = Kind {
                probe: result.probe.clone(),
                measure: sample.case.measure.clone(),
                variant: sample.case.variant.clone(),
                n: n.map(f64::to_bits),
            };
            groups.entry((kind, (file, sample.round))).or_default().push(sample);
        }
    }
    let mut all: BTreeMap<Kind, Cells> = BTreeMap::new();
    for ((kind, round), samples) in groups {
        let Some(first) = samples.first() else { continue };
        let of_unit = || samples.iter().filter(|s| s.unit == first.unit);
        let count = |s: &Sample| s.operations.max(1) as f64;
        let each = |of: fn(&Sample) -> Option<u64>| {
            mean(of_unit().map(|s| Some((of(s)? as f64 / count(s), count(s)))))
        };
        let Some(value) = middle(of_unit().map(|s| typical(s))) else { continue };
        let cell = Cell {
            typical: value,
            mean: mean(of_unit().map(|s| Some((s.value, count(s))))).unwrap_or(value),
            operations: of_unit().map(|s| count(s)).sum(),
            cpu_ns: each(|s| s.cpu_ns),
            others_cpu_ns: each(|s| s.others_cpu_ns),
            blocked_ns: each(|s| s.blocked_ns),
        };
        let cells = all.entry(kind).or_default();
        if cells.rounds.is_empty() {
            cells.unit.clone_from(&first.unit);
            cells.more_is_better = first.more_is_better;
        }
        if cells.unit == first.unit && cells.more_is_better == first.more_is_better {
            cells.rounds.insert(round, cell);
        }
    }
    all
}

/// Puts sizes together where both sides have many of them: of each round the geometric mean over the sizes that all rounds of
/// both sides have; of means, CPU time and waiting, which are parts of totals, the mean of all operations.
pub fn join_sizes(sides: [&mut BTreeMap<Kind, Cells>; 2]) {
    let [before, after] = sides;
    let mut curves: BTreeMap<Kind, Vec<Kind>> = BTreeMap::new();
    for kind in before.keys().filter(|kind| kind.n.is_some() && after.contains_key(kind)) {
        curves.entry(Kind { n: None, ..kind.clone() }).or_default().push(kind.clone());
    }
    for (whole, kinds) in curves.into_iter().filter(|(_, kinds)| kinds.len() > MOST_SIZES) {
        for side in [&mut *before, &mut *after] {
            let joined = join(side, &kinds);
            side.retain(|kind, _| kind.n.is_none() || Kind { n: None, ..kind.clone() } != whole);
            if let Some(joined) = joined {
                side.insert(whole.clone(), joined);
            }
        }
    }
}

fn join(side: &BTreeMap<Kind, Cells>, kinds: &[Kind]) -> Option<Cells> {
    let parts: Vec<&Cells> = kinds.iter().filter_map(|kind| side.get(kind)).collect();
    let first = parts.first()?;
    let mut joined = Cells {
        rounds: BTreeMap::new(),
        sizes: parts.len(),
        unit: first.unit.clone(),
        more_is_better: first.more_is_better,
    };
    for round in first.rounds.keys() {
        let cells: Option<Vec<Cell>> = parts.iter().map(|part| part.rounds.get(round).copied()).collect();
        let Some(cells) = cells else { continue };
        let logs: f64 = cells.iter().map(|cell| cell.typical.ln()).sum();
        let all = |of: fn(&Cell) -> Option<f64>| {
            mean(cells.iter().map(|cell| Some((of(cell)?, cell.operations.max(1.0)))))
        };
        let cell = Cell {
            typical: (logs / cells.len().max(1) as f64).exp(),
            mean: all(|cell| Some(cell.mean)).unwrap_or(f64::NAN),
            operations: cells.iter().map(|cell| cell.operations).sum(),
            cpu_ns: all(|cell| cell.cpu_ns),
            others_cpu_ns: all(|cell| cell.others_cpu_ns),
            blocked_ns: all(|cell| cell.blocked_ns),
        };
        joined.rounds.insert(*round, cell);
    }
    Some(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_without_waiting_does_not_hide_that_of_others() {
        let side = || -> BTreeMap<Kind, Cells> {
            (0..9_u32)
                .map(|size| {
                    let kind = Kind {
                        probe: "p".into(),
                        measure: "m".into(),
                        variant: String::new(),
                        n: Some(f64::from(size).to_bits()),
                    };
                    let cell = Cell {
                        typical: if size < 3 { 8.0 } else { 1.0 },
                        mean: 1.0,
                        operations: 1.0,
                        others_cpu_ns: None,
                        cpu_ns: Some(f64::from(size) * 10.0),
                        blocked_ns: Some(if size == 8 { 90.0 } else { 0.0 }),
                    };
                    let rounds = BTreeMap::from([((0, 0), cell)]);
                    (kind, Cells { unit: "ns".into(), rounds, ..Cells::default() })
                })
                .collect()
        };
        let (mut before, mut after) = (side(), side());
        join_sizes([&mut before, &mut after]);
        let joined = before.values().next().unwrap();
        let cell = joined.rounds[&(0, 0)];
        assert_eq!((before.len(), joined.sizes), (1, 9));
        // (0 + 10 + … + 80) / 9, 90 / 9, and 512 to the power of 1/9.
        assert_eq!((cell.cpu_ns, cell.blocked_ns), (Some(40.0), Some(10.0)));
        assert!((cell.typical - 2.0).abs() < 1e-9, "{cell:?}");
    }
}
