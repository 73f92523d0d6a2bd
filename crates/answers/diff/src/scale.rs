//! A trace of a comparison, and what its figures are shares of.

use etwhy_analysis::derived::machine::MachineRow;
use etwhy_rules::Outcome;
use etwhy_table::Database;
use etwhy_trace::catalog::unobserved::UnobservedRow;
use serde::Serialize;
use ts_rs::TS;

/// From this share of time on, lost records could hide or make a difference: as in findings.
const COULD_HIDE: f64 = 0.01;

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
    /// Of all time of processors, that in which records may be missing (table `unobserved`): what was not seen there may have been anything.
    pub lost_ns: i64,
    /// Busy time, if samples or context switches tell.
    pub busy_ns: Option<i64>,
    /// Busy time as share of the observed time.
    pub busy_share: Option<f64>,
    /// Interval of CPU samples.
    pub sample_interval_ns: i64,
}

impl Scale {
    /// From table `machine`.
    pub fn read(side: &Side<'_>) -> Scale {
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
            lost_ns: side
                .db
                .read_or_empty::<UnobservedRow>()
                .iter()
                .fold(0, |ns, row| row.dur_ns().saturating_add(ns)),
            busy_ns: machine.and_then(|m| m.busy_ns()),
            busy_share: machine.and_then(|m| m.busy_percent()).map(|percent| percent / 100.0),
            sample_interval_ns: machine.and_then(|m| m.sample_interval_ns()).unwrap_or(1_000_000).max(1),
        }
    }

    /// A time as share of the observed time of the processors.
    pub fn share(&self, ns: f64) -> f64 {
        if self.capacity_ns > 0 { ns / self.capacity_ns as f64 } else { 0.0 }
    }

    /// Enough may be missing to change a figure.
    pub fn is_lossy(&self) -> bool {
        let whole = self.capacity_ns.saturating_add(self.lost_ns) as f64;
        self.lost_ns > 0 && self.lost_ns as f64 >= COULD_HIDE * whole
    }

    /// The share that a time may have had: that of what was seen if nothing of it was lost, up to that with all of what was lost.
    fn range(&self, ns: f64) -> (f64, f64) {
        let lost = if self.is_lossy() { self.lost_ns as f64 } else { 0.0 };
        let all = (self.capacity_ns as f64 + lost).max(1.0);
        (ns / all, (ns + lost) / all)
    }

    /// What was lost of one of the two could make this difference.
    pub fn loss_explains(&self, ns: f64, other: &Scale, other_ns: f64) -> bool {
        let ((low, high), (other_low, other_high)) = (self.range(ns), other.range(other_ns));
        (self.is_lossy() || other.is_lossy()) && low <= other_high && other_low <= high
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
