//! Two or more traces of one machine or program, before and after.
//!
//! # How it is computed
//!
//! Everything is normalised: times to the share of the machine's time (processors times duration), counts to events
//! per second, so that traces of different length and machines of different size can be compared. [`entities`] compares
//! processes, drivers, functions and modules; [`table`] any table or view; [`interrupts`] the durations of DPCs and ISRs;
//! [`verdicts`] the findings; [`modules`] what is installed.
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

use crate::findings::Outcome;
use etwhy_table::Database;
use serde::Serialize;

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
#[derive(Clone, Debug, Serialize)]
pub struct Scale {
    /// What the trace is called.
    pub label: String,
    /// From the first to the last event.
    pub duration_ns: i64,
    /// Logical processors.
    pub cpus: i64,
    /// Processors times duration.
    pub capacity_ns: i64,
    /// Busy time, if samples or context switches tell.
    pub busy_ns: Option<i64>,
    /// Interval of CPU samples.
    pub sample_interval_ns: i64,
}

impl Scale {
    /// From table `machine`.
    pub fn of(side: &Side<'_>) -> Scale {
        let number = |column: &str| side.db.get("machine").and_then(|m| m.i64(0, column));
        Scale {
            label: side.label.clone(),
            duration_ns: number("duration_ns").unwrap_or(0),
            cpus: number("cpus").unwrap_or(0),
            capacity_ns: number("capacity_ns").unwrap_or(0),
            busy_ns: number("busy_ns"),
            sample_interval_ns: number("sample_interval_ns").unwrap_or(1_000_000),
        }
    }

    /// A time as share of the machine.
    pub fn share(&self, ns: f64) -> f64 {
        if self.capacity_ns > 0 { ns / self.capacity_ns as f64 } else { 0.0 }
    }

    /// A count per second.
    pub fn rate(&self, count: f64) -> f64 {
        if self.duration_ns > 0 { count / (self.duration_ns as f64 * 1e-9) } else { 0.0 }
    }
}

/// How a figure went from one trace to another.
#[derive(Clone, Copy, Debug, Serialize, PartialEq)]
pub struct Change {
    /// Normalised, before.
    pub before: f64,
    /// Normalised, after.
    pub after: f64,
    /// After divided by before; none if it was nothing before.
    pub ratio: Option<f64>,
    /// Lower end of the 95 % interval of the ratio.
    pub ratio_low: Option<f64>,
    /// Upper end.
    pub ratio_high: Option<f64>,
    /// The interval does not hold 1: more than chance.
    pub significant: bool,
}

impl Change {
    /// A change with the interval of its ratio.
    pub fn new(before: f64, after: f64, interval: Option<etwhy_stats::Interval>) -> Change {
        let interval = interval.filter(|i| i.low.is_finite() && i.value.is_finite());
        Change {
            before,
            after,
            ratio: (before > 0.0).then(|| after / before),
            ratio_low: interval.map(|i| i.low),
            ratio_high: interval.map(|i| i.high).filter(|high| high.is_finite()),
            significant: interval.is_some_and(|i| !i.holds(1.0)),
        }
    }
}

/// All comparisons of some traces, the first of which is the base.
#[derive(Clone, Debug, Serialize)]
pub struct Diff {
    /// Version of this form.
    pub schema: &'static str,
    /// The traces.
    pub traces: Vec<Scale>,
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
        schema: "etwhy.diff/1",
        entities: entities::compare(sides, &traces),
        interrupts: interrupts::compare(sides, &traces),
        verdicts: verdicts::compare(sides, &traces),
        modules: modules::compare(sides),
        traces,
    }
}
