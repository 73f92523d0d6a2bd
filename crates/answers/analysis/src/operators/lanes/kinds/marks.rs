//! Single things: marks, who had the focus, delays of user interfaces, intervals of providers if they are few, and records of event
//! logs: all if they are few, else critical ones, errors and warnings.
//!
//! # How it is computed
//!
//! Rows of `mark`, `focus`, `ui_delay` and `interval` that reach into the range; things of one lane that begin in the same bucket are
//! one mark with a count and the longest one's text.
//!
//! # What fools it
//!
//! A delay that had begun before the trace starts with the trace.

use crate::operators::lanes::{Ask, Extent, Grid, Kind, Lane, Mark, Shape, Source, process_name};
use crate::operators::process_names;
use etwhy_evtx::tables::LogRecordRow;
use etwhy_table::Database;
use etwhy_trace::catalog::{
    interval::IntervalRow,
    mark::MarkRow,
    ui_delay::{FocusRow, UiDelayRow},
};

/// Declaration.
pub static KIND: Kind = Kind {
    name: "marks",
    about: "marks, changes of focus, delays of user interfaces, intervals of providers, records of event logs",
    tables: &["mark", "focus", "ui_delay", "interval", "log_record"],
    open,
};

/// More intervals than these are a panel's business.
const FEW: usize = 5_000;

/// Records of event logs within a trace that are shown whatever their level.
const FEW_RECORDS: usize = 500;

struct Marks(Vec<(&'static str, &'static str, &'static str, Vec<Mark>)>);

fn open(db: &Database, extent: Extent) -> Box<dyn Source> {
    let names = process_names(db);
    let who =
        |upid: Option<i64>| upid.map_or_else(|| "[unknown]".to_owned(), |upid| process_name(&names, upid));
    let mut lanes = Vec::new();
    let mut add = |id, title, table, mut marks: Vec<Mark>| {
        marks.sort_by_key(|mark| (mark.from_ns, mark.to_ns));
        if !marks.is_empty() {
            lanes.push((id, title, table, marks));
        }
    };
    let one = |from_ns: i64, to_ns: i64, text: String, what, upid| Mark {
        from_ns: from_ns.max(extent.first_ns),
        to_ns: to_ns.min(extent.end_ns).max(from_ns.max(extent.first_ns)),
        text,
        what,
        upid,
        count: 1,
    };
    let rows = db.read_or_empty::<MarkRow>();
    let marks =
        rows.iter().map(|row| one(row.ts_ns(), row.ts_ns(), row.text().to_owned(), "mark", row.upid()));
    add("marks", "Marks", "mark", marks.collect());
    let rows = db.read_or_empty::<FocusRow>();
    let marks = rows.iter().filter(|row| row.kind() == "process").map(|row| {
        let (from, to) = (row.start_ns().unwrap_or(extent.first_ns), row.end_ns().unwrap_or(extent.end_ns));
        one(from, to, format!("focus: {}", who(row.upid())), "focus", row.upid())
    });
    add("focus", "Focus", "focus", marks.collect());
    let rows = db.read_or_empty::<UiDelayRow>();
    let marks = rows.iter().filter(|row| row.fresh_ns() > 0).map(|row| {
        let text = format!("{}: {}", row.kind(), who(row.upid()));
        one(row.start_ns(), row.ts_ns(), text, "delay", row.upid())
    });
    add("delays", "UI delays", "ui_delay", marks.collect());
    let rows = db.read_or_empty::<IntervalRow>();
    if rows.len() <= FEW {
        let marks = rows.iter().filter_map(|row| {
            let (from, dur) = (row.start_ns()?, row.dur_ns()?.max(0));
            let text = format!("{}: {}", row.provider(), row.name());
            Some(one(from, from.saturating_add(dur), text, "interval", row.upid()))
        });
        add("intervals", "Intervals", "interval", marks.collect());
    }
    let records = db.read_or_empty::<LogRecordRow>();
    let inside = || records.iter().filter(|row| (extent.first_ns..=extent.end_ns).contains(&row.ts_ns()));
    let few = inside().take(FEW_RECORDS + 1).count() <= FEW_RECORDS;
    let marks = inside().filter(|row| few || (1..=3).contains(&row.level())).map(|row| {
        let word = match row.level() {
            1 => "critical: ",
            2 => "error: ",
            3 => "warning: ",
            _ => "",
        };
        let text = format!("{word}{} {} ({})", row.provider(), row.event_id(), row.channel());
        one(row.ts_ns(), row.ts_ns(), text, "log", None)
    });
    add("logs", "Event logs", "log_record", marks.collect());
    Box::new(Marks(lanes))
}

/// Marks of a range; those that begin in the same bucket are one.
fn thinned<'a>(marks: impl Iterator<Item = &'a Mark>, grid: &Grid) -> Vec<Mark> {
    let mut out: Vec<Mark> = Vec::new();
    for mark in marks {
        let near = out.last_mut().filter(|last| {
            mark.from_ns.saturating_sub(last.from_ns) < grid.bucket_ns && last.what == mark.what
        });
        match near {
            Some(last) => {
                if mark.to_ns.saturating_sub(mark.from_ns) > last.to_ns.saturating_sub(last.from_ns) {
                    last.text.clone_from(&mark.text);
                    last.upid = mark.upid;
                }
                last.to_ns = last.to_ns.max(mark.to_ns);
                last.count = last.count.saturating_add(1);
            }
            None => out.push(mark.clone()),
        }
    }
    out
}

impl Source for Marks {
    fn draw(&self, _: &Database, ask: &Ask<'_>) -> Vec<Lane> {
        let (from, to) = (ask.grid.start_ns, ask.grid.end_ns);
        let lanes = self.0.iter().map(|(id, title, table, marks)| {
            let mut lane = Lane::new("marks", *title, "", Shape::Marks);
            lane.id = (*id).to_owned();
            let seen =
                marks.iter().filter(|mark| mark.from_ns < to && (mark.to_ns > from || mark.from_ns >= from));
            lane.marks = thinned(seen.filter(|mark| mark.upid.is_none() || ask.wants(mark.upid)), &ask.grid);
            let (start, end) = match *table {
                "mark" | "log_record" => ("ts_ns", "ts_ns"),
                "focus" => ("coalesce(start_ns, 0)", "coalesce(end_ns, start_ns, 0)"),
                _ => ("start_ns", "coalesce(ts_ns, start_ns)"),
            };
            lane.sql = format!("SELECT * FROM {table} WHERE {start} < {to} AND {end} >= {from}");
            lane
        });
        lanes.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_together_is_one() {
        let mark = |from_ns, to_ns, text: &str| Mark {
            from_ns,
            to_ns,
            text: text.to_owned(),
            what: "mark",
            upid: None,
            count: 1,
        };
        let list = [mark(0, 0, "a"), mark(5, 25, "b"), mark(14, 15, "c")];
        let grid = Grid::plain(0, 10, 4);
        let made = thinned(list.iter(), &grid);
        assert_eq!(made, [Mark { count: 2, ..mark(0, 25, "b") }, mark(14, 15, "c")]);
    }
}
