//! A trace of a comparison, and what its figures are shares of.

use etwhy_analysis::derived::machine::{MachineRow, running_cpu_ns};
use etwhy_decode::kernel::events::PerfInfo;
use etwhy_rules::{CostOf, Outcome, Rule};
use etwhy_table::{Database, TableSpec};
use etwhy_trace::catalog::trace::TraceRow;
use etwhy_trace::catalog::{self, cpu_time::CpuRow, kernel_class::KernelClassRow, unobserved::UnobservedRow};
use etwhy_trace::{Select, What};
use serde::Serialize;
use std::collections::BTreeSet;
use ts_rs::TS;

/// Most of the time in which no kernel events came at the end, for a run that counts as whole.
const SILENT: f64 = 0.05;

/// From this share of time on, lost records could hide or make a difference: as in findings.
const COULD_HIDE: f64 = 0.01;

/// By what a figure is known: a session of the kernel that ends early takes its own events along, not those of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observed {
    /// CPU samples, or context switches where there are none.
    Samples,
    /// Events of the kernel.
    Kernel,
    /// Those of other providers.
    Others,
}

impl Observed {
    /// By what a finding knows its costs.
    pub fn by_rule(rule: &Rule) -> Observed {
        let names = || rule.needs.iter().flat_map(|need| &need.events);
        if names().any(|name| name == "SampledProfile") {
            Observed::Samples
        } else if names().next().is_none() && rule.needs.iter().any(|need| !need.providers.is_empty()) {
            Observed::Others
        } else {
            Observed::Kernel
        }
    }

    /// By what a table knows: the pass over the kernel's events alone, or over others, too. Tables that are made of other tables are as these, CPU
    /// samples first.
    pub fn by_table(name: &str) -> Observed {
        Observed::of_table(name, 0).unwrap_or(Observed::Kernel)
    }

    fn of_table(name: &str, depth: usize) -> Option<Observed> {
        let of_name = |tables: &[&TableSpec]| tables.iter().any(|table| table.name == name);
        if let Some(spec) = catalog::ALL.iter().find(|spec| of_name(spec.tables)) {
            let kernel = |select: &Select| matches!(select.what, What::Kernel(_));
            let sampled = spec.selects.iter().any(|s| s.what == What::Kernel(PerfInfo::SampledProfile));
            return Some(match spec.selects.iter().all(kernel) {
                true if sampled => Observed::Samples,
                true => Observed::Kernel,
                false => Observed::Others,
            });
        }
        let spec = etwhy_analysis::derived::ALL.iter().find(|spec| of_name(spec.tables))?;
        if depth > 4 {
            return None;
        }
        let own: Vec<Observed> = (spec.reads)()
            .iter()
            .filter(|read| !ABOUT_ALL.contains(&read.name.as_ref()))
            .filter_map(|read| Observed::of_table(&read.name, depth + 1))
            .collect();
        [Observed::Samples, Observed::Others, Observed::Kernel].into_iter().find(|of| own.contains(of))
    }
}

/// What the costs of a finding are shares of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// By what they are known.
    pub observed: Observed,
    /// Time that passed, not time of processors.
    pub elapsed: bool,
}

impl Costs {
    /// Those of a finding.
    pub fn by_rule(rule: &Rule) -> Costs {
        let elapsed = rule.cost_of == Some(CostOf::Elapsed);
        match Observed::by_rule(rule) {
            // How much of the processors' time was sampled says nothing of the time that passed.
            Observed::Samples if elapsed => Costs { observed: Observed::Kernel, elapsed },
            observed => Costs { observed, elapsed },
        }
    }
}

