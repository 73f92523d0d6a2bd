//! Memory: commit charge and available memory of the machine, or what processes have committed.
//!
//! # How it is computed
//!
//! The last row of `memory_counter` before the end of each bucket; without any, that of `process_memory` for the processes with the most
//! committed memory.
//!
//! # What fools it
//!
//! Counters are read twice a second at best: shorter peaks do not show.

use crate::operators::lanes::counter::Counter;
use crate::operators::lanes::{Ask, Band, Extent, Kind, Lane, Series, Shape, Source, process_name};
use crate::operators::process_names;
use etwhy_table::Database;
use etwhy_trace::catalog::memory_counter::{MemoryCounterRow, ProcessMemoryRow};
use foldhash::HashMap;

/// Declaration.
pub static KIND: Kind = Kind {
    name: "memory",
    about: "commit charge and available memory, or memory that processes committed",
    tables: &["memory_counter", "process_memory"],
    open,
};

/// Processes that have lines.
const TOP: usize = 6;

struct Memory {
    machine: Vec<(&'static str, &'static str, Counter)>,
    processes: Vec<(i64, String, Counter)>,
}

fn open(db: &Database, _: Extent) -> Box<dyn Source> {
    let mut machine =
        [("committed", "commit_bytes"), ("available", "available_bytes"), ("modified", "modified_bytes")]
            .map(|(name, column)| (name, column, Vec::new()));
    for row in &db.read_or_empty::<MemoryCounterRow>() {
        let values = [row.commit_bytes(), Some(row.available_bytes()), Some(row.modified_bytes())];
        for ((.., points), value) in machine.iter_mut().zip(values) {
            points.extend(value.map(|value| (row.ts_ns(), value as f64)));
        }
    }
    let machine = machine.into_iter().filter(|(.., points)| !points.is_empty());
    let machine = machine.map(|(name, column, points)| (name, column, Counter::new(points)));
    let mut by: HashMap<i64, Vec<(i64, f64)>> = HashMap::default();
    for row in &db.read_or_empty::<ProcessMemoryRow>() {
        if let Some(value) = row.commit_bytes() {
            by.entry(row.upid()).or_default().push((row.ts_ns(), value as f64));
        }
    }
    let most = |points: &[(i64, f64)]| points.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let mut list: Vec<(i64, Vec<(i64, f64)>)> = by.into_iter().collect();
    list.sort_by(|a, b| most(&b.1).total_cmp(&most(&a.1)).then(a.0.cmp(&b.0)));
    let names = process_names(db);
    let processes =
        list.into_iter().map(|(upid, points)| (upid, process_name(&names, upid), Counter::new(points)));
    Box::new(Memory { machine: machine.collect(), processes: processes.collect() })
}

/// Levels have a largest one instead of a sum.
pub(super) fn level(band: Band, name: impl Into<String>, values: Vec<(u32, f64)>) -> Series {
    let total = values.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    Series { band, name: name.into(), upid: None, total, values }
}

impl Source for Memory {
    fn draw(&self, _: &Database, ask: &Ask<'_>) -> Vec<Lane> {
        let to = ask.grid.end_ns;
        let mut lane = Lane::new("memory", "Memory", "bytes", Shape::Level);
        if self.machine.is_empty() || ask.named().next().is_some() {
            let wanted = self.processes.iter().filter(|(upid, _, _)| ask.wants(Some(*upid))).take(TOP);
            lane.series.extend(wanted.map(|(upid, name, counter)| Series {
                upid: Some(*upid),
                ..level(Band::Process, name.clone(), counter.draw(&ask.grid))
            }));
            lane.sql = format!(
                "SELECT p.name, p.pid, m.commit_bytes, max(m.ts_ns) AS ts_ns\nFROM process_memory m JOIN process p USING (upid)\nWHERE m.ts_ns < {to} AND m.commit_bytes IS NOT NULL{}\nGROUP BY upid ORDER BY m.commit_bytes DESC LIMIT {TOP}",
                ask.sql("m.upid")
            );
        } else {
            lane.series.extend(
                self.machine
                    .iter()
                    .map(|(name, _, counter)| level(Band::Plain, *name, counter.draw(&ask.grid))),
            );
            let columns: Vec<&str> = self.machine.iter().map(|(_, column, _)| *column).collect();
            lane.sql = format!(
                "SELECT ts_ns, {} FROM memory_counter WHERE ts_ns < {to} ORDER BY ts_ns DESC LIMIT 1",
                columns.join(", ")
            );
        }
        vec![lane]
    }
}
