//! One series before and after: typical values with the verdict of the family's test, means for totals.

use super::cells::{Cell, Cells, Kind, RoundId};
use super::family::{self, ALPHA, Judged};
use super::totals;
use crate::summary::MIN_ROUNDS;
use etwhy_stats::Interval;
use etwhy_stats::percentile::median;
use std::collections::BTreeMap;

/// What is said of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It costs more after.
    Slower,
    /// It costs less.
    Faster,
    /// There is a difference, and two rounds in the same state differ as much.
    Small,
    /// None was shown. The interval says how large one may be.
    NotShown,
    /// There are fewer rounds than any statement needs.
    TooFew,
}

impl Verdict {
    /// As tables have it.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Slower => "slower",
            Verdict::Faster => "faster",
            Verdict::Small => "small",
            Verdict::NotShown => "not_shown",
            Verdict::TooFew => "too_few_rounds",
        }
    }

    /// As people read it.
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Slower => "slower",
            Verdict::Faster => "faster",
            Verdict::Small => "small",
            Verdict::NotShown => "no difference shown",
            Verdict::TooFew => "too few rounds",
        }
    }
}

/// One series before and after.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Probe.
    pub probe: String,
    /// What was done.
    pub measure: String,
    /// Under which conditions.
    pub variant: String,
    /// Size.
    pub n: Option<f64>,
    /// How many sizes were put together; 0 if none were.
    pub sizes: usize,
    /// Unit.
    pub unit: String,
    /// True if more is better: then the ratio is that of costs, before / after.
    pub more_is_better: bool,
    /// Rounds.
    pub rounds: [usize; 2],
    /// True if rounds are pairs.
    pub paired: bool,
    /// Typical values: medians over rounds.
    pub typical: [f64; 2],
    /// How much more it is, in the unit.
    pub difference: Option<Interval>,
    /// What it costs after, divided by what it costs before: above 1 is slower. Its value is that of the typical values, its interval
    /// excludes 1 exactly if the test of all series together shows a difference. Absent if a value is 0. Its ends are NaN without enough
    /// rounds.
    pub ratio: Option<Interval>,
    /// Means of all operations, which rare slow ones move: what totals are made of.
    pub mean: [f64; 2],
    /// By how much the mean of all operations is more, with its interval (bootstrap over rounds); absent without enough rounds.
    pub mean_more: Option<Interval>,
    /// Ratio of means.
    pub mean_ratio: Option<f64>,
    /// Mean CPU time of an operation.
    pub cpu_ns: [Option<f64>; 2],
    /// Mean CPU time that those proven or likely at work took while an operation was done; 0 if there are none, absent if it cannot be
    /// separated from that of other operations.
    pub others_cpu_ns: [Option<f64>; 2],
    /// By how much more CPU time an operation costs, in the program and in others where they can be separated.
    pub cpu_more: Option<Interval>,
    /// Mean time of an operation that it was blocked.
    pub blocked_ns: [Option<f64>; 2],
    /// Probability of such a difference by chance in any of the series, if nothing differs.
    pub p: Option<f64>,
    /// By which factor two rounds in the same state typically differ.
    pub floor: Option<f64>,
    /// The answer.
    pub verdict: Verdict,
}

impl Difference {
    /// Measure and variant.
    pub fn title(&self) -> String {
        let mut title = match (self.measure.as_str(), self.variant.as_str()) {
            (measure, "") => measure.to_owned(),
            ("", variant) => variant.to_owned(),
            (measure, variant) => format!("{measure}, {variant}"),
        };
        if let Some(n) = self.n {
            title.push_str(&format!(" ({})", crate::amount::size(n)));
        }
        title
    }

    /// The interval of the ratio, if there were rounds enough.
    pub fn sure(&self) -> Option<Interval> {
        self.ratio.filter(|ratio| ratio.low.is_finite() && ratio.high.is_finite())
    }
}

/// On which scale values are compared.
enum Scale {
    /// Logarithms; true if more is better.
    Log(bool),
    /// As they are, since some are 0, divided by this.
    Plain(f64),
}

