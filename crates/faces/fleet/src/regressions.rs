//! What a new version of a file costs, on the machines that had the old one.
//!
//! Each machine is compared with itself: half a fleet may do other work, or be slower. The typical change over the machines has an interval of
//! ranks (`etwhy_stats::exact`), which asks for no distribution. Many files change in a fleet, so the intervals that decide are those of
//! Holm's correction: of all files together, fewer than one in twenty quiet fleets are accused once.
//!
//! # What fools it
//! What changes for all machines with the version: more work, another release that came with it. A file that came with the version is
//! accused instead of the one that brought it, or both are.

pub use etwhy_stats::FALSE_ALARMS;
use etwhy_stats::Interval;
use etwhy_stats::exact::signed_rank;
use etwhy_table::Table;
use std::collections::BTreeMap;

/// Shares below this are no measure: it stands in for none.
const LEAST_SHARE: f64 = 1e-7;
/// Machines that an interval is made from; of more, they are thinned evenly.
const MOST_MACHINES: usize = 400;

/// A machine before and after.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// Share of the machine's time, before.
    pub before: f64,
    /// The same, after.
    pub after: f64,
    /// Traces of both.
    pub traces: i64,
    /// Start of the first trace with the new version.
    pub first_after_unix_ns: i64,
}

/// A change of a version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// driver or process.
    pub kind: String,
    /// The file.
    pub culprit: String,
    /// The version before.
    pub before: String,
    /// The version after.
    pub after: String,
}

/// What a change of a version costs.
#[derive(Clone, Debug)]
pub struct Regression {
    /// The change.
    pub change: Change,
    /// Machines that had both versions.
    pub machines: usize,
    /// Their traces.
    pub traces: i64,
    /// Mean share of the machines' time before and after, 0 to 1.
    pub shares: [f64; 2],
    /// Cost after, as a multiple of that before, with an interval of 95 %; `None` if there are too few machines.
    pub ratio: Option<Interval>,
    /// More or less than before, also when all changes of the fleet are looked at.
    pub certain: bool,
    /// First trace with the new version.
    pub since_unix_ns: i64,
}

/// The pairs of view `version_pairs`.
pub fn pairs(table: &Table) -> BTreeMap<Change, Vec<Pair>> {
    let mut all: BTreeMap<Change, Vec<Pair>> = BTreeMap::new();
    for row in 0..u32::try_from(table.rows()).unwrap_or(u32::MAX) {
        let text = |column: &str| table.text(row, column).unwrap_or_default().to_owned();
        let number = |column: &str| table.f64(row, column).unwrap_or(0.0).max(LEAST_SHARE);
        // The middle of two in the way of ratios.
        let middle = |low: &str, high: &str| (number(low) * number(high)).sqrt();
        let change = Change {
            kind: text("kind"),
            culprit: text("culprit"),
            before: text("version_before"),
            after: text("version_after"),
        };
        let count = |column: &str| table.i64(row, column).unwrap_or(0);
        all.entry(change).or_default().push(Pair {
            before: middle("share_before", "upper_before"),
            after: middle("share_after", "upper_after"),
            traces: count("traces_before").saturating_add(count("traces_after")),
            first_after_unix_ns: count("first_after_unix_ns"),
        });
    }
    all
}

/// What each change costs: certain ones first, those that cost most first.
pub fn regressions(pairs: &BTreeMap<Change, Vec<Pair>>) -> Vec<Regression> {
    let mut all: Vec<Regression> = Vec::new();
    let mut logs: Vec<Vec<f64>> = Vec::new();
    for (change, pairs) in pairs {
        let every = pairs.len().div_ceil(MOST_MACHINES).max(1);
        let log: Vec<f64> = pairs.iter().step_by(every).map(|pair| (pair.after / pair.before).ln()).collect();
        let mean = |of: &dyn Fn(&Pair) -> f64| pairs.iter().map(of).sum::<f64>() / pairs.len().max(1) as f64;
        let ratio = signed_rank(&log, 0.95).map(|i| Interval {
            value: i.value.exp(),
            low: i.low.exp(),
            high: i.high.exp(),
        });
        all.push(Regression {
            change: change.clone(),
            machines: pairs.len(),
            traces: pairs.iter().map(|pair| pair.traces).sum(),
            shares: [mean(&|pair| pair.before), mean(&|pair| pair.after)],
            ratio,
            certain: false,
            since_unix_ns: pairs.iter().map(|pair| pair.first_after_unix_ns).min().unwrap_or(0),
        });
        logs.push(log);
    }
    for n in holm(&logs) {
        if let Some(found) = all.get_mut(n) {
            found.certain = true;
        }
    }
    let more = |r: &Regression| r.shares[1] - r.shares[0];
    all.sort_by(|a, b| {
        b.certain
            .cmp(&a.certain)
            .then_with(|| more(b).total_cmp(&more(a)))
            .then_with(|| a.change.cmp(&b.change))
    });
    all
}

