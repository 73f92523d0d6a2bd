//! Durations of DPCs and ISRs.

use etwhy_table::Database;
use etwhy_trace::catalog::interrupt_cost::DpcHistogramRow;
use serde::Serialize;
use std::collections::BTreeMap;

/// Microsoft's limits: WDK, "Example 15: Measuring DPC/ISR Time".
const LIMITS: [(&str, i64); 2] = [("dpc", 100_000), ("isr", 25_000)];
const LIMIT_SOURCE: &str =
    "Microsoft, Windows Driver Kit, \u{201c}Example 15: Measuring DPC/ISR Time\u{201d}";

/// Durations of the DPCs or ISRs of a driver in classes.
#[derive(Clone, Debug, Serialize)]
pub struct DurationHistogram {
    /// dpc or isr.
    pub class: String,
    /// Driver; null for all together.
    pub module: Option<String>,
    /// None should take longer.
    pub limit_ns: i64,
    /// Who says so.
    pub limit_source: &'static str,
    /// How many there were.
    pub count: i64,
    /// Their time.
    pub total_ns: i64,
    /// How many took longer than the limit.
    pub over_limit: i64,
    /// Time of those.
    pub over_limit_ns: i64,
    /// Classes by duration, without empty ones at both ends.
    pub bins: Vec<Bin>,
}

/// A class of durations.
#[derive(Clone, Debug, Serialize)]
pub struct Bin {
    /// Durations above this.
    pub above_ns: i64,
    /// Durations up to this; null in the last class.
    pub up_to_ns: Option<i64>,
    /// How many.
    pub count: i64,
    /// Their time.
    pub total_ns: i64,
    /// The class lies above the limit.
    pub over_limit: bool,
}

/// The histograms of all drivers, and of the `drivers` with the most time over the limit, then the most time.
pub(super) fn read(db: &Database, drivers: usize) -> Vec<DurationHistogram> {
    let mut by: BTreeMap<(String, Option<String>), Vec<Bin>> = BTreeMap::new();
    for row in &db.read_or_empty::<DpcHistogramRow>() {
        let key = (row.class().to_owned(), row.module().map(str::to_owned));
        by.entry(key).or_default().push(Bin {
            above_ns: row.above_ns(),
            up_to_ns: row.up_to_ns(),
            count: row.count(),
            total_ns: row.total_ns(),
            over_limit: row.over_limit(),
        });
    }
    let mut all: Vec<DurationHistogram> = by.into_iter().filter_map(|(key, bins)| one(key, bins)).collect();
    all.sort_by(|a, b| {
        a.module
            .is_some()
            .cmp(&b.module.is_some())
            .then(b.over_limit_ns.cmp(&a.over_limit_ns))
            .then(b.total_ns.cmp(&a.total_ns))
            .then_with(|| (&a.class, &a.module).cmp(&(&b.class, &b.module)))
    });
    let together = all.iter().filter(|h| h.module.is_none()).count();
    all.truncate(together.saturating_add(drivers));
    all
}

fn one((class, module): (String, Option<String>), mut bins: Vec<Bin>) -> Option<DurationHistogram> {
    bins.sort_by_key(|bin| bin.above_ns);
    let first = bins.iter().position(|bin| bin.count > 0)?;
    let last = bins.iter().rposition(|bin| bin.count > 0)?;
    let bins: Vec<Bin> = bins.drain(first..=last).collect();
    let sum = |over: bool, of: fn(&Bin) -> i64| {
        bins.iter().filter(|bin| !over || bin.over_limit).fold(0i64, |sum, bin| sum.saturating_add(of(bin)))
    };
    let limit_ns = LIMITS.iter().find(|(name, _)| *name == class).map_or(0, |(_, limit)| *limit);
    Some(DurationHistogram {
        limit_ns,
        limit_source: LIMIT_SOURCE,
        count: sum(false, |bin| bin.count),
        total_ns: sum(false, |bin| bin.total_ns),
        over_limit: sum(true, |bin| bin.count),
        over_limit_ns: sum(true, |bin| bin.total_ns),
        class,
        module,
        bins,
    })
}
