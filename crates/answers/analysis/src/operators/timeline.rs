//! CPU time by process over time, idle time included: what a timeline draws.
//!
//! # How it is computed
//!
//! From `process_slice`, which rests on samples: the processes with the most time are series of their own, the others one; so
//! are DPCs and ISRs. Without samples `cpu_time` tells what the processors did, by context switches, but not for whom.
//!
//! # What fools it
//!
//! Samples stand for the interval *before* them, so the border of a slice is blurred by one interval. What is neither busy nor
//! idle was not recorded: lost buffers, or idle processors that Windows leaves without samples.

use super::cpu::DPC_ISR;
use super::{add, process_names, span};
use crate::derived::process_slice::ProcessSliceRow;
use etwhy_table::Database;
use etwhy_trace::catalog::{cpu_time::CpuTimeRow, trace::TraceRow};
use foldhash::HashMap;
use serde::Serialize;

/// CPU time in slices.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Timeline {
    /// Start of the first slice.
    pub start_ns: i64,
    /// Length of a slice; the last one may be shorter.
    pub slice_ns: i64,
    /// End of the last slice.
    pub end_ns: i64,
    /// Processors.
    pub cpus: i64,
    /// What it rests on: sample or cswitch.
    pub source: &'static str,
    /// Processes by their time, then `other`, `interrupt`, `idle`.
    pub series: Vec<Series>,
}

/// One band of the timeline.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// Name of the process with its id, or what it is.
    pub name: String,
    /// process, other, interrupt or idle.
    pub kind: &'static str,
    /// Time in all slices.
    pub total_ns: i64,
    /// Time in each slice.
    pub values_ns: Vec<i64>,
}

/// Who a band belongs to, while bands are made.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
enum Owner {
    Process(i64),
    Other,
    Interrupt,
    Idle,
}

/// Slices are at most this many; tables may have more.
const SLICES: i64 = 200;

/// The slices of a timeline, and where they stand.
struct Slices {
    start_ns: i64,
    slice_ns: i64,
    count: usize,
    by: HashMap<Owner, Vec<i64>>,
}

impl Slices {
    fn add(&mut self, owner: Owner, at_ns: i64, weight: i64) {
        let number = at_ns.saturating_sub(self.start_ns).max(0) / self.slice_ns.max(1);
        let number = usize::try_from(number).unwrap_or(usize::MAX).min(self.count.saturating_sub(1));
        let count = self.count;
        if let Some(sum) = self.by.entry(owner).or_insert_with(|| vec![0; count]).get_mut(number) {
            add(sum, weight);
        }
    }
}

/// The timeline, with the `top` processes by name. `None` without samples and context switches.
pub fn timeline(db: &Database, top: usize) -> Option<Timeline> {
    let (first, last) = span(db)?;
    let cpus = db.read_or_empty::<TraceRow>().iter().map(|row| row.cpus()).max().unwrap_or(0);
    let duration = last.checked_sub(first).filter(|ns| *ns > 0)?;
    // Slices are those of the table, or several of them together.
    let (slices, times) = (db.read_or_empty::<ProcessSliceRow>(), db.read_or_empty::<CpuTimeRow>());
    let lengths = [slices.iter().map(|row| row.dur_ns()).max(), times.iter().map(|row| row.dur_ns()).max()];
    let unit = lengths.into_iter().flatten().find(|ns| *ns > 0)?;
    let least = duration / SLICES + i64::from(duration % SLICES > 0);
    let slice_ns = (least / unit + i64::from(least % unit > 0)).saturating_mul(unit);
    let count = duration / slice_ns + i64::from(duration % slice_ns > 0);
    let mut slices =
        Slices { start_ns: first, slice_ns, count: usize::try_from(count).ok()?, by: HashMap::default() };
    for row in &db.read_or_empty::<ProcessSliceRow>() {
        let owner = match row.class() {
            "idle" => Owner::Idle,
            "dpc" | "isr" => Owner::Interrupt,
            _ => row.upid().map_or(Owner::Other, Owner::Process),
        };
        slices.add(owner, row.start_ns(), row.cpu_ns());
    }
    let mut source = "sample";
    if slices.by.is_empty() {
        source = "cswitch";
        read_switches(db, &mut slices);
    }
    if slices.by.is_empty() {
        return None;
    }
    let series = bands(slices.by, &process_names(db), slices.count, top);
    Some(Timeline { start_ns: first, slice_ns, end_ns: last, cpus, source, series })
}

fn read_switches(db: &Database, slices: &mut Slices) {
    for row in &db.read_or_empty::<CpuTimeRow>() {
        let Some(thread) = row.thread_ns() else { continue };
        let at = row.start_ns();
        let interrupt = row.dpc_ns().saturating_add(row.isr_ns());
        slices.add(Owner::Other, at, thread);
        slices.add(Owner::Idle, at, row.idle_ns().unwrap_or(0));
        slices.add(Owner::Interrupt, at, interrupt);
    }
}