/// Tables that say who is who, whatever the events.
const ABOUT_ALL: &[&str] = &[
    "process",
    "thread",
    "image",
    "file",
    "stack",
    "stack_frame",
    "frame",
    "trace",
    "machine",
    "module",
    "service",
];

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
    /// Computer, where recorded.
    #[serde(skip)]
    #[ts(skip)]
    pub computer: Option<String>,
    /// Name of the content, the same for copies.
    #[serde(skip)]
    #[ts(skip)]
    pub recording: Option<String>,
    /// From the first to the last event.
    pub duration_ns: i64,
    /// Logical processors.
    pub cpus: i64,
    /// Observed time of the processors: what shares of CPU time are shares of.
    pub capacity_ns: i64,
    /// Time of the processors in which DPCs and ISRs would have been recorded.
    pub event_capacity_ns: i64,
    /// Processors times the time in which the kernel's events were recorded: what their times and counts are shares of.
    #[serde(skip)]
    #[ts(skip)]
    pub kernel_capacity_ns: i64,
    /// Processors times duration, without a pause of the whole machine: what those of other providers are shares of.
    #[serde(skip)]
    #[ts(skip)]
    pub elapsed_cpu_ns: i64,
    /// There are CPU samples.
    #[serde(skip)]
    #[ts(skip)]
    pub has_samples: bool,
    /// Kernel classes that were recorded (`kernel_class`).
    #[serde(skip)]
    #[ts(skip)]
    pub classes: BTreeSet<String>,
    /// What was not observed of processors times duration, in which the machine did not stand still.
    pub unobserved_ns: i64,
    /// Of all time of processors, that in which records may be missing (table `unobserved`): what was not seen there may have been anything.
    pub lost_ns: i64,
    /// Time of processors of which no samples were taken although threads ran there: in no share of samples.
    #[serde(skip)]
    #[ts(skip)]
    pub unsampled_ns: i64,
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
        let elapsed_cpu_ns = machine.map_or(0, running_cpu_ns);
        let observed_ns = machine.and_then(|m| m.observed_ns());
        let cpus = machine.map_or(0, |m| m.cpus());
        let traces = side.db.read::<TraceRow>().ok();
        let trace = traces.as_ref().and_then(|rows| rows.first());
        Scale {
            label: side.label.clone(),
            computer: trace.and_then(|row| row.computer().map(str::to_owned)),
            recording: trace.map(|row| row.recording_id().to_owned()).filter(|id| !id.is_empty()),
            duration_ns: machine.map_or(0, |m| m.duration_ns()),
            cpus,
            capacity_ns,
            event_capacity_ns: machine.map_or(0, |m| m.event_capacity_ns()),
            kernel_capacity_ns: observed_ns.map_or(elapsed_cpu_ns, |ns| ns.saturating_mul(cpus)),
            elapsed_cpu_ns,
            has_samples: machine.is_some_and(|m| m.sampled_capacity_ns().is_some()),
            classes: side
                .db
                .read_or_empty::<KernelClassRow>()
                .iter()
                .filter(|row| row.events() > 0)
                .map(|row| row.class().to_owned())
                .collect(),
            unobserved_ns: elapsed_cpu_ns.saturating_sub(capacity_ns).max(0),
            lost_ns: side
                .db
                .read_or_empty::<UnobservedRow>()
                .iter()
                .fold(0, |ns, row| row.dur_ns().saturating_add(ns)),
            unsampled_ns: unsampled_ns(side.db),
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

    /// Neither are records missing, nor did the kernel's events end long before the trace.
    pub fn is_whole(&self) -> bool {
        let silent = self.elapsed_cpu_ns.saturating_sub(self.kernel_capacity_ns) as f64;
        !self.is_lossy() && silent <= SILENT * self.elapsed_cpu_ns as f64
    }

    /// Time of the processors in which such events may have happened and are not recorded.
    fn missing_ns(&self, of: Observed) -> i64 {
        let lost = if self.is_lossy() { self.lost_ns } else { 0 };
        let unsampled = if of == Observed::Samples { self.unsampled_ns } else { 0 };
        lost.saturating_add(unsampled)
    }

    /// Enough is missing of such events to hide something.
    pub fn hides(&self, of: Observed) -> bool {
        self.missing_ns(of) > 0
    }

    /// The share that a time may have had: that of what was seen if nothing of it was lost, up to that with all of what was lost.
    fn range(&self, of: Observed, ns: f64) -> (f64, f64) {
        let lost = self.missing_ns(of) as f64;
        let all = (self.capacity_ns as f64 + lost).max(1.0);
        (ns / all, (ns + lost) / all)
    }

    /// What is missing of one of the two could make this difference.
    pub fn loss_explains(&self, of: Observed, ns: f64, other: &Scale, other_ns: f64) -> bool {
        let ((low, high), (other_low, other_high)) = (self.range(of, ns), other.range(of, other_ns));
        (self.hides(of) || other.hides(of)) && low <= other_high && other_low <= high
    }

    /// Time of the processors in which such events were recorded.
    pub fn capacity(&self, of: Observed) -> i64 {
        match of {
            Observed::Samples => self.capacity_ns,
            Observed::Kernel => self.kernel_capacity_ns,
            Observed::Others => self.elapsed_cpu_ns,
        }
    }

    /// A time as share of the time of the processors in which such events were recorded.
    pub fn share_of(&self, of: Observed, ns: f64) -> f64 {
        let capacity = self.capacity(of);
        if capacity > 0 { ns / capacity as f64 } else { 0.0 }
    }

    /// A cost as time of all processors: what passed, passed on each of them.
    pub fn processor_ns(&self, costs: Costs, ns: f64) -> f64 {
        if costs.elapsed { ns * self.cpus.max(1) as f64 } else { ns }
    }

    /// A cost as share of the time of the processors, or of the trace, in which such events were recorded.
    pub fn share_of_cost(&self, costs: Costs, ns: f64) -> f64 {
        self.share_of(costs.observed, self.processor_ns(costs, ns))
    }

    /// A count per second in which such events were recorded.
    pub fn rate_of(&self, of: Observed, count: f64) -> f64 {
        let ns = self.capacity(of) as f64 / self.cpus.max(1) as f64;
        if ns > 0.0 { count / (ns * 1e-9) } else { 0.0 }
    }

    /// A count of DPCs or ISRs per second in which they were observed.
    pub fn event_rate(&self, count: f64) -> f64 {
        let ns = self.event_capacity_ns as f64 / self.cpus.max(1) as f64;
        if ns > 0.0 { count / (ns * 1e-9) } else { 0.0 }
    }
}

