//! Two states of a machine compared: what became dearer, and by how much at least.
//!
//! # Method
//! The unit is the round: samples of one round share what the machine did just then. Values are compared on logarithms, because
//! noise of durations is a factor; the ratio is Hodges and Lehmann's estimate with the exact interval of Wilcoxon's signed-rank
//! test (states alternated: rounds are pairs) or of Mann and Whitney's test (two files, widened by [`family::caution`]). Verdicts are corrected for the number of
//! comparisons ([`family`]), need six rounds a side, an interval without 1, and more than the machine's own noise: what two rounds
//! in the same state differ by. `tests/coverage.rs` shows by simulation on recorded runs how often all this is wrong.

pub mod cells;
pub mod family;
pub mod tax;
pub mod warnings;

use crate::outcome::{Outcome, ProbeOutcome};
use crate::summary::{CONFIDENCE, MIN_ROUNDS, middle};
use crate::who::{self, LIKELY, PROVEN, Suspect};
use cells::{Cell, Cells, Kind, RoundId, cells, join_sizes};
use etwhy_stats::percentile::median;
use etwhy_stats::{Interval, exact};
use std::collections::BTreeMap;

/// Ratio below which a difference is called small, whatever the noise: nobody acts on 1 %.
pub const LEAST_FLOOR: f64 = 1.01;

/// Family-wise rate of false alarms that is accepted.
pub const ALPHA: f64 = 0.05;

/// State of the run that other runs are compared with.
pub const OFF: &str = "off";
/// The other state.
pub const ON: &str = "on";
/// The two runs in the same state that show the noise before anything is compared.
pub const TWICE: [&str; 2] = ["off-1", "off-2"];

/// What is said of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It costs more after.
    Dearer,
    /// It costs less.
    Cheaper,
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
            Verdict::Dearer => "dearer",
            Verdict::Cheaper => "cheaper",
            Verdict::Small => "small",
            Verdict::NotShown => "not_shown",
            Verdict::TooFew => "too_few_rounds",
        }
    }

    /// As people read it.
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Dearer => "dearer",
            Verdict::Cheaper => "cheaper",
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
    /// Typical values.
    pub typical: [f64; 2],
    /// How much more it is, in the unit.
    pub difference: Option<Interval>,
    /// What it costs after, divided by what it costs before: above 1 is dearer. Absent if a value is 0. Its ends are NaN without
    /// enough rounds.
    pub ratio: Option<Interval>,
    /// Ratio of means, where the typical value is a median: shows what happens to rare slow operations.
    pub mean_ratio: Option<f64>,
    /// CPU time of an operation.
    pub cpu_ns: [Option<f64>; 2],
    /// Time of an operation that it was blocked.
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
            title.push_str(&format!(" ({n})"));
        }
        title
    }

    /// The interval of the ratio, if there were rounds enough.
    pub fn sure(&self) -> Option<Interval> {
        self.ratio.filter(|ratio| ratio.low.is_finite() && ratio.high.is_finite())
    }
}

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
    /// CPU time of those who were seen at work meanwhile (proven or likely), of one operation, by probe.
    pub suspects_cpu_ns: BTreeMap<String, [f64; 2]>,
    /// Who was proven or likely to be at work meanwhile, on each side.
    pub suspects: [Vec<Suspect>; 2],
    /// The processor, for its energy.
    pub cpu: String,
}

/// Results of a side with the number of their file.
type Results<'a> = Vec<(usize, &'a ProbeOutcome)>;

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
    join_sizes([&mut b, &mut a]);
    let [mut first, mut again] = [&twice[0], &twice[1]].map(|results| cells(results.iter().copied()));
    join_sizes([&mut first, &mut again]);
    let mut differences = Vec::new();
    let mut tested = Vec::new();
    let (mut in_pairs, mut in_samples) = (Vec::new(), Vec::new());
    for (kind, old) in &b {
        let Some(new) =
            a.get(kind).filter(|new| new.unit == old.unit && new.more_is_better == old.more_is_better)
        else {
            continue;
        };
        let pair = first.get(kind).zip(again.get(kind));
        let mut one = difference(kind, old, new, paired);
        one.floor = floor(old, new, pair);
        let enough = one.rounds.iter().all(|rounds| *rounds >= MIN_ROUNDS);
        if enough {
            tested.push(differences.len());
            let scale = Scale::of(old, new);
            if paired {
                in_pairs.push(scale.differences(old, new));
            } else {
                in_samples.push((scale.values(old), scale.values(new)));
            }
        }
        differences.push(one);
    }
    if differences.is_empty() {
        return Err("they have nothing in common: no probe measured the same thing in both".into());
    }
    let p = if paired { family::pairs(&in_pairs) } else { family::samples(&in_samples) };
    for (at, p) in tested.into_iter().zip(p) {
        if let Some(one) = differences.get_mut(at) {
            one.p = Some(p);
            one.verdict = verdict(one, p);
        }
    }
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
        suspects_cpu_ns: suspects_cpu(before, after),
        suspects: [before, after].map(accused),
        cpu: machine.machine.get("cpu").unwrap_or_default().to_owned(),
    })
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

