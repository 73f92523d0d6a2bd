//! Frequency of processors, as it was set or delivered.
//!
//! # How it is computed
//!
//! The last row of `cpu_frequency` with a speed before the end of each bucket, by processor; with many processors the lowest, mean and highest
//! of them. Without MHz, percent of the nominal speed.
//!
//! # What fools it
//!
//! What was set is not what was delivered: firmware can throttle without a word.

use super::memory::level;
use crate::operators::lanes::counter::Counter;
use crate::operators::lanes::{Ask, Band, Extent, Kind, Lane, Shape, Source};
use etwhy_table::Database;
use etwhy_trace::catalog::cpu_frequency::CpuFrequencyRow;
use std::collections::BTreeMap;

/// Declaration.
pub static KIND: Kind =
    Kind { name: "frequency", about: "frequency of processors", tables: &["cpu_frequency"], open };

/// Processors that have lines of their own.
const FEW: usize = 8;

struct Frequency {
    mhz: bool,
    cpus: BTreeMap<i64, Counter>,
}

fn open(db: &Database, _: Extent) -> Box<dyn Source> {
    let mut found: [BTreeMap<i64, Vec<(i64, f64)>>; 2] = Default::default();
    for row in &db.read_or_empty::<CpuFrequencyRow>() {
        let Some(cpu) = row.cpu().filter(|_| matches!(row.kind(), "change" | "rundown" | "delivered")) else {
            continue;
        };
        for (list, value) in found.iter_mut().zip([row.mhz(), row.percent()]) {
            list.entry(cpu).or_default().extend(value.map(|value| (row.ts_ns(), value as f64)));
        }
    }
    let [mhz, percent] = found;
    let has = |list: &BTreeMap<i64, Vec<(i64, f64)>>| list.values().any(|points| !points.is_empty());
    let (in_mhz, list) = if has(&mhz) { (true, mhz) } else { (false, percent) };
    let cpus = list.into_iter().filter(|(_, points)| !points.is_empty());
    Box::new(Frequency { mhz: in_mhz, cpus: cpus.map(|(cpu, points)| (cpu, Counter::new(points))).collect() })
}

impl Source for Frequency {
    fn draw(&self, _: &Database, ask: &Ask<'_>) -> Vec<Lane> {
        let (unit, column) = if self.mhz { ("mhz", "mhz") } else { ("percent", "percent") };
        let mut lane = Lane::new("frequency", "Frequency", unit, Shape::Level);
        let wanted: Vec<_> = self.cpus.iter().filter(|(cpu, _)| ask.wants_cpu(**cpu)).collect();
        let levels: Vec<Vec<(u32, f64)>> =
            wanted.iter().map(|(_, counter)| counter.draw(&ask.grid)).collect();
        if levels.len() <= FEW {
            let lines = wanted.iter().zip(levels);
            lane.series
                .extend(lines.map(|((cpu, _), values)| level(Band::Plain, format!("CPU {cpu}"), values)));
        } else {
            let mut by: BTreeMap<u32, (f64, f64, f64, f64)> = BTreeMap::new();
            for (bucket, value) in levels.into_iter().flatten() {
                let (least, sum, count, most) = by.entry(bucket).or_insert((f64::MAX, 0.0, 0.0, 0.0));
                *least = least.min(value);
                *sum += value;
                *count += 1.0;
                *most = most.max(value);
            }
            let pick = |name: &str, of: fn(&(f64, f64, f64, f64)) -> f64| {
                level(Band::Plain, name, by.iter().map(|(bucket, all)| (*bucket, of(all))).collect())
            };
            lane.series.push(pick("highest", |all| all.3));
            lane.series.push(pick("mean", |all| all.1 / all.2.max(1.0)));
            lane.series.push(pick("lowest", |all| all.0));
        }
        lane.sql = format!(
            "SELECT cpu, {column}, max(ts_ns) AS ts_ns\nFROM cpu_frequency\nWHERE ts_ns < {} AND kind IN ('change', 'rundown', 'delivered') AND {column} IS NOT NULL\nGROUP BY cpu",
            ask.grid.end_ns
        );
        vec![lane]
    }
}
