//! Hard page faults: how many began.
//!
//! # How it is computed
//!
//! Rows of `hard_fault` by `start_ns`.
//!
//! # What fools it
//!
//! One fault can read one page or many.

use crate::operators::lanes::cells::Cells;
use crate::operators::lanes::index::{Index, Item};
use crate::operators::lanes::spans::named;
use crate::operators::lanes::{Ask, Extent, Kind, Lane, Shape, Source};
use etwhy_table::Database;

/// Declaration.
pub static KIND: Kind = Kind {
    name: "faults",
    about: "hard page faults: memory that came from disk",
    tables: &["hard_fault"],
    open,
};

struct Faults(Index);

const COLUMNS: [&str; 2] = ["start_ns", "upid"];

fn open(db: &Database, extent: Extent) -> Box<dyn Source> {
    let Some(cells) = Cells::of(db, "hard_fault", COLUMNS) else { return Box::new(Faults(Index::default())) };
    let read = |row| {
        let ([start, _], row) = cells.row(row)?;
        let from_ns = start.i64(row)?;
        Some(Item { from_ns, to_ns: from_ns, key: 0, amount: 1 })
    };
    Box::new(Faults(Index::build(cells.rows(), extent, |_| Some(0), read)))
}

impl Source for Faults {
    fn draw(&self, db: &Database, ask: &Ask<'_>) -> Vec<Lane> {
        let Some(cells) = Cells::of(db, "hard_fault", COLUMNS) else { return Vec::new() };
        let Some(group) = self.0.groups.first() else { return Vec::new() };
        let every_row = !ask.all_processes();
        let read = |row| {
            let ([start, upid], row) = cells.row(row)?;
            let from_ns = start.i64(row)?;
            let wanted = !every_row || ask.wants(upid.i64(row));
            wanted.then_some(Item { from_ns, to_ns: from_ns, key: 0, amount: 1 })
        };
        let entries = self.0.sum(group, &ask.grid, every_row, read, ask.given_up);
        let mut lane = Lane::new("faults", "Hard faults", "count", Shape::Stack);
        lane.series = named(&entries, |_| "hard page faults".to_owned());
        lane.sql = format!(
            "SELECT count(*) AS faults FROM hard_fault WHERE start_ns >= {} AND start_ns < {}{}",
            ask.grid.start_ns,
            ask.grid.end_ns,
            ask.sql("upid")
        );
        vec![lane]
    }
}
