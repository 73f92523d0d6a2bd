//! Two or more traces of one machine or program, before and after.
//!
//! # How it is computed
//!
//! Everything is compared twice. *Per second*: times as share of the observed time of the processors (table `machine`; of the trace, where
//! a finding costs elapsed time: a wait is as long on any number of processors), counts as
//! events per second, so that traces of different length and machines of different size can be compared. *Per run*: the sums as they
//! are, because the same work that takes 60 times as long is what a user feels, and per second it looks the same. [`entities`]
//! compares processes, drivers, functions and modules; [`table`] any table or view; [`interrupts`] the durations of DPCs and ISRs;
//! [`verdicts`] the findings; [`modules`] what is installed. [`series`]
//! looks for the run from which on the level of many runs is another one.
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

mod change;
pub mod entities;
pub mod interrupts;
pub mod modules;
mod scale;
pub mod series;
pub mod table;
pub mod verdicts;

pub use change::{Change, Ratio};
pub use scale::{Scale, Side};

use etwhy_base::units::{counted, digits, duration_ns};
use serde::Serialize;
use ts_rs::TS;

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
            caveats.push(format!(
                "{} lasts {}, {} {}, {} times as long. If both did the same work, compare what it cost per run; per second, work that \
                 takes longer looks the same",
                first.label,
                duration_ns(first.duration_ns),
                other.label,
                duration_ns(other.duration_ns),
                digits(ratio)
            ));
        }
        if first.cpus != other.cpus {
            caveats.push(format!(
                "{} has {}, {} has {}: shares are of each machine's own",
                first.label,
                counted(first.cpus, "processor", "processors"),
                other.label,
                other.cpus
            ));
        }
        if first.recording.is_some() && first.recording == other.recording {
            caveats.push(format!(
                "{} and {} are the same recording, so there is nothing to compare",
                first.label, other.label
            ));
        }
        if let (Some(before), Some(after)) = (&first.computer, &other.computer)
            && !before.eq_ignore_ascii_case(after)
        {
            caveats.push(format!(
                "{} is of {before}, {} of {after}: what differs may be the machines",
                first.label, other.label
            ));
        }
    }
    for trace in traces.iter().filter(|trace| trace.is_lossy()) {
        caveats.push(format!(
            "{}: records of up to {} of processor time may be missing; differences that this could make are not counted",
            trace.label,
            duration_ns(trace.lost_ns)
        ));
    }
    let some = |has: &dyn Fn(&Scale) -> bool| traces.iter().any(has) && !traces.iter().all(has);
    let lacking = |has: &dyn Fn(&Scale) -> bool| {
        let names: Vec<&str> = traces.iter().filter(|t| !has(t)).map(|t| t.label.as_str()).collect();
        names.join(", ")
    };
    if some(&|t| t.has_samples) {
        caveats.push(format!(
            "{}: no CPU samples, so processes, drivers and functions are not compared",
            lacking(&|t| t.has_samples)
        ));
    }
    for (class, what) in [("DPC", "DPCs"), ("INTERRUPT", "ISRs")] {
        let has = |t: &Scale| t.classes.contains(class);
        if some(&has) {
            caveats.push(format!("{}: no {what} were recorded, so they are not compared", lacking(&has)));
        }
    }
    for trace in traces.iter().filter(|trace| trace.busy_ns.is_some()) {
        let whole = trace.capacity_ns.saturating_add(trace.unobserved_ns);
        let share = if whole > 0 { trace.unobserved_ns as f64 / whole as f64 } else { 0.0 };
        if share > UNOBSERVED {
            caveats.push(format!(
                "{}: {} % of the recorded time was not observed and is in no share{}",
                trace.label,
                digits(share * 100.0),
                if trace.unsampled_ns > 0 {
                    "; differences of samples that this could make are not counted"
                } else {
                    ""
                }
            ));
        }
    }
    caveats
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
    let traces: Vec<Scale> = sides.iter().map(Scale::read).collect();
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

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_table::Database;

    #[test]
    fn what_is_compared_is_said() {
        let db = Database::new();
        let blank = Scale::read(&Side { label: "a.etl".to_owned(), db: &db, findings: &[] });
        let of = |label: &str, computer: &str, recording: &str| Scale {
            label: label.to_owned(),
            computer: Some(computer.to_owned()),
            recording: Some(recording.to_owned()),
            ..blank.clone()
        };
        assert_eq!(caveats(&[of("a.etl", "PC", "1"), of("b.etl", "pc", "2")]), [""; 0]);
        assert_eq!(caveats(&[blank.clone(), blank.clone()]), [""; 0], "nothing is known of them");
        let same = caveats(&[of("a.etl", "PC", "1"), of("b.etl", "PC", "1")]);
        assert!(same.len() == 1 && same[0].contains("a.etl and b.etl are the same recording"), "{same:?}");
        let other = caveats(&[of("a.etl", "PC1", "1"), of("b.etl", "PC2", "2")]);
        assert!(other.len() == 1 && other[0].contains("a.etl is of PC1, b.etl of PC2"), "{other:?}");
    }
}
