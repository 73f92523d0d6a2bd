//! A trace of a comparison, and what its figures are shares of.

use etwhy_analysis::derived::machine::MachineRow;
use etwhy_rules::Outcome;
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
