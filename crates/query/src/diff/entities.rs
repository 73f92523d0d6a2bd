//! Processes, drivers, modules and functions: what they cost before and after.
//!
//! # How it is computed
//!
//! Times come from samples (`function_cost`, `module_cost`, `driver_cost`, `process_slice`) and are divided by the
//! machine's time. The interval of a ratio is that of a bootstrap over slices of the trace for processes, whose
//! load comes in bursts; for functions and drivers that of two sample counts (a sample is one draw of the timer).
//! With many entities some differ by chance, so the confidence grows with their number (Bonferroni).

use super::{Change, Scale, Side};
use crate::operators::{for_each_batch, process_names};
use etwhy_stats::rate;
use etwhy_stats::resample::Bootstrap;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Something that used the processor.
#[derive(Clone, Debug, Serialize)]
pub struct Entity {
    /// process, driver, module or function.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// CPU time in each trace.
    pub cpu_ns: Vec<i64>,
    /// The same as share of the machine's time.
    pub share: Vec<f64>,
    /// From the first trace to each other one.
    pub changes: Vec<Change>,
}

impl Entity {
    /// The largest change of the share of the machine.
    pub fn weight(&self) -> f64 {
        self.changes.iter().map(|c| (c.after - c.before).abs()).fold(0.0, f64::max)
    }
}

/// Least share of the machine that an entity must have had in one of the traces.
const LEAST_SHARE: f64 = 0.001;
/// Most entities of a kind.
const MOST: usize = 50;

type Costs = BTreeMap<String, i64>;

/// All kinds, those that changed most first.
pub fn compare(sides: &[Side<'_>], scales: &[Scale]) -> Vec<Entity> {
    let mut all = Vec::new();
    for (kind, table, name, cost) in [
        ("driver", "driver_cost", "driver", "charged_ns"),
        ("module", "module_cost", "module", "exclusive_ns"),
        ("function", "function_cost", "function", "exclusive_ns"),
    ] {
        let costs: Vec<Costs> = sides.iter().map(|side| by_name(side, table, name, cost)).collect();
        all.extend(compared(kind, &costs, scales, |name, side| {
            interval_of_counts(&costs, scales, name, side)
        }));
    }
    let slices: Vec<BTreeMap<String, Vec<f64>>> = sides.iter().map(|side| process_slices(side)).collect();
    let sum = |slices: &BTreeMap<String, Vec<f64>>| -> Costs {
        slices.iter().map(|(name, values)| (name.clone(), values.iter().sum::<f64>() as i64)).collect()
    };
    let costs: Vec<Costs> = slices.iter().map(sum).collect();
    let mut processes = compared("process", &costs, scales, |name, side| {
        let per_slice = |side: usize| -> Option<Vec<f64>> {
            let (slices, scale) = (slices.get(side)?, scales.get(side)?);
            let values = slices.get(name)?;
            let capacity = scale.capacity_ns as f64 / values.len().max(1) as f64;
            Some(values.iter().map(|v| v / capacity).collect())
        };
        Bootstrap::default().ratio_of_means(&per_slice(0)?, &per_slice(side)?)
    });
    processes.extend(all);
    processes
}

fn by_name(side: &Side<'_>, table: &str, name: &str, cost: &str) -> Costs {
    let mut costs = Costs::new();
    for_each_batch(side.db, table, [name, cost], |rows, [name, cost]| {
        for row in 0..rows {
            let (Some(name), Some(ns)) = (name.text(row), cost.i64(row)) else { continue };
            let sum = costs.entry(name.to_owned()).or_insert(0);
            *sum = sum.saturating_add(ns);
        }
    });
    costs
}

/// CPU time of each process name in each slice; slices without it are 0.
fn process_slices(side: &Side<'_>) -> BTreeMap<String, Vec<f64>> {
    let names = process_names(side.db);
    let mut starts = BTreeSet::new();
    for_each_batch(side.db, "process_slice", ["start_ns"], |rows, [start]| {
        starts.extend((0..rows).filter_map(|row| start.i64(row)));
    });
    let places: BTreeMap<i64, usize> =
        starts.into_iter().enumerate().map(|(at, start)| (start, at)).collect();
    let mut slices: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let columns = ["start_ns", "upid", "class", "cpu_ns"];
    for_each_batch(side.db, "process_slice", columns, |rows, [start, upid, class, cpu]| {
        for row in 0..rows {
            let name = match class.text(row) {
                Some("thread") => {
                    let number = upid.i64(row).and_then(|u| usize::try_from(u).ok());
                    number.and_then(|u| names.get(u)).map(|(name, _)| name.clone())
                }
                // Idle time is nobody's.
                Some("dpc" | "isr") => Some("[DPC and ISR]".to_owned()),
                _ => None,
            };
            let place = start.i64(row).and_then(|s| places.get(&s).copied());
            let (Some(name), Some(place)) = (name, place) else { continue };
            let values = slices.entry(name).or_insert_with(|| vec![0.0; places.len()]);
            if let Some(value) = values.get_mut(place) {
                *value += cpu.i64(row).unwrap_or(0) as f64;
            }
        }
    });
    slices
}

fn interval_of_counts(
    costs: &[Costs],
    scales: &[Scale],
    name: &str,
    side: usize,
) -> Option<etwhy_stats::Interval> {
    let tests: usize = costs.iter().map(BTreeMap::len).max().unwrap_or(1).min(MOST);
    let count = |at: usize| -> Option<(f64, f64)> {
        let scale = scales.get(at)?;
        let interval = scale.sample_interval_ns.max(1) as f64;
        let ns = costs.get(at)?.get(name).copied().unwrap_or(0);
        Some((ns as f64 / interval, scale.capacity_ns as f64 / interval))
    };
    rate::ratio(count(0)?, count(side)?, 1.0 - 0.05 / tests.max(1) as f64)
}

fn compared(
    kind: &'static str,
    costs: &[Costs],
    scales: &[Scale],
    interval: impl Fn(&str, usize) -> Option<etwhy_stats::Interval>,
) -> Vec<Entity> {
    let names: BTreeSet<&String> = costs.iter().flat_map(BTreeMap::keys).collect();
    let mut all = Vec::new();
    for name in names {
        let cpu_ns: Vec<i64> = costs.iter().map(|c| c.get(name).copied().unwrap_or(0)).collect();
        let share: Vec<f64> = cpu_ns.iter().zip(scales).map(|(ns, scale)| scale.share(*ns as f64)).collect();
        if share.iter().all(|share| *share < LEAST_SHARE) {
            continue;
        }
        let base = share.first().copied().unwrap_or(0.0);
        let change = |(side, share): (usize, &f64)| Change::new(base, *share, interval(name, side));
        let changes = share.iter().enumerate().skip(1).map(change).collect();
        all.push(Entity { kind, name: name.clone(), cpu_ns, share, changes });
    }
    all.sort_by(|a, b| b.weight().total_cmp(&a.weight()).then_with(|| a.name.cmp(&b.name)));
    all.truncate(MOST);
    all
}
