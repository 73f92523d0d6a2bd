//! DPCs and ISRs by module: counts, totals, distributions.
//!
//! Counts and totals are the truth, means follow. A DPC is one piece of the total (`Measured`): how many there are varies by chance, and
//! how long they take, so the size of a piece is the sum of squares of the durations divided by their sum (from the classes of
//! `dpc_histogram`). How much larger bursts make it is taken from all DPCs or ISRs over time (`cpu_time`).

use super::change::{Change, Measured, Ratio};
use super::scale::{Observed, Scale, Side};
use etwhy_stats::Interval;
use etwhy_stats::dispersion::dispersion;
use etwhy_stats::normal::quantile;
use etwhy_trace::catalog::{
    cpu_time::CpuTimeRow,
    interrupt_cost::{DpcHistogramRow, InterruptCostRow},
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use ts_rs::TS;

/// What a module's DPCs or ISRs did in each trace.
#[derive(Clone, Debug, Serialize, TS)]
#[ts(rename = "DiffInterrupts")]
pub struct Module {
    /// dpc or isr.
    pub class: String,
    /// The module.
    pub module: String,
    /// Figures in each trace.
    pub traces: Vec<Figures>,
    /// Time as share of what was observed, from the first trace to each other one.
    pub changes: Vec<Change>,
    /// Mean duration, from the first trace to each other one.
    pub mean_changes: Vec<Change>,
    /// The distribution: lower and upper end of a class in ns, and how many in each trace.
    pub histogram: Vec<Class>,
}

/// A class of durations.
#[derive(Clone, Debug, Serialize, TS)]
#[ts(rename = "DiffClass")]
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
#[derive(Clone, Copy, Debug, Default, Serialize, TS)]
#[ts(rename = "DiffFigures")]
pub struct Figures {
    /// How many.
    pub count: i64,
    /// How many each second in which they were observed.
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
    let bursts: Vec<Bursts> = sides.iter().map(Bursts::read).collect();
    let tests = keys.len();
    let mut all = Vec::new();
    for key in keys {
        // What one of the traces did not record is neither gone nor new.
        let class = if key.0 == "isr" { "INTERRUPT" } else { "DPC" };
        if !scales.iter().all(|scale| scale.classes.contains(class)) {
            continue;
        }
        let traces: Vec<Figures> = figures.iter().map(|f| f.get(key).copied().unwrap_or_default()).collect();
        let classes = classes(&histograms, key);
        let each: Vec<Pieces> = (0..sides.len()).map(|side| Pieces::of(&classes, side)).collect();
        let all_of: Vec<Pieces> =
            histograms.iter().map(|histogram| Pieces::of_class(histogram, &key.0)).collect();
        let parts: Vec<(Measured, f64)> = (0..sides.len())
            .filter_map(|side| {
                let (own, all) = (each.get(side)?, all_of.get(side)?);
                let factor = bursts.get(side)?.factor(&key.0, all.piece());
                let total = traces.get(side)?.total_ns as f64;
                let exposure = scales.get(side)?.event_capacity_ns as f64;
                Some((Measured::new(total, factor * own.piece(), exposure), factor * own.variance_of_mean()))
            })
            .collect();
        let (mut changes, mut mean_changes) = (Vec::new(), Vec::new());
        if let Some(((base, spread), (first, others))) = parts.first().zip(traces.split_first()) {
            for ((after, (measured, other)), scale) in
                others.iter().zip(parts.iter().skip(1)).zip(scales.iter().skip(1))
            {
                let change = base.change(measured, tests);
                let lost = scales.first().is_some_and(|own| {
                    own.loss_explains(Observed::Kernel, first.total_ns as f64, scale, after.total_ns as f64)
                });
                changes.push(if lost { change.undecided() } else { change });
                let (a, b) = (first.mean_ns as f64, after.mean_ns as f64);
                let interval = ratio_of_means(a, b, spread + other, tests);
                // The long ones may be among what was lost.
                let mean = Change::new(Ratio::new(a, b, interval), None);
                mean_changes.push(if lost { mean.undecided() } else { mean });
            }
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
    for row in side.db.read_or_empty::<InterruptCostRow>().iter().filter(|row| row.level() == "module") {
        let figures = Figures {
            count: row.count(),
            per_second: scale.event_rate(row.count() as f64),
            total_ns: row.exclusive_ns(),
            mean_ns: row.mean_ns(),
            p95_ns: row.p95_ns(),
            max_ns: row.max_ns(),
            over_limit: row.over_limit(),
        };
        found.insert((row.class().to_owned(), row.module().unwrap_or("").to_owned()), figures);
    }
    found
}

/// Ends, count, sum of durations and whether over the limit, by module.
type Histogram = BTreeMap<Key, Vec<(i64, Option<i64>, i64, i64, bool)>>;

fn histogram(side: &Side<'_>) -> Histogram {
    let mut found = Histogram::new();
    for row in &side.db.read_or_empty::<DpcHistogramRow>() {
        // Rows without a module are those of all together.
        let Some(module) = row.module() else { continue };
        let line = (row.above_ns(), row.up_to_ns(), row.count(), row.total_ns(), row.over_limit());
        found.entry((row.class().to_owned(), module.to_owned())).or_default().push(line);
    }
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

/// The interval of a ratio of means whose logarithm has this variance.
fn ratio_of_means(before: f64, after: f64, variance: f64, tests: usize) -> Option<Interval> {
    if !(before > 0.0 && after > 0.0 && variance.is_finite()) {
        return None;
    }
    let half = quantile(1.0 - 0.025 / tests.max(1) as f64) * variance.sqrt();
    let value = after / before;
    Some(Interval { value, low: value * (-half).exp(), high: value * half.exp() })
}

/// Durations as their classes tell them.
#[derive(Clone, Copy, Debug, Default)]
struct Pieces {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Pieces {
    fn add(&mut self, above_ns: i64, up_to_ns: Option<i64>, count: i64, total_ns: i64) {
        let (count, total) = (count.max(0) as f64, total_ns.max(0) as f64);
        if count <= 0.0 {
            return;
        }
        let mean = total / count;
        // Within a class they lie anywhere; the last one has no end.
        let width = up_to_ns.map_or(mean, |up| up.saturating_sub(above_ns).max(0) as f64);
        self.count += count;
        self.sum += total;
        self.squares += count * (mean * mean + width * width / 12.0);
    }

    fn of(classes: &[Class], side: usize) -> Pieces {
        let mut pieces = Pieces::default();
        for class in classes {
            let at = |list: &[i64]| list.get(side).copied().unwrap_or(0);
            pieces.add(class.above_ns, class.up_to_ns, at(&class.counts), at(&class.total_ns));
        }
        pieces
    }

    /// Those of all modules.
    fn of_class(histogram: &Histogram, class: &str) -> Pieces {
        let mut pieces = Pieces::default();
        for (_, lines) in histogram.iter().filter(|((of, _), _)| of == class) {
            for &(above, up_to, count, total, _) in lines {
                pieces.add(above, up_to, count, total);
            }
        }
        pieces
    }

    /// Size of a piece of the sum.
    fn piece(&self) -> f64 {
        if self.sum > 0.0 { self.squares / self.sum } else { 0.0 }
    }

    /// Relative variance of the mean.
    fn variance_of_mean(&self) -> f64 {
        let own = self.squares * self.count / (self.sum * self.sum) - 1.0;
        if own.is_finite() && self.count > 0.0 { own.max(0.0) / self.count } else { f64::INFINITY }
    }
}

/// Time of all DPCs and ISRs in slices of the trace.
#[derive(Default)]
struct Bursts {
    dpc: BTreeMap<i64, f64>,
    isr: BTreeMap<i64, f64>,
}

impl Bursts {
    fn read(side: &Side<'_>) -> Bursts {
        let mut out = Bursts::default();
        for row in &side.db.read_or_empty::<CpuTimeRow>() {
            let start = row.start_ns();
            for (sums, ns) in [(&mut out.dpc, row.dpc_ns()), (&mut out.isr, row.isr_ns())] {
                *sums.entry(start).or_default() += ns.max(0) as f64;
            }
        }
        out
    }

    /// How much larger than single events the pieces are that these came in.
    fn factor(&self, class: &str, piece: f64) -> f64 {
        let sums = if class == "isr" { &self.isr } else { &self.dpc };
        dispersion(&sums.values().copied().collect::<Vec<f64>>(), piece)
    }
}
