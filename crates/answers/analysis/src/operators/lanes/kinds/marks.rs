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

use crate::operators::lanes::cells::Cells;
use crate::operators::lanes::{Ask, Extent, Grid, Kind, Lane, Mark, Shape, Source, process_name};
use crate::operators::process_names;
use etwhy_table::Database;

/// Declaration.
pub static KIND: Kind = Kind {
    name: "marks",
    about: "marks, changes of focus, delays of user interfaces, intervals of providers, records of event logs",
    tables: &["mark", "focus", "ui_delay", "interval", "log_record"],
    open,
};

/// More intervals than these are a panel's business.
const FEW: u32 = 5_000;

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
    if let Some(cells) = Cells::of(db, "mark", ["ts_ns", "text", "upid"]) {
        let marks = (0..cells.rows()).filter_map(|row| {
            let ([ts, text, upid], row) = cells.row(row)?;
            let ts = ts.i64(row)?;
            Some(one(ts, ts, text.text(row).unwrap_or("").to_owned(), "mark", upid.i64(row)))
        });
        add("marks", "Marks", "mark", marks.collect());
    }
    if let Some(cells) = Cells::of(db, "focus", ["start_ns", "end_ns", "kind", "upid"]) {
        let marks = (0..cells.rows()).filter_map(|row| {
            let ([start, end, kind, upid], row) = cells.row(row)?;
            (kind.text(row) == Some("process")).then_some(())?;
            let upid = upid.i64(row);
            let from = start.i64(row).unwrap_or(extent.first_ns);
            Some(one(
                from,
                end.i64(row).unwrap_or(extent.end_ns),
                format!("focus: {}", who(upid)),
                "focus",
                upid,
            ))
        });
        add("focus", "Focus", "focus", marks.collect());
    }
    if let Some(cells) = Cells::of(db, "ui_delay", ["start_ns", "ts_ns", "kind", "upid", "fresh_ns"]) {
        let marks = (0..cells.rows()).filter_map(|row| {
            let ([start, end, kind, upid, fresh], row) = cells.row(row)?;
            fresh.i64(row).filter(|ns| *ns > 0)?;
            let upid = upid.i64(row);
            let text = format!("{}: {}", kind.text(row).unwrap_or("delay"), who(upid));
            Some(one(start.i64(row)?, end.i64(row)?, text, "delay", upid))
        });
        add("delays", "UI delays", "ui_delay", marks.collect());
    }
    if let Some(cells) = Cells::of(db, "interval", ["start_ns", "dur_ns", "provider", "name", "upid"])
        && cells.rows() <= FEW
    {
        let marks = (0..cells.rows()).filter_map(|row| {
            let ([start, dur, provider, name, upid], row) = cells.row(row)?;
            let from = start.i64(row)?;
            let text = format!("{}: {}", provider.text(row).unwrap_or(""), name.text(row).unwrap_or(""));
            Some(one(from, from.saturating_add(dur.i64(row)?.max(0)), text, "interval", upid.i64(row)))
        });
        add("intervals", "Intervals", "interval", marks.collect());
    }
    if let Some(cells) = Cells::of(db, "log_record", ["ts_ns", "level", "provider", "event_id", "channel"]) {
        let inside = |ts: i64| (extent.first_ns..=extent.end_ns).contains(&ts);
        let rows = || (0..cells.rows()).filter_map(|row| cells.row(row));
        let few =
            rows().filter(|([ts, ..], row)| ts.i64(*row).is_some_and(inside)).take(FEW_RECORDS + 1).count();
        let marks = rows().filter_map(|([ts, level, provider, id, channel], row)| {
            let ts = ts.i64(row).filter(|ts| inside(*ts))?;
            let level = level.i64(row).unwrap_or(0);
            (few <= FEW_RECORDS || (1..=3).contains(&level)).then_some(())?;
            let word = match level {
                1 => "critical: ",
                2 => "error: ",
                3 => "warning: ",
                _ => "",
            };
            let text = |cell: &etwhy_table::ColumnView<'_>| cell.text(row).unwrap_or("").to_owned();
            let text = format!("{word}{} {} ({})", text(provider), id.i64(row).unwrap_or(0), text(channel));
            Some(one(ts, ts, text, "log", None))
        });
        add("logs", "Event logs", "log_record", marks.collect());
    }
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
