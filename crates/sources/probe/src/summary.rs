//! What samples of one kind say together: a series.
//!
//! Samples of one round were taken close to each other and share what the machine did just then, so they are one value: the
//! median of the round. Intervals are over rounds.

use crate::outcome::{Outcome, ProbeOutcome};
use crate::sample::Sample;
use etwhy_stats::percentile::median;
use etwhy_stats::{Interval, exact, rank};
use std::collections::BTreeMap;

/// Rounds that an interval of 95 % needs at least: see [`etwhy_stats::exact`].
pub const MIN_ROUNDS: usize = 6;

/// What intervals shall hold.
pub const CONFIDENCE: f64 = 0.95;

/// What samples must share to be of one series.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// Probe.
    pub probe: String,
    /// `on`, `off`, or empty.
    pub state: String,
    /// What was done.
    pub measure: String,
    /// Under which conditions.
    pub variant: String,
    /// Size, if any.
    pub n: Option<f64>,
}

impl Key {
    /// Measure and variant, as people read them.
    pub fn title(&self) -> String {
        match (self.measure.as_str(), self.variant.as_str()) {
            (measure, "") => measure.to_owned(),
            ("", variant) => variant.to_owned(),
            (measure, variant) => format!("{measure}, {variant}"),
        }
    }
}

/// One round of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// Its number.
    pub round: u32,
    /// Typical value: the median of the round's samples; of each the median of its operations where they were timed, else its mean.
    pub typical: f64,
    /// The mean of the round's operations, in the same unit.
    pub mean: f64,
}

/// A series: samples that differ by round only.
#[derive(Clone, Debug)]
pub struct Series {
    /// What they share.
    pub key: Key,
    /// Unit of values.
    pub unit: String,
    /// True if more is better.
    pub more_is_better: bool,
    /// Rounds, in order.
    pub rounds: Vec<Round>,
    /// Samples.
    pub samples: u64,
    /// Operations of all samples.
    pub operations: u64,
    /// Operations that failed as they may.
    pub failures: u64,
    /// Median over rounds of the typical value.
    pub median: f64,
    /// Its interval; absent below [`MIN_ROUNDS`].
    pub interval: Option<Interval>,
    /// Mean of all operations: times their number it is what they took together.
    pub mean: f64,
    /// How far rounds differ: interquartile range divided by the median.
    pub spread: Option<f64>,
    /// Medians over samples of their percentiles.
    pub p50_ns: Option<f64>,
    /// 95 %.
    pub p95_ns: Option<f64>,
    /// 99 %.
    pub p99_ns: Option<f64>,
    /// CPU time of one operation.
    pub cpu_ns: Option<f64>,
    /// Time of one operation that a thread was blocked: neither on a processor nor waiting for one.
    pub blocked_ns: Option<f64>,
    /// Time of one operation that a thread was ready without a processor: what a busy machine adds.
    pub queue_ns: Option<f64>,
    /// Times that a thread gave up the processor, of one operation.
    pub waits: Option<f64>,
}

/// The typical value of a sample: the median of its operations where single ones were timed and it is they that are compared. A mean is
/// at the mercy of what else the machine does.
pub fn typical(sample: &Sample) -> f64 {
    let same = sample.unit == "ns" && !sample.more_is_better && !sample.percentiles_apart;
    match sample.p50_ns {
        Some(p50) if same && p50 > 0 => p50 as f64,
        _ => sample.value,
    }
}

/// Samples that can be used: their value is a number and not negative.
fn usable(sample: &Sample) -> bool {
    sample.value.is_finite() && sample.value >= 0.0 && sample.case.n.is_none_or(f64::is_finite)
}

/// All series of results, in the order in which they were measured first.
pub fn series(outcome: &Outcome) -> Vec<Series> {
    outcome.probes.iter().flat_map(of_probe).collect()
}

/// The series of one probe in one state, in the order in which they were measured first, sizes of one kind together from the smallest.
pub fn of_probe(result: &ProbeOutcome) -> Vec<Series> {
    all_of(result, result.samples.iter())
}

