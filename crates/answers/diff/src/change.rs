//! How a figure changed, and whether that is more than chance.

use etwhy_stats::rate::{Sum, ratio_of_sums};
use serde::Serialize;
use ts_rs::TS;

/// A sum with what its chance depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// The sum, with the size of its pieces and the time in which it was observed.
    pub sum: Sum,
}

impl Measured {
    /// A sum of pieces in a time.
    pub fn new(total: f64, piece: f64, exposure: f64) -> Measured {
        Measured { sum: Sum { total, piece, exposure } }
    }

    fn per_second(&self) -> f64 {
        if self.sum.exposure > 0.0 { self.sum.total / self.sum.exposure } else { 0.0 }
    }

    /// The change to another trace. `tests`: how many names are compared at once.
    pub fn change(&self, after: &Measured, tests: usize) -> Change {
        let confidence = 1.0 - 0.05 / tests.max(1) as f64;
        let per_second = ratio_of_sums(self.sum, after.sum, confidence);
        let whole = |m: &Measured| Sum { exposure: 1.0, ..m.sum };
        let per_run = ratio_of_sums(whole(self), whole(after), confidence);
        let run = Ratio::new(self.sum.total, after.sum.total, per_run);
        Change::new(Ratio::new(self.per_second(), after.per_second(), per_second), Some(run))
    }
}

/// Two figures and their ratio.
#[derive(Clone, Copy, Debug, Serialize, PartialEq, TS)]
pub struct Ratio {
    /// Before.
    pub before: f64,
    /// After.
    pub after: f64,
    /// After divided by before; none if it was nothing before.
    pub ratio: Option<f64>,
    /// Lower end of the interval of the ratio: 95 %, over all names that are compared at once.
    pub ratio_low: Option<f64>,
    /// Upper end; none if it has none.
    pub ratio_high: Option<f64>,
    /// The interval does not hold 1: more than chance.
    pub significant: bool,
}

impl Ratio {
    /// Two figures with the interval of their ratio.
    pub fn new(before: f64, after: f64, interval: Option<etwhy_stats::Interval>) -> Ratio {
        let end = |end: f64| Some(end).filter(|end| end.is_finite());
        Ratio {
            before,
            after,
            ratio: (before > 0.0).then(|| after / before),
            ratio_low: interval.and_then(|i| end(i.low)),
            ratio_high: interval.and_then(|i| end(i.high)),
            significant: interval.is_some_and(|i| !i.holds(1.0)),
        }
    }
}

/// How a figure went from one trace to another.
#[derive(Clone, Copy, Debug, Serialize, PartialEq, TS)]
pub struct Change {
    /// new (nothing before), gone (nothing after), more, less, or chance (no more than that). What is new or gone may be chance too.
    pub what: &'static str,
    /// Per second, or as share of the observed time.
    #[serde(flatten)]
    pub per_second: Ratio,
    /// The sums of the whole runs; none for means.
    pub per_run: Option<Ratio>,
}

impl Change {
    /// The same figures where the difference could come from what was lost: no more than chance.
    pub fn undecided(mut self) -> Change {
        self.what = "chance";
        self.per_second.significant = false;
        self.per_run.iter_mut().for_each(|run| run.significant = false);
        self
    }

    /// A change of a figure, and of its sum over the run.
    pub fn new(per_second: Ratio, per_run: Option<Ratio>) -> Change {
        let Ratio { before, after, significant, .. } = per_second;
        let what = match (before > 0.0, after > 0.0) {
            (false, true) => "new",
            (true, false) => "gone",
            _ if !significant => "chance",
            _ if after > before => "more",
            _ => "less",
        };
        Change { what, per_second, per_run }
    }
}