fn bands(by: HashMap<Owner, Vec<i64>>, names: &[(String, i64)], count: usize, top: usize) -> Vec<Series> {
    let new =
        |name: &str, kind| Series { name: name.to_owned(), kind, total_ns: 0, values_ns: vec![0; count] };
    let alone = !by.keys().any(|owner| matches!(owner, Owner::Process(_)));
    let mut other = new(if alone { "threads" } else { "other processes" }, "other");
    let mut interrupt = new(DPC_ISR.0, "interrupt");
    let mut idle = new("idle", "idle");
    let mut processes = Vec::new();
    for (owner, values_ns) in by {
        match owner {
            Owner::Process(upid) => {
                let total_ns = values_ns.iter().fold(0i64, |sum, n| sum.saturating_add(*n));
                processes.push((upid, total_ns, values_ns));
            }
            Owner::Other => merge(&mut other, &values_ns),
            Owner::Interrupt => merge(&mut interrupt, &values_ns),
            Owner::Idle => merge(&mut idle, &values_ns),
        }
    }
    processes.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    let mut out = Vec::new();
    for (number, (upid, total_ns, values_ns)) in processes.into_iter().enumerate() {
        if number >= top {
            merge(&mut other, &values_ns);
            continue;
        }
        let known = usize::try_from(upid).ok().and_then(|p| names.get(p));
        let name = known.map_or_else(|| "[unknown]".to_owned(), |(name, pid)| format!("{name} ({pid})"));
        out.push(Series { name, kind: "process", total_ns, values_ns });
    }
    out.extend([other, interrupt, idle].into_iter().filter(|s| s.total_ns > 0));
    out
}

fn merge(into: &mut Series, values: &[i64]) {
    for (sum, n) in into.values_ns.iter_mut().zip(values) {
        add(sum, *n);
        add(&mut into.total_ns, *n);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::tests::table;
    use etwhy_table::Value;
    use etwhy_testkit::Are as _;

    fn trace() -> etwhy_table::Table {
        let rows = [vec![Value::I64(100), Value::I64(1_100), Value::I64(2)]];
        table("trace", "first_ns last_ns cpus", &rows)
    }

    #[test]
    fn bands_are_ranked_and_the_rest_is_one() {
        let mut db = Database::new();
        db.insert(trace());
        let process = |name| vec![Value::Text(name), Value::I64(if name == "Idle" { 0 } else { 4 })];
        let processes = ["Idle", "a.exe", "b.exe"].map(process);
        db.insert(table("process", "name pid", &processes));
        let row = |start, class, upid: Option<i64>, ns| {
            let upid = upid.map_or(Value::Null, Value::I64);
            vec![Value::I64(start), Value::I64(500), Value::Text(class), upid, Value::I64(ns)]
        };
        let rows = [
            row(100, "thread", Some(1), 10),
            row(100, "thread", Some(2), 200),
            row(100, "idle", None, 700),
            row(600, "thread", Some(1), 30),
            row(600, "thread", None, 5),
            row(600, "dpc", None, 2),
            row(600, "isr", None, 1),
        ];
        let columns = "start_ns dur_ns class upid cpu_ns";
        db.insert(table("process_slice", columns, &rows));
        let made = timeline(&db, 1).unwrap();
        assert_eq!((made.start_ns, made.slice_ns, made.end_ns, made.cpus), (100, 500, 1_100, 2));
        let shown: Vec<(&str, &str, i64, &[i64])> = made
            .series
            .iter()
            .map(|s| (s.name.as_str(), s.kind, s.total_ns, s.values_ns.as_slice()))
            .collect();
        shown.are(&[
            ("b.exe (4)", "process", 200, &[200, 0][..]),
            ("other processes", "other", 45, &[10, 35]),
            ("[DPC and ISR]", "interrupt", 3, &[0, 3]),
            ("idle", "idle", 700, &[700, 0]),
        ]);
    }

    #[test]
    fn without_samples_switches_tell() {
        let mut db = Database::new();
        db.insert(trace());
        let columns = "start_ns dur_ns thread_ns idle_ns dpc_ns isr_ns";
        let rows = [100, 350, 600].map(|start| [start, 250, 40, 200, 7, 3].map(Value::I64).to_vec());
        db.insert(table("cpu_time", columns, &rows));
        let made = timeline(&db, 8).unwrap();
        assert_eq!((made.source, made.slice_ns, made.series.len()), ("cswitch", 250, 3));
        let sums: Vec<(&str, i64)> = made.series.iter().map(|s| (s.name.as_str(), s.total_ns)).collect();
        assert_eq!(sums, [("threads", 120), ("[DPC and ISR]", 30), ("idle", 600)]);
    }

    #[test]
    fn nothing_makes_no_timeline() {
        assert!(timeline(&Database::new(), 8).is_none());
    }
}