fn difference(kind: &Kind, before: &Cells, after: &Cells, paired: bool) -> Difference {
    let scale = Scale::of(before, after);
    let (old, new) = (before.typical(), after.typical());
    let typical = [&old, &new].map(|values| median(&mut values.clone()).unwrap_or(f64::NAN));
    let plain = Scale::Plain(1.0);
    let matched = scale.differences(before, after);
    let (rounds, shown, absolute) = if paired {
        let values: Vec<f64> = matched.values().copied().collect();
        let raw: Vec<f64> = plain.differences(before, after).into_values().collect();
        let shown = exact::signed_rank(&values, CONFIDENCE);
        ([values.len(); 2], shown, exact::signed_rank(&raw, CONFIDENCE))
    } else {
        let [b, a] = [before, after].map(|side| scale.values(side).into_values().collect::<Vec<f64>>());
        let rounds = old.len().min(new.len());
        let enough = rounds >= MIN_ROUNDS;
        let shown = |b: &[f64], a: &[f64]| {
            exact::shift(b, a, CONFIDENCE).filter(|_| enough).map(|i| widened(i, rounds))
        };
        ([old.len(), new.len()], shown(&b, &a), shown(&old, &new))
    };
    let [b, a] = typical;
    let ratio = match scale {
        Scale::Plain(_) => None,
        Scale::Log(inverse) => Some(match shown {
            Some(i) => Interval { value: i.value.exp(), low: i.low.exp(), high: i.high.exp() },
            None => Interval { value: if inverse { b / a } else { a / b }, low: f64::NAN, high: f64::NAN },
        }),
    };
    let figure = |of: fn(&Cell) -> Option<f64>| {
        [before, after].map(|side| middle(side.rounds.values().filter_map(of)))
    };
    let mean_ratio = match figure(|cell| Some(cell.mean)) {
        [Some(b), Some(a)] if b > 0.0 && a > 0.0 => Some(if before.more_is_better { b / a } else { a / b }),
        _ => None,
    };
    Difference {
        probe: kind.probe.clone(),
        measure: kind.measure.clone(),
        variant: kind.variant.clone(),
        n: kind.n.map(f64::from_bits),
        sizes: before.sizes.max(after.sizes),
        unit: before.unit.clone(),
        more_is_better: before.more_is_better,
        rounds,
        paired,
        typical,
        difference: Some(absolute.unwrap_or(Interval { value: a - b, low: f64::NAN, high: f64::NAN })),
        ratio,
        mean_ratio,
        cpu_ns: figure(|cell| cell.cpu_ns),
        blocked_ns: figure(|cell| cell.blocked_ns),
        p: None,
        floor: None,
        verdict: Verdict::TooFew,
    }
}

