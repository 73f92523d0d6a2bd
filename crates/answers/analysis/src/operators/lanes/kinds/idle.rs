//! Idle states of processors: how long all of them together were in each.
//!
//! # How it is computed
//!
//! Rows of `idle_state` with a length, cut at the borders of buckets, by the state that was asked for.
//!
//! # What fools it
//!
//! The firmware may have used another state than the one that Windows asked for.

use crate::operators::lanes::cells::Cells;
use crate::operators::lanes::index::{Index, Item};
use crate::operators::lanes::spans::{named, together};
use crate::operators::lanes::{Ask, Extent, Kind, Lane, Shape, Source};
use etwhy_table::{ColumnView, Database};

/// Declaration.
pub static KIND: Kind =
    Kind { name: "idle", about: "idle states of processors", tables: &["idle_state"], open };

struct Idle(Index);

const COLUMNS: [&str; 4] = ["start_ns", "dur_ns", "state", "cpu"];

fn item([start, dur, state, _]: &[ColumnView<'_>; 4], row: usize) -> Option<Item> {
    let from_ns = start.i64(row)?;
    let to_ns = from_ns.saturating_add(dur.i64(row)?.max(0));
    Some(Item { from_ns, to_ns, key: state.i32(row)?, amount: 0 })
}

fn open(db: &Database, extent: Extent) -> Box<dyn Source> {
    let Some(cells) = Cells::of(db, "idle_state", COLUMNS) else { return Box::new(Idle(Index::default())) };
    let read = |row| cells.row(row).and_then(|(views, row)| item(views, row));
    let cpu = |row| cells.row(row).and_then(|(views, row)| views.last()?.i64(row));
    Box::new(Idle(Index::build(cells.rows(), extent, cpu, read)))
}

impl Source for Idle {
    fn draw(&self, db: &Database, ask: &Ask<'_>) -> Vec<Lane> {
        let Some(cells) = Cells::of(db, "idle_state", COLUMNS) else { return Vec::new() };
        let read = |row| cells.row(row).and_then(|(views, row)| item(views, row));
        let wanted: Vec<_> = self.0.groups.iter().filter(|group| ask.wants_cpu(group.id)).collect();
        let sums = wanted.iter().map(|group| self.0.sum(group, &ask.grid, false, read, ask.given_up));
        let entries = together(sums.collect());
        let (from, to) = (ask.grid.start_ns, ask.grid.end_ns);
        let mut lane = Lane::new("idle", "Idle states", "ns", Shape::Share);
        lane.full = ask.grid.bucket_ns as f64 * wanted.len().max(1) as f64;
        lane.series = named(&entries, |state| format!("state {state}"));
        lane.sql = format!(
            "SELECT state, sum(min(start_ns + dur_ns, {to}) - max(start_ns, {from})) AS idle_ns\nFROM idle_state\nWHERE start_ns < {to} AND start_ns + dur_ns > {from}\nGROUP BY state"
        );
        vec![lane]
    }
}