impl Scale {
    fn of(before: &Cells, after: &Cells) -> Scale {
        let all = || before.rounds.values().chain(after.rounds.values()).map(|cell| cell.typical);
        if all().all(|value| value > 0.0) {
            return Scale::Log(before.more_is_better);
        }
        let size = all().fold(0.0, f64::max);
        let size = if size > 0.0 { size } else { 1.0 };
        Scale::Plain(if before.more_is_better { -size } else { size })
    }

    fn value(&self, cell: &Cell) -> f64 {
        match self {
            Scale::Log(false) => cell.typical.ln(),
            Scale::Log(true) => -cell.typical.ln(),
            Scale::Plain(size) => cell.typical / size,
        }
    }

    fn values(&self, cells: &Cells) -> BTreeMap<RoundId, f64> {
        cells.rounds.iter().map(|(round, cell)| (*round, self.value(cell))).collect()
    }

    /// After less before, of rounds that both have.
    fn differences(&self, before: &Cells, after: &Cells) -> BTreeMap<RoundId, f64> {
        let pair = |(round, old): (&RoundId, &Cell)| {
            let new = after.rounds.get(round)?;
            Some((*round, self.value(new) - self.value(old)))
        };
        before.rounds.iter().filter_map(pair).collect()
    }
}

/// What is compared on one scale: values of the rounds of both sides, those of pairs only where rounds are pairs.
pub(super) struct Sides {
    pub before: Cells,
    pub after: Cells,
    pub paired: bool,
    scale: Scale,
}

impl Sides {
    pub fn new(before: &Cells, after: &Cells, paired: bool) -> Sides {
        let (mut before, mut after) = (before.clone(), after.clone());
        if paired {
            before.rounds.retain(|round, _| after.rounds.contains_key(round));
            after.rounds.retain(|round, _| before.rounds.contains_key(round));
        }
        let scale = Scale::of(&before, &after);
        Sides { before, after, paired, scale }
    }

    /// Whether there are rounds enough for a statement.
    pub fn enough(&self) -> bool {
        self.before.rounds.len().min(self.after.rounds.len()) >= MIN_ROUNDS
    }

    /// After less before, of each pair, on the scale.
    pub fn pairs(&self) -> BTreeMap<RoundId, f64> {
        self.scale.differences(&self.before, &self.after)
    }

    /// Values of both sides on the scale.
    pub fn samples(&self) -> (BTreeMap<RoundId, f64>, BTreeMap<RoundId, f64>) {
        (self.scale.values(&self.before), self.scale.values(&self.after))
    }
}

/// Judges each of them among all of them, and says what differs. `floor`: by which factor rounds in the same state differ.
pub(super) fn differences(all: &[(Kind, Sides, Option<f64>)]) -> Vec<Difference> {
    let tested = || all.iter().filter(|(_, sides, _)| sides.enough());
    let judged = if all.first().is_some_and(|(_, sides, _)| sides.paired) {
        family::pairs(&tested().map(|(_, sides, _)| sides.pairs()).collect::<Vec<_>>())
    } else {
        family::samples(&tested().map(|(_, sides, _)| sides.samples()).collect::<Vec<_>>())
    };
    let mut judged = judged.into_iter();
    all.iter()
        .map(|(kind, sides, floor)| {
            let judged = if sides.enough() { judged.next() } else { None };
            difference(kind, sides, judged, *floor)
        })
        .collect()
}

