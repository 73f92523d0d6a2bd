//! CPU time by process over time, idle time included: what a timeline draws.
//!
//! # How it is computed
//!
//! From `sample`: the trace is cut into equal slices and the weight of each sample is added to that of its moment. DPCs and
//! ISRs are a series of their own, as in the verdict. `capacity_ns` of a slice is processors times its length: what is
//! neither busy nor idle was not sampled.
//!
//! # What fools it
//!
//! Samples stand for the interval *before* them, so the border of a slice is blurred by one interval. Lost buffers look like
//! time that was not sampled.

use super::cpu::DPC_ISR;
use super::{add, for_each_batch, process_names};
use etwhy_table::Database;
use foldhash::HashMap;
use serde::Serialize;

/// CPU time in slices.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Timeline {
    /// Length of a slice; the last one may be shorter.
    pub slice_ns: i64,
    /// End of the last slice.
    pub end_ns: i64,
    /// Processors.
    pub cpus: i64,
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

/// At most `slices` slices, and the `top` processes by name. `None` without samples.
pub fn timeline(db: &Database, slices: usize, top: usize) -> Option<Timeline> {
    let (mut end_ns, mut cpus) = (0i64, 0i64);
    for_each_batch(db, "trace", ["duration_ns", "cpus"], |rows, [duration, count]| {
        for row in 0..rows {
            end_ns = end_ns.max(duration.i64(row).unwrap_or(0));
            cpus = cpus.max(count.i64(row).unwrap_or(0));
        }
    });
    let slices = i64::try_from(slices).unwrap_or(1).max(1);
    if end_ns <= 0 {
        return None;
    }
    let slice_ns = end_ns / slices + i64::from(end_ns % slices > 0);
    let count = usize::try_from(end_ns / slice_ns + i64::from(end_ns % slice_ns > 0)).unwrap_or(1);
    let names = process_names(db);
    let mut by: HashMap<i64, Vec<i64>> = HashMap::default();
    let columns = ["ts_ns", "cpu", "upid", "weight_ns", "in_dpc", "in_isr"];
    for_each_batch(db, "sample", columns, |rows, [ts, cpu, upid, weight, dpc, isr]| {
        for row in 0..rows {
            let interrupt = dpc.bool(row) == Some(true) || isr.bool(row) == Some(true);
            let upid = if interrupt { DPC_ISR.1 } else { upid.i64(row).unwrap_or(-1) };
            cpus = cpus.max(cpu.i64(row).unwrap_or(0).saturating_add(1));
            let at = usize::try_from(ts.i64(row).unwrap_or(0) / slice_ns).unwrap_or(0).min(count - 1);
            if let Some(sum) = by.entry(upid).or_insert_with(|| vec![0; count]).get_mut(at) {
                add(sum, weight.i64(row).unwrap_or(0));
            }
        }
    });
    if by.is_empty() {
        return None;
    }
    Some(Timeline { slice_ns, end_ns, cpus, series: bands(by, &names, count, top) })
}

fn bands(by: HashMap<i64, Vec<i64>>, names: &[(String, i64)], count: usize, top: usize) -> Vec<Series> {
    let new =
        |name: &str, kind| Series { name: name.to_owned(), kind, total_ns: 0, values_ns: vec![0; count] };
    let mut other = new("other processes", "other");
    let mut interrupt = new(DPC_ISR.0, "interrupt");
    let mut idle = new("idle", "idle");
    let mut processes = Vec::new();
    for (upid, values_ns) in by {
        let known = usize::try_from(upid).ok().and_then(|p| names.get(p));
        let total_ns = values_ns.iter().fold(0i64, |sum, n| sum.saturating_add(*n));
        let of = match known {
            Some((_, 0)) => &mut idle,
            _ if upid == DPC_ISR.1 => &mut interrupt,
            Some((name, pid)) => {
                let name = format!("{name} ({pid})");
                processes.push((upid, Series { name, kind: "process", total_ns, values_ns }));
                continue;
            }
            None => &mut other,
        };
        merge(of, &values_ns);
    }
    processes.sort_by(|a, b| b.1.total_ns.cmp(&a.1.total_ns).then(a.0.cmp(&b.0)));
    for (_, rest) in processes.iter().skip(top) {
        merge(&mut other, &rest.values_ns);
    }
    let mut out: Vec<Series> = processes.into_iter().take(top).map(|p| p.1).collect();
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

    #[test]
    fn bands_are_ranked_and_the_rest_is_one() {
        let names: Vec<(String, i64)> =
            [("Idle", 0), ("a.exe", 4), ("b.exe", 8), ("c.exe", 12)].map(|(n, p)| (n.to_owned(), p)).into();
        let by =
            [(0, vec![5, 0]), (1, vec![1, 2]), (2, vec![4, 4]), (3, vec![0, 2]), (DPC_ISR.1, vec![0, 1])];
        let series = bands(by.into_iter().collect(), &names, 2, 1);
        let shown: Vec<(&str, &str, i64, &[i64])> =
            series.iter().map(|s| (s.name.as_str(), s.kind, s.total_ns, s.values_ns.as_slice())).collect();
        assert_eq!(
            shown,
            [
                ("b.exe (8)", "process", 8, &[4, 4][..]),
                ("other processes", "other", 5, &[1, 4]),
                ("[DPC and ISR]", "interrupt", 1, &[0, 1]),
                ("idle", "idle", 5, &[5, 0]),
            ]
        );
    }

    #[test]
    fn nothing_makes_no_timeline() {
        assert!(timeline(&Database::new(), 200, 8).is_none());
    }
}
