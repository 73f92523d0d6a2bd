//! Network: bytes sent and received, where the events stand.
//!
//! # How it is computed
//!
//! `op=send` and `op=receive` of the table `network`, TCP and UDP together.
//!
//! # What fools it
//!
//! Retransmissions are not counted as sent again. Loopback traffic counts on both sides.

use crate::operators::lanes::cells::Cells;
use crate::operators::lanes::index::{Index, Item};
use crate::operators::lanes::spans::named;
use crate::operators::lanes::{Ask, Extent, Kind, Lane, Shape, Source};
use etwhy_table::{ColumnView, Database};

/// Declaration.
pub static KIND: Kind =
    Kind { name: "network", about: "bytes sent and received", tables: &["network"], open };

struct Network(Index);

const COLUMNS: [&str; 4] = ["ts_ns", "op", "size_bytes", "upid"];

fn item([ts, op, size, _]: &[ColumnView<'_>; 4], row: usize) -> Option<Item> {
    let key = match op.text(row)? {
        "receive" => 0,
        "send" => 1,
        _ => return None,
    };
    let ts = ts.i64(row)?;
    Some(Item { from_ns: ts, to_ns: ts, key, amount: size.i64(row)? })
}

fn open(db: &Database, extent: Extent) -> Box<dyn Source> {
    let Some(cells) = Cells::of(db, "network", COLUMNS) else { return Box::new(Network(Index::default())) };
    let read = |row| cells.row(row).and_then(|(views, row)| item(views, row));
    Box::new(Network(Index::build(cells.rows(), extent, |_| Some(0), read)))
}

impl Source for Network {
    fn draw(&self, db: &Database, ask: &Ask<'_>) -> Vec<Lane> {
        let Some(cells) = Cells::of(db, "network", COLUMNS) else { return Vec::new() };
        let Some(group) = self.0.groups.first() else { return Vec::new() };
        let every_row = !ask.all_processes();
        let read = |row| {
            let (views, row) = cells.row(row)?;
            let wanted = !every_row || ask.wants(views.last()?.i64(row));
            wanted.then(|| item(views, row)).flatten()
        };
        let entries = self.0.sum(group, &ask.grid, every_row, read, ask.given_up);
        let mut lane = Lane::new("network", "Network bytes", "bytes", Shape::Stack);
        lane.series = named(&entries, |key| if key == 0 { "received" } else { "sent" }.to_owned());
        lane.sql = format!(
            "SELECT op, sum(size_bytes) AS bytes\nFROM network\nWHERE ts_ns >= {} AND ts_ns < {} AND op IN ('send', 'receive'){}\nGROUP BY op",
            ask.grid.start_ns,
            ask.grid.end_ns,
            ask.sql("upid")
        );
        vec![lane]
    }
}
