//! Processes, drivers, modules and functions: what they cost before and after.
//!
//! # How it is computed
//!
//! Times come from samples (`function_cost`, `module_cost`, `driver_cost`, `process_slice`) and are divided by the observed time of the
//! processors. A sample is one piece (`Measured`). Load comes in bursts: by the slices of `process_slice` the pieces of a process
//! are made larger until they explain how much it varied over time; those of drivers, modules and functions are as large as those of
//! the processes on whose threads they ran.

use super::change::{Change, Measured};
use super::scale::{Observed, Scale, Side};
use super::verdicts::UNKNOWN;
use etwhy_analysis::derived::process_slice::ProcessSliceRow;
use etwhy_analysis::fold::driver_cost::DriverCostRow;
use etwhy_analysis::fold::function_cost::FunctionCostRow;
use etwhy_analysis::fold::module_cost::ModuleCostRow;
use etwhy_analysis::operators::process_names;
use etwhy_stats::dispersion::dispersion;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use ts_rs::TS;

/// Something that used the processor.
#[derive(Clone, Debug, Serialize, TS)]
#[ts(rename = "DiffEntity")]
pub struct Entity {
    /// process, driver, module or function.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// CPU time in each trace.
    pub cpu_ns: Vec<i64>,
    /// The same as share of the observed time of the processors.
    pub share: Vec<f64>,
    /// From the first trace to each other one.
    pub changes: Vec<Change>,
}

impl Entity {
    /// The largest change of the share of the machine.
    pub fn weight(&self) -> f64 {
        self.changes.iter().map(|c| (c.per_second.after - c.per_second.before).abs()).fold(0.0, f64::max)
    }
}

/// Least share of the machine that an entity must have had in one of the traces.
const LEAST_SHARE: f64 = 0.001;
/// Most entities of a kind.
const MOST: usize = 50;

/// CPU time of a name, and the same times the dispersion of the processes that it ran for.
#[derive(Clone, Copy, Default)]
pub(crate) struct Cost {
    /// Nanoseconds.
    pub ns: f64,
    spread: f64,
}

/// By name.
pub(crate) type Costs = BTreeMap<String, Cost>;

/// All kinds, those that changed most first. None if one of the traces has no CPU samples: then nobody took less.
pub fn compare(sides: &[Side<'_>], scales: &[Scale]) -> Vec<Entity> {
    if !scales.iter().all(|scale| scale.has_samples) {
        return Vec::new();
    }
    let sides: Vec<_> = sides.iter().zip(scales).map(|(side, scale)| costs(side, scale)).collect();
    let kinds = ["process", "driver", "module", "function"].into_iter().enumerate();
    kinds
        .flat_map(|(at, kind)| {
            let costs: Vec<&Costs> =
                sides.iter().filter_map(|kinds| kinds.get(at)).map(|(_, costs)| costs).collect();
            compared(kind, &costs, scales)
        })
        .collect()
}

/// What each process, driver, module and function took, in this order of kinds.
pub(crate) fn costs(side: &Side<'_>, scale: &Scale) -> [(&'static str, Costs); 4] {
    let spreads = Spreads::of(side, scale);
    let rows = side.db.read_or_empty::<DriverCostRow>();
    let drivers =
        by_name(&spreads, rows.iter().map(|row| (row.driver(), row.charged_ns(), row.class(), row.upid())));
    let rows = side.db.read_or_empty::<ModuleCostRow>();
    let modules =
        by_name(&spreads, rows.iter().map(|row| (row.module(), row.exclusive_ns(), row.class(), row.upid())));
    let rows = side.db.read_or_empty::<FunctionCostRow>();
    let functions = by_name(
        &spreads,
        rows.iter().map(|row| (row.function(), row.exclusive_ns(), row.class(), row.upid())),
    );
    [("process", spreads.costs), ("driver", drivers), ("module", modules), ("function", functions)]
}

/// How much the load of each process varied over time.
struct Spreads {
    /// By name of the process.
    costs: Costs,
    names: Vec<(String, i64)>,
}

const INTERRUPTS: &str = "[DPC and ISR]";

impl Spreads {
    fn of(side: &Side<'_>, scale: &Scale) -> Spreads {
        let cost = |(name, values): (String, Vec<f64>)| {
            let ns: f64 = values.iter().sum();
            (name, Cost { ns, spread: ns * dispersion(&values, scale.sample_interval_ns as f64) })
        };
        Spreads { costs: process_slices(side).into_iter().map(cost).collect(), names: process_names(side.db) }
    }

    /// The dispersion of a process.
    fn factor(&self, class: &str, upid: Option<i64>) -> f64 {
        let name = if matches!(class, "dpc" | "isr") {
            Some(INTERRUPTS)
        } else {
            let number = upid.and_then(|upid| usize::try_from(upid).ok());
            number.and_then(|upid| self.names.get(upid)).map(|(name, _)| name.as_str())
        };
        let cost = name.and_then(|name| self.costs.get(name));
        cost.filter(|cost| cost.ns > 0.0).map_or(1.0, |cost| cost.spread / cost.ns)
    }
}

/// Sums of a table of costs: name, nanoseconds, class and process of each row.
fn by_name<'a>(
    spreads: &Spreads,
    rows: impl Iterator<Item = (Option<&'a str>, i64, &'a str, Option<i64>)>,
) -> Costs {
    let mut costs = Costs::new();
    for (name, ns, class, upid) in rows {
        let Some(name) = name else { continue };
        let sum = costs.entry(name.to_owned()).or_default();
        sum.ns += ns as f64;
        sum.spread += ns as f64 * spreads.factor(class, upid);
    }
    costs
}

