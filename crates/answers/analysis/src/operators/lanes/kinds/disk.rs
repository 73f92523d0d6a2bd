//! Disks: how busy, how many requests under way, bytes read and written.
//!
//! # How it is computed
//!
//! A disk is busy in the service time before each completion (`service_ns`: the disk worked on nothing else), so these spans never overlap.
//! The queue is the time of all requests under way, divided by the bucket's length. Bytes count where a transfer completed.
//!
//! # What fools it
//!
//! An SSD works on many requests at once: it is busy with one of them, and can do more.

use crate::operators::lanes::cells::Cells;
use crate::operators::lanes::index::{Index, Item};
use crate::operators::lanes::spans::{named, together};
use crate::operators::lanes::{Ask, Extent, Kind, Lane, Shape, Source};
use etwhy_table::{ColumnView, Database};

/// Declaration.
pub static KIND: Kind = Kind {
    name: "disk",
    about: "how busy each disk was, requests under way, bytes read and written",
    tables: &["disk_io"],
    open,
};

struct Disk {
    busy: Index,
    queue: Index,
    bytes: Index,
}

#[derive(Clone, Copy)]
enum What {
    Busy,
    Queue,
    Bytes,
}

const COLUMNS: [&str; 7] = ["start_ns", "ts_ns", "service_ns", "op", "disk", "size_bytes", "upid"];

fn item(
    [start, ts, service, op, disk, size, _]: &[ColumnView<'_>; 7],
    row: usize,
    what: What,
) -> Option<Item> {
    let ts = ts.i64(row)?;
    let disk = disk.i32(row)?;
    Some(match what {
        What::Busy => {
            let from_ns = ts.saturating_sub(service.i64(row)?.max(0));
            Item { from_ns, to_ns: ts, key: disk, amount: 0 }
        }
        What::Queue => Item { from_ns: start.i64(row)?, to_ns: ts, key: disk, amount: 0 },
        What::Bytes => {
            let key = match op.text(row) {
                Some("read") => 0,
                Some("write") => 1,
                _ => return None,
            };
            Item {
                from_ns: ts,
                to_ns: ts,
                key: disk.checked_mul(2)?.checked_add(key)?,
                amount: size.i64(row)?,
            }
        }
    })
}

fn build(db: &Database, extent: Extent, what: What) -> Index {
    let Some(cells) = Cells::of(db, "disk_io", COLUMNS) else { return Index::default() };
    let read = |row| {
        let (views, row) = cells.row(row)?;
        item(views, row, what)
    };
    Index::build(cells.rows(), extent, |_| Some(0), read)
}

fn open(db: &Database, extent: Extent) -> Box<dyn Source> {
    Box::new(Disk {
        busy: build(db, extent, What::Busy),
        queue: build(db, extent, What::Queue),
        bytes: build(db, extent, What::Bytes),
    })
}

impl Source for Disk {
    fn draw(&self, db: &Database, ask: &Ask<'_>) -> Vec<Lane> {
        let Some(cells) = Cells::of(db, "disk_io", COLUMNS) else { return Vec::new() };
        let every_row = !ask.all_processes();
        let entries = |index: &Index, what: What| {
            let read = |row| {
                let (views, row) = cells.row(row)?;
                let wanted = !every_row || ask.wants(views.last()?.i64(row));
                wanted.then(|| item(views, row, what)).flatten()
            };
            let sums =
                index.groups.iter().map(|group| index.sum(group, &ask.grid, every_row, read, ask.given_up));
            together(sums.collect())
        };
        let (from, to) = (ask.grid.start_ns, ask.grid.end_ns);
        let only = ask.sql("upid");
        let disk = |key: i32| format!("disk {key}");
        let mut busy = Lane::new("disk", "Disk busy", "ns", Shape::Share);
        busy.id = "disk:busy".to_owned();
        busy.series = named(&entries(&self.busy, What::Busy), disk);
        busy.full = ask.grid.bucket_ns as f64 * busy.series.len().max(1) as f64;
        busy.sql = format!(
            "SELECT disk, sum(min(ts_ns, {to}) - max(ts_ns - service_ns, {from})) AS busy_ns\nFROM disk_io\nWHERE ts_ns > {from} AND ts_ns - service_ns < {to}{only}\nGROUP BY disk"
        );
        let mut queue = Lane::new("disk", "Disk queue", "ns", Shape::Stack);
        queue.id = "disk:queue".to_owned();
        queue.series = named(&entries(&self.queue, What::Queue), disk);
        queue.sql = format!(
            "SELECT disk, sum(min(ts_ns, {to}) - max(start_ns, {from})) AS request_ns, sum(min(ts_ns, {to}) - max(start_ns, {from})) * 1.0 / {} AS mean_requests\n\
             FROM disk_io\nWHERE ts_ns > {from} AND start_ns < {to}{only}\nGROUP BY disk",
            to.saturating_sub(from)
        );
        let mut bytes = Lane::new("disk", "Disk bytes", "bytes", Shape::Stack);
        bytes.id = "disk:bytes".to_owned();
        bytes.series = named(&entries(&self.bytes, What::Bytes), |key| {
            format!("disk {} {}", key >> 1, if key & 1 == 0 { "read" } else { "written" })
        });
        bytes.sql = format!(
            "SELECT disk, op, sum(size_bytes) AS bytes\nFROM disk_io\nWHERE ts_ns >= {from} AND ts_ns < {to} AND op IN ('read', 'write'){only}\nGROUP BY disk, op"
        );
        vec![busy, bytes, queue]
    }
}