/// Which differences are none of chance, of many that are looked at (Holm 1979): those that are certain enough for all, then those that are
/// for the rest, and so on. All count that could be asked with enough machines, whatever they say.
fn holm(logs: &[Vec<f64>]) -> Vec<usize> {
    let mut open: Vec<usize> = (0..logs.len())
        .filter(|&n| logs.get(n).is_some_and(|log| signed_rank(log, 1.0 - FALSE_ALARMS).is_some()))
        .collect();
    let mut found = Vec::new();
    loop {
        let confidence = 1.0 - FALSE_ALARMS / open.len().max(1) as f64;
        let differs = |n: &usize| {
            let interval = logs.get(*n).and_then(|log| signed_rank(log, confidence));
            interval.is_some_and(|interval| !interval.holds(0.0))
        };
        let (certain, rest): (Vec<usize>, Vec<usize>) = open.into_iter().partition(differs);
        if certain.is_empty() {
            return found;
        }
        found.extend(certain);
        open = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_base::rng::Rng;

    fn change(culprit: &str) -> Change {
        Change { kind: "driver".into(), culprit: culprit.into(), before: "1".into(), after: "2".into() }
    }

    /// A fleet: machines with shares that differ tenfold, twenty files that change without a cost.
    fn fleet(seed: u64, machines: usize, files: usize, factor: f64) -> BTreeMap<Change, Vec<Pair>> {
        let mut rng = Rng::new(seed);
        let mut all = BTreeMap::new();
        for file in 0..files {
            let guilty = file == 3 && factor > 1.0;
            let pairs = (0..machines).map(|_| {
                let own = 0.01 * (rng.normal() * 0.8).exp();
                let mut seen = |factor: f64| own * factor * (rng.normal() * 0.05).exp();
                Pair {
                    before: seen(1.0),
                    after: seen(if guilty { factor } else { 1.0 }),
                    traces: 2,
                    first_after_unix_ns: 5,
                }
            });
            all.insert(change(&format!("f{file}.sys")), pairs.collect());
        }
        all
    }

    #[test]
    fn three_per_cent_are_found_and_measured() {
        let mut covered = 0;
        for seed in 0..20 {
            let found = regressions(&fleet(seed, 200, 20, 1.03));
            let first = found.first().unwrap();
            assert!(first.certain && first.change.culprit == "f3.sys", "{seed}: {first:?}");
            covered += usize::from(first.ratio.unwrap().holds(1.03));
        }
        assert!(covered >= 16, "{covered} of 20 intervals hold the truth");
    }

    /// Fewer than one in twenty quiet fleets may be accused; 4,000 of them tell.
    #[test]
    fn quiet_fleets_are_left_alone() {
        let alarms = (0..4_000)
            .filter(|seed| regressions(&fleet(10_000 + seed, 30, 12, 1.0)).iter().any(|found| found.certain))
            .count();
        println!("{alarms} of 4,000 quiet fleets were accused");
        assert!(alarms <= 200, "{alarms} of 4,000");
    }

    #[test]
    fn few_machines_say_nothing() {
        let found = regressions(&fleet(1, 4, 5, 2.0));
        assert!(found.iter().all(|found| !found.certain && found.ratio.is_none()));
        assert!(regressions(&BTreeMap::new()).is_empty());
    }
}