fn all_of<'s>(result: &ProbeOutcome, samples: impl Iterator<Item = &'s Sample>) -> Vec<Series> {
    type Id<'a> = (Option<u64>, &'a str, bool);
    type Kind<'a> = (&'a str, &'a str);
    let mut order: Vec<Kind<'_>> = Vec::new();
    let mut groups: BTreeMap<Kind<'_>, BTreeMap<Id<'_>, Vec<&Sample>>> = BTreeMap::new();
    for sample in samples.filter(|sample| usable(sample)) {
        let kind = (sample.case.measure.as_str(), sample.case.variant.as_str());
        // Bits of positive floats are in their order.
        let n = sample.case.n.map(|n| if n >= 0.0 { n.to_bits() | 1 << 63 } else { !n.to_bits() });
        let id = (n, sample.unit.as_str(), sample.more_is_better);
        groups
            .entry(kind)
            .or_insert_with(|| {
                order.push(kind);
                BTreeMap::new()
            })
            .entry(id)
            .or_default()
            .push(sample);
    }
    let sizes = order.iter().filter_map(|kind| groups.get(kind)).flat_map(BTreeMap::values);
    sizes.filter_map(|samples| of_samples(result, samples)).collect()
}

fn of_samples(result: &ProbeOutcome, samples: &[&Sample]) -> Option<Series> {
    let first = samples.first()?;
    let mut by_round: BTreeMap<u32, Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        by_round.entry(sample.round).or_default().push(sample);
    }
    let rounds: Vec<Round> = by_round
        .iter()
        .filter_map(|(round, samples)| {
            let typical = middle(samples.iter().map(|sample| typical(sample)))?;
            let mean = mean(samples)?;
            Some(Round { round: *round, typical, mean })
        })
        .collect();
    let values: Vec<f64> = rounds.iter().map(|round| round.typical).collect();
    let median = middle(values.iter().copied())?;
    // Of quantities that are positive the typical value is taken on logarithms: their noise is a factor.
    let interval = if values.iter().all(|value| *value > 0.0) {
        let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
        let interval = exact::signed_rank(&logs, CONFIDENCE);
        interval.map(|i| Interval { value: i.value.exp(), low: i.low.exp(), high: i.high.exp() })
    } else {
        exact::signed_rank(&values, CONFIDENCE)
    };
    let each = |of: fn(&Sample) -> Option<u64>| {
        let all: Option<Vec<f64>> =
            samples.iter().map(|s| of(s).map(|ns| ns as f64 / s.operations.max(1) as f64)).collect();
        middle(all?.into_iter())
    };
    let percentile =
        |of: fn(&Sample) -> Option<u64>| middle(samples.iter().filter_map(|s| of(s)).map(|ns| ns as f64));
    Some(Series {
        key: Key {
            probe: result.probe.clone(),
            state: result.state.clone(),
            measure: first.case.measure.clone(),
            variant: first.case.variant.clone(),
            n: first.case.n,
        },
        unit: first.unit.clone(),
        more_is_better: first.more_is_better,
        samples: samples.len() as u64,
        operations: samples.iter().fold(0, |sum, s| sum.saturating_add(s.operations)),
        failures: samples.iter().fold(0, |sum, s| sum.saturating_add(s.failures)),
        median,
        interval,
        mean: mean(samples)?,
        spread: rank::spread(&values).filter(|_| median > 0.0 && values.len() > 1).map(|iqr| iqr / median),
        p50_ns: percentile(|s| s.p50_ns),
        p95_ns: percentile(|s| s.p95_ns),
        p99_ns: percentile(|s| s.p99_ns),
        cpu_ns: each(|s| s.cpu_ns),
        blocked_ns: each(|s| s.blocked_ns),
        queue_ns: each(|s| s.queue_ns),
        waits: each(|s| s.waits),
        rounds,
    })
}

/// The mean of all operations.
fn mean(samples: &[&Sample]) -> Option<f64> {
    let count = |sample: &Sample| sample.operations.max(1) as f64;
    let sum: f64 = samples.iter().map(|sample| sample.value * count(sample)).sum();
    let all: f64 = samples.iter().map(|sample| count(sample)).sum();
    (all > 0.0).then(|| sum / all)
}