/// CPU time of each process name in each slice; slices without it are 0.
fn process_slices(side: &Side<'_>) -> BTreeMap<String, Vec<f64>> {
    let names = process_names(side.db);
    let slices = side.db.read_or_empty::<ProcessSliceRow>();
    let starts: BTreeSet<i64> = slices.iter().map(|row| row.start_ns()).collect();
    let places: BTreeMap<i64, usize> =
        starts.into_iter().enumerate().map(|(at, start)| (start, at)).collect();
    let mut found: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for row in &slices {
        let name = match row.class() {
            "thread" => {
                let number = row.upid().and_then(|u| usize::try_from(u).ok());
                number.and_then(|u| names.get(u)).map(|(name, _)| name.clone())
            }
            // Idle time is nobody's.
            "dpc" | "isr" => Some(INTERRUPTS.to_owned()),
            _ => None,
        };
        let place = places.get(&row.start_ns()).copied();
        let (Some(name), Some(place)) = (name, place) else { continue };
        let values = found.entry(name).or_insert_with(|| vec![0.0; places.len()]);
        if let Some(value) = values.get_mut(place) {
            *value += row.cpu_ns() as f64;
        }
    }
    found
}

/// The module of `module!function`.
fn module_of(name: &str) -> &str {
    name.split_once('!').map_or(name, |(module, _)| module)
}

/// Modules of whose functions none has a name.
fn nameless(costs: &Costs) -> BTreeSet<&str> {
    let mut named: BTreeMap<&str, bool> = BTreeMap::new();
    for name in costs.keys() {
        let function = name.split_once('!').map_or("", |(_, function)| function);
        *named.entry(module_of(name)).or_default() |= !matches!(function, "" | "?");
    }
    named.into_iter().filter(|(_, any)| !any).map(|(module, _)| module).collect()
}

fn compared(kind: &'static str, costs: &[&Costs], scales: &[Scale]) -> Vec<Entity> {
    let names: BTreeSet<&String> = costs.iter().flat_map(|costs| costs.keys()).collect();
    let of = |name: &str| -> Vec<Cost> {
        costs.iter().map(|costs| costs.get(name).copied().unwrap_or_default()).collect()
    };
    let shares = |own: &[Cost]| -> Vec<f64> {
        own.iter().zip(scales).map(|(cost, scale)| scale.share(cost.ns)).collect()
    };
    let nameless: Vec<BTreeSet<&str>> = costs.iter().map(|costs| nameless(costs)).collect();
    let large: Vec<&String> = names
        .into_iter()
        .filter(|name| shares(&of(name)).iter().any(|share| *share >= LEAST_SHARE))
        // Functions that have names in one of the traces only are no less there in the other.
        .filter(|name| {
            kind != "function" || !nameless.iter().any(|modules| modules.contains(module_of(name)))
        })
        .collect();
    let mut all = Vec::new();
    for name in &large {
        let own = of(name);
        let measured: Vec<Measured> = own
            .iter()
            .zip(scales)
            .map(|(cost, scale)| {
                let factor = if cost.ns > 0.0 { cost.spread / cost.ns } else { 1.0 };
                Measured::new(cost.ns, factor * scale.sample_interval_ns as f64, scale.capacity_ns as f64)
            })
            .collect();
        let Some(((base, others), first)) = measured.split_first().zip(scales.first()) else { continue };
        all.push(Entity {
            kind,
            name: (*name).clone(),
            cpu_ns: own.iter().map(|cost| cost.ns as i64).collect(),
            share: shares(&own),
            changes: others
                .iter()
                .zip(own.iter().zip(scales).skip(1))
                .map(|(after, (cost, scale))| {
                    let change = base.change(after, large.len());
                    let lost = first.loss_explains(
                        Observed::Samples,
                        own.first().map_or(0.0, |cost| cost.ns),
                        scale,
                        cost.ns,
                    );
                    // What has no name is nobody: a trace whose names are lost has more of it, and whose it is may be in the other.
                    let nobody = name.starts_with(UNKNOWN);
                    if lost || nobody { change.undecided() } else { change }
                })
                .collect(),
        });
    }
    all.sort_by(|a, b| b.weight().total_cmp(&a.weight()).then_with(|| a.name.cmp(&b.name)));
    all.truncate(MOST);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_table::Database;

    #[test]
    fn time_of_nobody_is_not_new() {
        let db = Database::new();
        let blank = Scale::read(&Side { label: String::new(), db: &db, findings: &[] });
        let scale = Scale { cpus: 4, capacity_ns: 40_000_000_000, ..blank };
        let costs = |names: &[(&str, f64)]| -> Costs {
            names.iter().map(|(name, ns)| ((*name).to_owned(), Cost { ns: *ns, spread: *ns })).collect()
        };
        let before = costs(&[("cl.exe", 9e9)]);
        let after = costs(&[("cl.exe", 9e9), ("[unknown]", 5e9), ("new.exe", 5e9)]);
        let all = compared("process", &[&before, &after], &[scale.clone(), scale]);
        let what =
            |name: &str| all.iter().find(|e| e.name == name).map(|e| e.changes.first().map(|c| c.what));
        assert_eq!(what("new.exe"), Some(Some("new")));
        assert_eq!(what("[unknown]"), Some(Some("chance")));
    }
}
