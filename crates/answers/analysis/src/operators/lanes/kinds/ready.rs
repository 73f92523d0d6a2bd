//! Threads that were ready and had no processor: their mean number.
//!
//! # How it is computed
//!
//! A thread is ready in the `ready_ns` before it is switched in. The time of all of them in a bucket, divided by the bucket's length, is the
//! mean length of the queue.
//!
//! # What fools it
//!
//! Without `ReadyThread` only preempted threads are known to be ready.

use crate::operators::lanes::cells::Cells;
use crate::operators::lanes::index::{Index, Item};
use crate::operators::lanes::spans::named;
use crate::operators::lanes::{Ask, Extent, Kind, Lane, Shape, Source};
use etwhy_table::{ColumnView, Database};

/// Declaration.
pub static KIND: Kind =
    Kind { name: "ready", about: "threads that were ready and had no processor", tables: &["cswitch"], open };

struct Ready(Index);

const COLUMNS: [&str; 3] = ["ts_ns", "ready_ns", "new_upid"];

fn item([ts, ready, _]: &[ColumnView<'_>; 3], row: usize) -> Option<Item> {
    let to_ns = ts.i64(row)?;
    let ready = ready.i64(row).filter(|ns| *ns > 0)?;
    Some(Item { from_ns: to_ns.saturating_sub(ready), to_ns, key: 0, amount: 0 })
}

fn open(db: &Database, extent: Extent) -> Box<dyn Source> {
    let Some(cells) = Cells::of(db, "cswitch", COLUMNS) else { return Box::new(Ready(Index::default())) };
    let read = |row| cells.row(row).and_then(|(views, row)| item(views, row));
    Box::new(Ready(Index::build(cells.rows(), extent, |_| Some(0), read)))
}

impl Source for Ready {
    fn draw(&self, db: &Database, ask: &Ask<'_>) -> Vec<Lane> {
        let Some(cells) = Cells::of(db, "cswitch", COLUMNS) else { return Vec::new() };
        let Some(group) = self.0.groups.first() else { return Vec::new() };
        let every_row = !ask.all_processes();
        let read = |row| {
            let (views, row) = cells.row(row)?;
            let wanted = !every_row || ask.wants(views.last()?.i64(row));
            wanted.then(|| item(views, row)).flatten()
        };
        let entries = self.0.sum(group, &ask.grid, every_row, read, ask.given_up);
        let (from, to) = (ask.grid.start_ns, ask.grid.end_ns);
        let mut lane = Lane::new("ready", "Ready threads", "ns", Shape::Stack);
        lane.series = named(&entries, |_| "ready and waiting for a processor".to_owned());
        lane.sql = format!(
            "SELECT sum(min(ts_ns, {to}) - max(ts_ns - ready_ns, {from})) AS ready_ns, sum(min(ts_ns, {to}) - max(ts_ns - ready_ns, {from})) * 1.0 / {} AS mean_threads\n\
             FROM cswitch\nWHERE ready_ns > 0 AND ts_ns > {from} AND ts_ns - ready_ns < {to}{}",
            to.saturating_sub(from),
            ask.sql("new_upid")
        );
        vec![lane]
    }
}