/// The median; absent if there is nothing.
pub fn middle(values: impl Iterator<Item = f64>) -> Option<f64> {
    median(&mut values.filter(|value| value.is_finite()).collect::<Vec<f64>>())
}

/// The figures that sentences about samples may use: those of the tables, and no others.
#[derive(Clone, Debug)]
pub struct Figures(Vec<Series>);

impl Figures {
    /// Of the samples of one probe in one state.
    pub fn from_samples(samples: &[Sample]) -> Figures {
        Figures(all_of(&ProbeOutcome::default(), samples.iter()))
    }

    /// The series of one kind; `n`: its size, if it has one.
    pub fn one(&self, measure: &str, variant: &str, n: Option<f64>) -> Option<&Series> {
        self.0.iter().find(|one| one.key.measure == measure && one.key.variant == variant && one.key.n == n)
    }

    /// The typical value of a kind without sizes.
    pub fn typical(&self, measure: &str, variant: &str) -> Option<f64> {
        self.one(measure, variant, None).map(|one| one.median)
    }

    /// The mean of all operations of a kind without sizes.
    pub fn mean(&self, measure: &str, variant: &str) -> Option<f64> {
        self.one(measure, variant, None).map(|one| one.mean)
    }

    /// The series of one kind by size, the smallest first.
    pub fn by_size(&self, measure: &str, variant: &str) -> Vec<&Series> {
        let of_kind =
            |one: &&Series| one.key.measure == measure && one.key.variant == variant && one.key.n.is_some();
        self.0.iter().filter(of_kind).collect()
    }

    /// All of them.
    pub fn all(&self) -> &[Series] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Case;

    fn sample(round: u32, value: f64, p50: Option<u64>) -> Sample {
        Sample {
            case: Case::new("open").when("first run"),
            round,
            operations: 10,
            value,
            unit: "ns".into(),
            cpu_ns: Some(500),
            p50_ns: p50,
            ..Sample::default()
        }
    }

    fn result(samples: Vec<Sample>) -> ProbeOutcome {
        ProbeOutcome { probe: "file-open".into(), samples, ..ProbeOutcome::default() }
    }

    #[test]
    fn a_round_is_one_value() {
        // Round 0 has three samples: its median is 20, and of rounds 20, 30, 40, 50, 60, 70 it is 45.
        let mut samples = vec![sample(0, 10.0, None), sample(0, 20.0, None), sample(0, 9e9, None)];
        samples.extend((1..6).map(|round| sample(round, 20.0 + 10.0 * f64::from(round), None)));
        samples.push(sample(6, f64::NAN, None));
        let all = of_probe(&result(samples));
        let [series] = all.as_slice() else { panic!("{all:?}") };
        assert_eq!((series.rounds.len(), series.samples, series.median), (6, 8, 45.0));
        let interval = series.interval.unwrap();
        assert!((interval.low - 20.0).abs() < 1e-9 && (interval.high - 70.0).abs() < 1e-9, "{interval:?}");
        assert_eq!(series.cpu_ns, Some(50.0));
        assert_eq!((series.blocked_ns, series.p50_ns), (None, None));
        assert_eq!(series.key.title(), "open, first run");
    }

    #[test]
    fn few_rounds_have_no_interval_and_timed_operations_give_the_typical_value() {
        let all = of_probe(&result(vec![sample(0, 900.0, Some(100)), sample(1, 1_100.0, Some(120))]));
        let series = &all[0];
        assert_eq!((series.interval, series.median, series.mean), (None, 110.0, 1_000.0));
        assert!(of_probe(&result(Vec::new())).is_empty());
    }

    #[test]
    fn percentiles_of_something_else_are_not_typical() {
        let apart = Sample { percentiles_apart: true, ..sample(0, 900.0, Some(100)) };
        let series = &of_probe(&result(vec![apart]))[0];
        assert_eq!((series.median, series.p50_ns), (900.0, Some(100.0)));
    }
}
