//! Whether counters of memory and handles grow over a counter log.
//!
//! # How it is computed
//!
//! From `counter_slice`: Mann and Kendall's test and Theil and Sen's slope over the means of the slices, which neither single peaks
//! nor the shape of the growth disturb. At least eight slices.
//!
//! # What fools it
//!
//! A program that starts grows; so does a cache until it is full. `second_half_rise` tells: a leak grows on.

use crate::derive::DerivedSpec;
use crate::fold::freeze_plain;
use etwhy_counters::tables::{CounterRow, CounterSliceRow};
use etwhy_stats::rank::mann_kendall;
use etwhy_table::{Database, Memory, Strings, Table, TableBuilder, define_table, reads};
use std::collections::{BTreeMap, BTreeSet};

define_table! {
    /// Growth of counters of memory and handles, of those with at least eight slices of time.
    pub table COUNTER_TREND: CounterTrendRow = "counter_trend" {
        version: 1,
        /// The counter, as in `counter`.
        counter: i32 [None, Id],
        /// Slices of time with values.
        slices: i64 [Count, Count],
        /// From the begin of the first to the end of the last.
        dur_ns: i64 [Ns, Duration],
        /// Kendall's tau: -1 always falls, 1 always rises.
        tau: f64 [None, Other],
        /// Probability of a trend as clear by chance.
        p: f64 [None, Other],
        /// Theil and Sen's slope, per hour.
        slope_per_hour: f64 [None, Other],
        /// Mean of the first quarter of the slices.
        first_value: f64 [None, Other],
        /// Mean of the last quarter of the slices.
        last_value: f64 [None, Other],
        /// Last less first.
        rise: f64 [None, Other],
        /// Last quarter less third quarter: what still grows at the end.
        late_rise: f64 [None, Other],
    }
}

/// Declaration.
pub static DERIVED: DerivedSpec = DerivedSpec {
    tables: &[&COUNTER_TREND],
    reads: reads::<(CounterRow, CounterSliceRow)>,
    on_demand: true,
    make,
};

/// Slices below which nothing is said.
const LEAST: usize = 8;

/// Counters that should not grow for ever.
const GROWING: [&str; 11] = [
    "Handle Count",
    "Pool Nonpaged Bytes",
    "Pool Paged Bytes",
    "Private Bytes",
    "Virtual Bytes",
    "Working Set",
    "Working Set - Private",
    "Thread Count",
    "Committed Bytes",
    "% Committed Bytes In Use",
    "% Usage",
];

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    let counters = db.read_or_empty::<CounterRow>();
    let growing = counters.iter().filter(|row| row.name_en().is_some_and(|name| GROWING.contains(&name)));
    let wanted: BTreeSet<i64> = growing.map(|row| row.counter()).collect();
    let mut points: BTreeMap<i64, Vec<(i64, i64, f64)>> = BTreeMap::new();
    for row in &db.read_or_empty::<CounterSliceRow>() {
        if !wanted.contains(&row.counter()) {
            continue;
        }
        let point = (row.utc_ns(), row.dur_ns(), row.mean_value());
        points.entry(row.counter()).or_default().push(point);
    }
    let mut rows = TableBuilder::<CounterTrendRow>::new(memory);
    for (counter, mut points) in points {
        points.sort_by_key(|point| point.0);
        let (Some(first), Some(last)) = (points.first().copied(), points.last().copied()) else { continue };
        let hours = |point: &(i64, i64, f64)| point.0.saturating_sub(first.0) as f64 / 3.6e12;
        let line: Vec<(f64, f64)> = points.iter().map(|point| (hours(point), point.2)).collect();
        let Some(trend) = mann_kendall(&line).filter(|_| line.len() >= LEAST) else { continue };
        let quarter = line.len() / 4;
        let mean_of = |from: usize, to: usize| {
            let part = line.get(from..to).unwrap_or(&[]);
            part.iter().map(|point| point.1).sum::<f64>() / part.len().max(1) as f64
        };
        let (begin, end) = (mean_of(0, quarter), mean_of(line.len() - quarter, line.len()));
        let before = mean_of(line.len() - 2 * quarter, line.len() - quarter);
        rows.push(CounterTrendRow {
            counter: i32::try_from(counter).unwrap_or(-1),
            slices: line.len() as i64,
            dur_ns: last.0.saturating_add(last.1).saturating_sub(first.0),
            tau: trend.tau,
            p: trend.p,
            slope_per_hour: trend.slope,
            first_value: begin,
            last_value: end,
            rise: end - begin,
            late_rise: end - before,
        });
    }
    Ok(vec![rows.finish(&freeze_plain(Strings::new())?)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::tests::table;
    use etwhy_table::Value;

    #[test]
    fn what_grows_and_what_does_not() {
        let hour = 3_600_000_000_000i64;
        let mut slices = Vec::new();
        for n in 0..16i64 {
            let values =
                [(0, 100.0 + 10.0 * n as f64), (1, if n % 2 == 0 { 5.0 } else { 6.0 }), (2, n as f64)];
            for (counter, value) in values {
                slices.push(vec![
                    Value::I64(counter),
                    Value::I64(n * hour),
                    Value::I64(hour),
                    Value::F64(value),
                ]);
            }
            if n < 7 {
                slices.push(vec![
                    Value::I64(3),
                    Value::I64(n * hour),
                    Value::I64(hour),
                    Value::F64(n as f64),
                ]);
            }
        }
        let mut db = Database::new();
        let counter = |n, name| vec![Value::I64(n), Value::Text(name)];
        let counters = [
            counter(0, "Handle Count"),
            counter(1, "Private Bytes"),
            counter(2, "% Processor Time"),
            counter(3, "Handle Count"),
        ];
        db.insert(table("counter", "counter name_en", &counters));
        db.insert(table("counter_slice", "counter utc_ns dur_ns mean_value", &slices));
        let made = make(&db, &Memory::default()).unwrap();
        let trend = &made[0];
        assert_eq!(trend.rows(), 2);
        let figures = ["tau", "slope_per_hour", "first_value", "last_value", "rise", "late_rise"]
            .map(|c| trend.f64(0, c).unwrap());
        // First four: 100 to 130; last four: 220 to 250; the four before: 180 to 210.
        assert_eq!(figures, [1.0, 10.0, 115.0, 235.0, 120.0, 40.0]);
        assert!(trend.f64(0, "p").unwrap() < 0.001 && trend.f64(1, "p").unwrap() > 0.3);
        assert_eq!(trend.i64(0, "dur_ns"), Some(16 * hour));
    }
}
