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
    /// Mean.
    pub mean: f64,
    /// CPU time of an operation.
    pub cpu_ns: Option<f64>,
    /// Time of an operation that its thread was blocked.
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
        let each = |of: fn(&Sample) -> Option<u64>| {
            let ns = |s: &&&Sample| of(s).map(|ns| ns as f64 / s.operations.max(1) as f64);
            middle(of_unit().filter_map(|s| ns(&s)))
        };
        let (Some(value), Some(mean)) =
            (middle(of_unit().map(|s| typical(s))), middle(of_unit().map(|s| s.value)))
        else {
            continue;
        };
        let cell =
            Cell { typical: value, mean, cpu_ns: each(|s| s.cpu_ns), blocked_ns: each(|s| s.blocked_ns) };
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
/// both sides have; of CPU time and waiting, which may be 0 at some size, the plain mean.
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
        let mean = |of: fn(&Cell) -> Option<f64>| -> Option<f64> {
            let logs: Option<Vec<f64>> = cells.iter().map(|cell| of(cell).map(f64::ln)).collect();
            let logs = logs?;
            Some((logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp())
        };
        let (Some(typical), Some(average)) = (mean(|c| Some(c.typical)), mean(|c| Some(c.mean))) else {
            continue;
        };
        let plain = |of: fn(&Cell) -> Option<f64>| -> Option<f64> {
            let values: Option<Vec<f64>> = cells.iter().map(of).collect();
            values.map(|values| values.iter().sum::<f64>() / values.len().max(1) as f64)
        };
        let cell =
            Cell { typical, mean: average, cpu_ns: plain(|c| c.cpu_ns), blocked_ns: plain(|c| c.blocked_ns) };
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
