//! Two or more traces of one machine or program, before and after.
//!
//! # How it is computed
//!
//! Everything is compared twice. *Per second*: times as share of the observed time of the processors (table `machine`), counts as
//! events per second, so that traces of different length and machines of different size can be compared. *Per run*: the sums as they
//! are, because the same work that takes 60 times as long is what a user feels, and per second it looks the same. [`entities`]
//! compares processes, drivers, functions and modules; [`table`] any table or view; [`interrupts`] the durations of DPCs and ISRs;
//! [`verdicts`] the findings; [`modules`] what is installed.
//!
//! There is one test (`Measured`), for text, JSON and the page. A time is a sum of pieces (samples, DPCs) whose number varies by
//! chance as much as their size; pieces that come in bursts count as larger ones. The ratio of two such sums has an interval, wider the
//! more names are compared at once (Bonferroni). If it does not hold 1, the change is *significant*: more than chance. What was
//! nothing before is *new*, what is nothing after is *gone*, each significant or not.
//!
//! # What fools it
//!
//! Different work makes different costs. A difference is a fact, its cause is not: where several things changed at
//! once, none of them is credited ([`modules::Changes::together`]).

pub mod entities;
pub mod interrupts;
pub mod modules;
pub mod table;
pub mod verdicts;

use etwhy_analysis::derived::machine::MachineRow;
use etwhy_base::units::{digits, duration_ns};
use etwhy_rules::Outcome;
use etwhy_stats::rate::{Sum, ratio_of_sums};
use etwhy_table::Database;
use serde::Serialize;
use ts_rs::TS;

/// One trace.
pub struct Side<'a> {
    /// What it is called: the name of the file.
    pub label: String,
    /// Its tables.
    pub db: &'a Database,
    /// Its findings.
    pub findings: &'a [Outcome],
}

/// What a trace can be normalised by.
#[derive(Clone, Debug, Serialize, TS)]
#[ts(rename = "DiffTrace")]
pub struct Scale {
    /// What the trace is called.
    pub label: String,
    /// From the first to the last event.
    pub duration_ns: i64,
    /// Logical processors.
    pub cpus: i64,
    /// Observed time of the processors: what shares of CPU time are shares of.
    pub capacity_ns: i64,
    /// Time of the processors in which DPCs and ISRs would have been recorded.
    pub event_capacity_ns: i64,
    /// What was not observed of processors times duration.
    pub unobserved_ns: i64,
    /// Busy time, if samples or context switches tell.
    pub busy_ns: Option<i64>,
    /// Busy time as share of the observed time.
    pub busy_share: Option<f64>,
    /// Interval of CPU samples.
    pub sample_interval_ns: i64,
}

impl Scale {
    /// From table `machine`.
    pub fn of(side: &Side<'_>) -> Scale {
        let machine = side.db.read_or_empty::<MachineRow>();
        let machine = machine.first();
        let capacity_ns = machine.map_or(0, |m| m.capacity_ns());
        Scale {
            label: side.label.clone(),
            duration_ns: machine.map_or(0, |m| m.duration_ns()),
            cpus: machine.map_or(0, |m| m.cpus()),
            capacity_ns,
            event_capacity_ns: machine.map_or(0, |m| m.event_capacity_ns()),
            unobserved_ns: machine.map_or(0, |m| m.elapsed_cpu_ns()).saturating_sub(capacity_ns).max(0),
            busy_ns: machine.and_then(|m| m.busy_ns()),
            busy_share: machine.and_then(|m| m.busy_percent()).map(|percent| percent / 100.0),
            sample_interval_ns: machine.and_then(|m| m.sample_interval_ns()).unwrap_or(1_000_000).max(1),
        }
    }

    /// A time as share of the observed time of the processors.
    pub fn share(&self, ns: f64) -> f64 {
        if self.capacity_ns > 0 { ns / self.capacity_ns as f64 } else { 0.0 }
    }

    /// A count per second.
    pub fn rate(&self, count: f64) -> f64 {
        if self.duration_ns > 0 { count / (self.duration_ns as f64 * 1e-9) } else { 0.0 }
    }

    /// A count of DPCs or ISRs per second in which they were observed.
    pub fn event_rate(&self, count: f64) -> f64 {
        let ns = self.event_capacity_ns as f64 / self.cpus.max(1) as f64;
        if ns > 0.0 { count / (ns * 1e-9) } else { 0.0 }
    }
}

/// From this factor on, lengths of traces are different.
const OTHER_LENGTH: f64 = 1.2;

/// How many times as long a trace is as another one, if that is another length: shares per second hide what the whole run cost.
pub fn other_length(before: &Scale, after: &Scale) -> Option<f64> {
    let ratio = after.duration_ns as f64 / before.duration_ns as f64;
    (ratio.is_finite() && ratio > 0.0 && !(1.0 / OTHER_LENGTH..=OTHER_LENGTH).contains(&ratio))
        .then_some(ratio)
}

/// Above this share of time that was not observed, it is said.
const UNOBSERVED: f64 = 0.05;

/// What must be known before the figures are read.
pub fn caveats(traces: &[Scale]) -> Vec<String> {
    let mut caveats = Vec::new();
    let Some((first, others)) = traces.split_first() else { return caveats };
    for other in others {
        if let Some(ratio) = other_length(first, other) {
            let (times, word) = if ratio >= 1.0 { (ratio, "long") } else { (1.0 / ratio, "short") };
            caveats.push(format!(
                "{} lasts {}, {} {}: {} times as {word}. If both did the same work, compare what it cost per run; per second, work that \
                 takes longer looks the same",
                first.label,
                duration_ns(first.duration_ns),
                other.label,
                duration_ns(other.duration_ns),
                digits(times)
            ));
        }
        if first.cpus != other.cpus {
            caveats.push(format!(
                "{} has {} processors, {} has {}: shares are of each machine's own",
                first.label, first.cpus, other.label, other.cpus
            ));
        }
    }
    for trace in traces.iter().filter(|trace| trace.busy_ns.is_some()) {
        let whole = trace.capacity_ns.saturating_add(trace.unobserved_ns);
        let share = if whole > 0 { trace.unobserved_ns as f64 / whole as f64 } else { 0.0 };
        if share > UNOBSERVED {
            caveats.push(format!(
                "{}: {} % of the recorded time was not observed and is in no share",
                trace.label,
                digits(share * 100.0)
            ));
        }
    }
    caveats
}

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

/// All comparisons of some traces, the first of which is the base.
#[derive(Clone, Debug, Serialize, TS)]
pub struct Diff {
    /// Version of this form.
    pub schema: &'static str,
    /// The traces.
    pub traces: Vec<Scale>,
    /// What must be known before the figures are read.
    pub caveats: Vec<String>,
    /// Processes, drivers, functions: changes from the first trace to each other one.
    pub entities: Vec<entities::Entity>,
    /// DPCs and ISRs by module.
    pub interrupts: Vec<interrupts::Module>,
    /// Findings.
    pub verdicts: Vec<verdicts::Verdict>,
    /// Drivers and programs that came, went, or have another version.
    pub modules: Vec<modules::Changes>,
}

/// Compares traces with the first.
pub fn diff(sides: &[Side<'_>]) -> Diff {
    let traces: Vec<Scale> = sides.iter().map(Scale::of).collect();
    Diff {
        schema: "etwhy.diff/2",
        entities: entities::compare(sides, &traces),
        interrupts: interrupts::compare(sides, &traces),
        verdicts: verdicts::compare(sides, &traces),
        modules: modules::compare(sides),
        caveats: caveats(&traces),
        traces,
    }
}