fn difference(kind: &Kind, sides: &Sides, judged: Option<Judged>, floor: Option<f64>) -> Difference {
    let Sides { before, after, paired, scale } = sides;
    let typical = [before, after].map(|side| median(&mut side.typical()).unwrap_or(f64::NAN));
    let [b, a] = typical;
    let nothing = Interval { value: f64::NAN, low: f64::NAN, high: f64::NAN };
    let shift = judged.map_or(nothing, |judged| judged.shift);
    let (ratio, difference) = match scale {
        Scale::Plain(size) => (None, within(a - b, shift.low * size, shift.high * size)),
        Scale::Log(inverse) => {
            let value = if *inverse { b / a } else { a / b };
            let ratio = within(value, shift.low.exp(), shift.high.exp());
            // The same statement in the unit, from what is typical before.
            let more = |ratio: f64| if *inverse { b / ratio - b } else { b * ratio - b };
            (Some(ratio), within(a - b, more(ratio.low), more(ratio.high)))
        }
    };
    let verdict = match &ratio {
        _ if judged.is_none() => Verdict::TooFew,
        Some(ratio) if ratio.holds(1.0) => Verdict::NotShown,
        Some(ratio) if ratio.value.max(1.0 / ratio.value) <= floor.unwrap_or(LEAST_FLOOR) => Verdict::Small,
        Some(ratio) if ratio.value > 1.0 => Verdict::Slower,
        Some(_) => Verdict::Faster,
        None if difference.holds(0.0) => Verdict::NotShown,
        None if (difference.value > 0.0) == before.more_is_better => Verdict::Faster,
        None => Verdict::Slower,
    };
    let figure = |of: fn(&Cell) -> Option<f64>| [before, after].map(|side| side.mean(of));
    let mean = figure(|cell| Some(cell.mean)).map(|mean| mean.unwrap_or(f64::NAN));
    let enough = judged.is_some();
    let more = |of: fn(&Cell) -> Option<f64>| {
        if enough { totals::more(before, after, *paired, of) } else { None }
    };
    let with_others: fn(&Cell) -> Option<f64> = |cell| Some(cell.cpu_ns? + cell.others_cpu_ns.unwrap_or(0.0));
    Difference {
        probe: kind.probe.clone(),
        measure: kind.measure.clone(),
        variant: kind.variant.clone(),
        n: kind.n.map(f64::from_bits),
        sizes: before.sizes.max(after.sizes),
        unit: before.unit.clone(),
        more_is_better: before.more_is_better,
        rounds: [before.rounds.len(), after.rounds.len()],
        paired: *paired,
        typical,
        difference: Some(difference),
        ratio,
        mean,
        mean_more: more(|cell| Some(cell.mean)),
        mean_ratio: match mean {
            [b, a] if b > 0.0 && a > 0.0 => Some(if before.more_is_better { b / a } else { a / b }),
            _ => None,
        },
        cpu_ns: figure(|cell| cell.cpu_ns),
        others_cpu_ns: figure(|cell| cell.others_cpu_ns),
        cpu_more: more(with_others),
        blocked_ns: figure(|cell| cell.blocked_ns),
        // Of typical values that contradict the test nothing is said, and neither is its p.
        p: judged.map(|judged| judged.p).filter(|p| (*p > ALPHA) == (verdict == Verdict::NotShown)),
        floor,
        verdict,
    }
}

/// An interval that holds its value, whichever of both ends comes first.
fn within(value: f64, one: f64, other: f64) -> Interval {
    if one.is_nan() || other.is_nan() {
        return Interval { value, low: f64::NAN, high: f64::NAN };
    }
    Interval { value, low: one.min(other).min(value), high: one.max(other).max(value) }
}

/// By which factor two rounds in the same state typically differ: the pair that was measured for it, and rounds that followed
/// each other.
pub(super) fn floor(before: &Cells, after: &Cells, twice: Option<(&Cells, &Cells)>) -> Option<f64> {
    let neighbours = |side: &Cells| -> Vec<f64> {
        let all: Vec<(RoundId, f64)> = side.rounds.iter().map(|(id, cell)| (*id, cell.typical)).collect();
        let next = |pair: &[(RoundId, f64)]| match pair {
            [(a, old), (b, new)] if a.0 == b.0 && *old > 0.0 && *new > 0.0 => Some((new / old).ln().abs()),
            _ => None,
        };
        all.windows(2).filter_map(next).collect()
    };
    let mut apart = neighbours(before);
    apart.extend(neighbours(after));
    if let Some((first, again)) = twice {
        let pairs = Scale::Log(false).differences(first, again);
        apart.extend(pairs.into_values().map(f64::abs).filter(|d| d.is_finite()));
    }
    median(&mut apart).map(|typical| typical.exp().max(LEAST_FLOOR))
}

/// Ratio below which a difference is called small, whatever the noise: nobody acts on 1 %.
pub const LEAST_FLOOR: f64 = 1.01;