/// By which factor two rounds in the same state typically differ: the pair that was measured for it, and rounds that followed
/// each other.
fn floor(before: &Cells, after: &Cells, twice: Option<(&Cells, &Cells)>) -> Option<f64> {
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

/// The interval of two files: [`family::caution`].
fn widened(i: Interval, rounds: usize) -> Interval {
    let end = |end: f64| i.value + family::caution(rounds) * (end - i.value);
    Interval { value: i.value, low: end(i.low), high: end(i.high) }
}

fn verdict(one: &Difference, p: f64) -> Verdict {
    let (interval, none, floor) = match (&one.ratio, one.difference) {
        (Some(ratio), _) => (*ratio, 1.0, one.floor.unwrap_or(LEAST_FLOOR)),
        (None, Some(difference)) => (difference, 0.0, 0.0),
        _ => return Verdict::NotShown,
    };
    if p > ALPHA || interval.holds(none) || !interval.low.is_finite() {
        return Verdict::NotShown;
    }
    if one.ratio.is_some() && interval.value.max(1.0 / interval.value) <= floor {
        return Verdict::Small;
    }
    // A ratio is one of costs; a difference is one of values.
    let more = interval.value > none;
    if more == (one.ratio.is_some() || !one.more_is_better) { Verdict::Dearer } else { Verdict::Cheaper }
}

/// Whether more speaks against a suspect than that it was there.
fn is_accused(suspect: &Suspect) -> bool {
    suspect.confidence == PROVEN || suspect.confidence == LIKELY
}

/// Who was proven or likely to be at work during these results.
fn accused(results: &Results<'_>) -> Vec<Suspect> {
    let mut all = Vec::new();
    for (_, result) in results {
        who::join(&mut all, result.suspects.iter().filter(|suspect| is_accused(suspect)).cloned());
    }
    all
}

/// CPU time of suspects for each operation of their probe.
fn suspects_cpu(before: &Results<'_>, after: &Results<'_>) -> BTreeMap<String, [f64; 2]> {
    let mut all: BTreeMap<String, [(u64, u64); 2]> = BTreeMap::new();
    for (side, results) in [before, after].into_iter().enumerate() {
        for (_, result) in results {
            let counted = result.suspects.iter().filter(|suspect| is_accused(suspect));
            let cpu = counted.filter_map(|s| s.cpu_ns).fold(0, u64::saturating_add);
            let operations = result.samples.iter().fold(0_u64, |sum, s| sum.saturating_add(s.operations));
            if let Some(sums) = all.entry(result.probe.clone()).or_default().get_mut(side) {
                *sums = (sums.0.saturating_add(cpu), sums.1.saturating_add(operations));
            }
        }
    }
    let each = |(cpu, operations): (u64, u64)| cpu as f64 / operations.max(1) as f64;
    all.into_iter().map(|(probe, sums)| (probe, sums.map(each))).collect()
}

/// A contrast of one run: two kinds of samples of one probe ([`crate::probe::Contrast`]), compared by round.
#[derive(Clone, Debug)]
pub struct Against {
    /// The contrast's title.
    pub title: String,
    /// What it means.
    pub meaning: String,
    /// State of the results.
    pub state: String,
    /// The comparison: before is the cheap one, after the dear one.
    pub difference: Difference,
}

/// The contrasts of one result that its samples allow.
pub fn contrasts(result: &ProbeOutcome) -> Vec<Against> {
    let Some(probe) = crate::probes::ALL.iter().find(|probe| probe.name == result.probe) else {
        return Vec::new();
    };
    let all = cells(std::iter::once((0, result)));
    let mut found = Vec::new();
    let mut series = Vec::new();
    for contrast in probe.contrasts {
        let fits = |(word, of): (&str, &str)| word.is_empty() || word == of;
        for (kind, dear) in &all {
            if !fits((contrast.dear.0, &kind.measure)) || !fits((contrast.dear.1, &kind.variant)) {
                continue;
            }
            // An empty word of the cheap side stands for that of the dear one.
            let other =
                |word: &str, same: &str| if word.is_empty() { same.to_owned() } else { word.to_owned() };
            let partner = Kind {
                probe: kind.probe.clone(),
                measure: other(contrast.cheap.0, &kind.measure),
                variant: other(contrast.cheap.1, &kind.variant),
                n: kind.n,
            };
            let Some(cheap) = all.get(&partner).filter(|cheap| partner != *kind && cheap.unit == dear.unit)
            else {
                continue;
            };
            series.push(Scale::of(cheap, dear).differences(cheap, dear));
            found.push(Against {
                title: contrast.title.to_owned(),
                meaning: contrast.meaning.to_owned(),
                state: result.state.clone(),
                difference: difference(kind, cheap, dear, true),
            });
        }
    }
    for (against, p) in found.iter_mut().zip(family::pairs(&series)) {
        if against.difference.rounds.iter().all(|rounds| *rounds >= MIN_ROUNDS) {
            against.difference.p = Some(p);
            against.difference.verdict = verdict(&against.difference, p);
        }
    }
    found
}

#[cfg(test)]
mod tests;
