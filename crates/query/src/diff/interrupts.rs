//! DPCs and ISRs by module: counts, totals, distributions.
//!
//! Counts and totals are the truth, means follow. The interval of the ratio of means is a bootstrap over the classes of the
//! histogram, drawn as often as there were DPCs (at most 10,000 of each).

use super::{Change, Scale, Side};
use crate::operators::for_each_batch;
use etwhy_stats::resample::Bootstrap;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What a module's DPCs or ISRs did in each trace.
#[derive(Clone, Debug, Serialize)]
pub struct Module {
    /// dpc or isr.
    pub class: String,
    /// The module.
    pub module: String,
    /// Figures in each trace.
    pub traces: Vec<Figures>,
    /// Time as share of the machine, from the first trace to each other one; the interval is that of the mean
    /// duration times that of the count.
    pub changes: Vec<Change>,
    /// Mean duration, from the first trace to each other one.
    pub mean_changes: Vec<Change>,
    /// The distribution: lower and upper end of a class in ns, and how many in each trace.
    pub histogram: Vec<Class>,
}

/// A class of durations.
#[derive(Clone, Debug, Serialize)]
pub struct Class {
    /// Longer than this, ns.
    pub above_ns: i64,
    /// Up to this, ns; none for the last class.
    pub up_to_ns: Option<i64>,
    /// How many in each trace.
    pub counts: Vec<i64>,
    /// Longer than Microsoft's limit.
    pub over_limit: bool,
    /// Sum of their durations in each trace, ns.
    pub total_ns: Vec<i64>,
}

/// Figures of one trace.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Figures {
    /// How many.
    pub count: i64,
    /// How many each second.
    pub per_second: f64,
    /// Time in all, without what interrupted them.
    pub total_ns: i64,
    /// Mean duration.
    pub mean_ns: i64,
    /// 95 % took no longer.
    pub p95_ns: i64,
    /// The longest.
    pub max_ns: i64,
    /// Longer than Microsoft's limit.
    pub over_limit: i64,
}

type Key = (String, String);

/// All modules, the most expensive first.
pub fn compare(sides: &[Side<'_>], scales: &[Scale]) -> Vec<Module> {
    let figures: Vec<BTreeMap<Key, Figures>> =
        sides.iter().zip(scales).map(|(s, scale)| read(s, scale)).collect();
    let keys: BTreeSet<&Key> = figures.iter().flat_map(BTreeMap::keys).collect();
    let histograms: Vec<_> = sides.iter().map(histogram).collect();
    let mut all = Vec::new();
    for key in keys {
        let traces: Vec<Figures> = figures.iter().map(|f| f.get(key).copied().unwrap_or_default()).collect();
        let classes = classes(&histograms, key);
        let draws: Vec<Vec<f64>> = (0..sides.len()).map(|side| values(&classes, side)).collect();
        let base = traces.first().copied().unwrap_or_default();
        let (mut changes, mut mean_changes) = (Vec::new(), Vec::new());
        for (side, after) in traces.iter().enumerate().skip(1) {
            let interval = draws.first().zip(draws.get(side)).and_then(|(before, after)| {
                Bootstrap { draws: 300, ..Bootstrap::default() }.ratio_of_means(before, after)
            });
            mean_changes.push(Change::new(base.mean_ns as f64, after.mean_ns as f64, interval));
            let share =
                |f: &Figures, side: usize| scales.get(side).map_or(0.0, |s| s.share(f.total_ns as f64));
            let rates = if base.per_second > 0.0 { after.per_second / base.per_second } else { 0.0 };
            let whole = interval.map(|i| etwhy_stats::Interval {
                value: i.value * rates,
                low: i.low * rates,
                high: i.high * rates,
            });
            changes.push(Change::new(share(&base, 0), share(after, side), whole));
        }
        let (class, module) = key.clone();
        all.push(Module { class, module, traces, changes, mean_changes, histogram: classes });
    }
    let cost = |m: &Module| m.traces.iter().map(|t| t.total_ns).max().unwrap_or(0);
    all.sort_by(|a, b| cost(b).cmp(&cost(a)).then_with(|| a.module.cmp(&b.module)));
    all.truncate(20);
    all
}

fn read(side: &Side<'_>, scale: &Scale) -> BTreeMap<Key, Figures> {
    let mut found = BTreeMap::new();
    let Some(table) = side.db.get("interrupt_cost") else { return found };
    for row in 0..table.rows() as u32 {
        let number = |column: &str| table.i64(row, column).unwrap_or(0);
        let text = |column: &str| table.text(row, column).unwrap_or("").to_owned();
        if text("level") != "module" {
            continue;
        }
        let figures = Figures {
            count: number("count"),
            per_second: scale.rate(number("count") as f64),
            total_ns: number("exclusive_ns"),
            mean_ns: number("mean_ns"),
            p95_ns: number("p95_ns"),
            max_ns: number("max_ns"),
            over_limit: number("over_limit"),
        };
        found.insert((text("class"), text("module")), figures);
    }
    found
}

/// Ends, count, sum of durations and whether over the limit, by module.
type Histogram = BTreeMap<Key, Vec<(i64, Option<i64>, i64, i64, bool)>>;

fn histogram(side: &Side<'_>) -> Histogram {
    let mut found = Histogram::new();
    let columns = ["class", "module", "above_ns", "up_to_ns", "count", "total_ns", "over_limit"];
    for_each_batch(
        side.db,
        "dpc_histogram",
        columns,
        |rows, [class, module, above, up_to, count, total, over]| {
            for row in 0..rows {
                // Rows without a module are those of all together.
                let (Some(class), Some(module)) = (class.text(row), module.text(row)) else { continue };
                let get = |view: &etwhy_table::ColumnView<'_>| view.i64(row).unwrap_or(0);
                let line =
                    (get(&above), up_to.i64(row), get(&count), get(&total), over.bool(row).unwrap_or(false));
                found.entry((class.to_owned(), module.to_owned())).or_default().push(line);
            }
        },
    );
    found
}

fn classes(histograms: &[Histogram], key: &Key) -> Vec<Class> {
    let mut classes: BTreeMap<i64, Class> = BTreeMap::new();
    for (side, histogram) in histograms.iter().enumerate() {
        for (above, up_to, count, total, over_limit) in histogram.get(key).map_or(&[][..], Vec::as_slice) {
            let class = classes.entry(*above).or_insert_with(|| Class {
                above_ns: *above,
                up_to_ns: *up_to,
                counts: vec![0; histograms.len()],
                over_limit: *over_limit,
                total_ns: vec![0; histograms.len()],
            });
            if let Some(ns) = class.total_ns.get_mut(side) {
                *ns = ns.saturating_add(*total);
            }
            if let Some(n) = class.counts.get_mut(side) {
                *n = n.saturating_add(*count);
            }
        }
    }
    classes.into_values().collect()
}

/// Durations as the classes tell them, thinned to at most 10,000.
fn values(classes: &[Class], side: usize) -> Vec<f64> {
    let count = |class: &Class| class.counts.get(side).copied().unwrap_or(0).max(0);
    let all: i64 = classes.iter().map(count).fold(0, i64::saturating_add);
    let thin = (all / 10_000).max(1);
    let mut values = Vec::new();
    for class in classes {
        // All of a class count as its mean, so that the mean of the whole is exact.
        let total = class.total_ns.get(side).copied().unwrap_or(0);
        let mean = total as f64 / count(class).max(1) as f64;
        let n = (count(class) + thin / 2) / thin;
        values.extend(std::iter::repeat_n(mean, usize::try_from(n).unwrap_or(0)));
    }
    values
}