/// Time of the processors of which no samples were taken although threads ran there, where others were sampled.
fn unsampled_ns(db: &Database) -> i64 {
    let (mut sampled, mut unsampled) = (0i64, 0i64);
    for row in &db.read_or_empty::<CpuRow>() {
        let samples = row.sampled_busy_ns().saturating_add(row.sampled_idle_ns());
        sampled = sampled.saturating_add(samples);
        let threads = row.thread_ns().unwrap_or(0);
        if samples == 0 && threads > 0 {
            for ns in [threads, row.idle_ns().unwrap_or(0), row.dpc_ns(), row.isr_ns()] {
                unsampled = unsampled.saturating_add(ns);
            }
        }
    }
    if sampled > 0 { unsampled } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn machine(cpus: i64) -> Scale {
        let db = Database::new();
        let scale = Scale::read(&Side { label: String::new(), db: &db, findings: &[] });
        let all = cpus.saturating_mul(10 * S);
        Scale { cpus, capacity_ns: all, kernel_capacity_ns: all, elapsed_cpu_ns: all, ..scale }
    }

    #[test]
    fn elapsed_time_is_a_share_of_the_trace_on_any_number_of_processors() {
        let share = |cpus, elapsed, ns: i64| {
            machine(cpus).share_of_cost(Costs { observed: Observed::Kernel, elapsed }, ns as f64)
        };
        assert_eq!([4, 16, 64].map(|cpus| share(cpus, true, S)), [0.1; 3]);
        assert_eq!((share(4, false, S), share(16, false, 4 * S)), (0.025, 0.025));
        assert_eq!(share(0, true, S), 0.0);
    }

    #[test]
    fn processors_without_samples_could_make_a_difference_of_samples_only() {
        // Four processors for ten seconds; of two of them no samples were taken.
        let (whole, half) = (machine(4), Scale { capacity_ns: 20 * S, unsampled_ns: 20 * S, ..machine(4) });
        let explains =
            |of, before: i64, after: i64| whole.loss_explains(of, before as f64, &half, after as f64);
        assert!(explains(Observed::Samples, 11 * S, 9 * S));
        assert!(explains(Observed::Samples, 2 * S, 0));
        assert!(
            !explains(Observed::Samples, S, 9 * S),
            "more than was there before, even if nothing more is missing"
        );
        assert!(!explains(Observed::Kernel, 2 * S, 0));
        assert!(!whole.loss_explains(Observed::Samples, S as f64, &whole, S as f64));
    }

    #[test]
    fn findings_say_what_their_costs_are() {
        let rules = etwhy_rules::builtin().unwrap_or_default();
        let elapsed =
            |id: &str| rules.iter().find(|rule| rule.id == id).map(|rule| Costs::by_rule(rule).elapsed);
        assert_eq!(["lock.contention", "ui.hang", "disk.saturated"].map(elapsed), [Some(true); 3]);
        assert_eq!(["cpu.dominant", "dpc.flood", "cpu.spin-wait"].map(elapsed), [Some(false); 3]);
    }
}
