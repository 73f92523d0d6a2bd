//! `within(intervals, events, metric)`: what happened in each interval: rows and a metric of another table.
//!
//! # How it is computed
//! An interval is from `start_ns` (or its time less its duration) to its end. Events are those whose time lies in it,
//! of the same thread where both tables have one and the interval's is known. Both tables are walked in order of time,
//! so that a million samples in a thousand intervals take one pass.

use crate::cell::Cell;
use crate::function::{Args, Function, Item, Rows, column};
use etwhy_table::{ColumnType, Database, Role, Table};

/// Declaration.
pub static FUNCTION: Function = Function {
    name: "within",
    about: "Rows and a metric of one table inside the intervals of another (samples in requests, waits in hangs)",
    args: &[
        Item { name: "intervals", ty: ColumnType::Text, about: "Table with intervals: start and duration." },
        Item { name: "events", ty: ColumnType::Text, about: "Table with times." },
        Item { name: "metric", ty: ColumnType::Text, about: "Column of the events to add up." },
        Item {
            name: "same_thread",
            ty: ColumnType::I64,
            about: "1 (default): events of the interval's thread only; 0: of all.",
        },
    ],
    required: 3,
    columns: &[
        Item {
            name: "interval_row",
            ty: ColumnType::I64,
            about: "Row of the interval in its table, from 0 (its rowid).",
        },
        Item { name: "start_ns", ty: ColumnType::I64, about: "Begin, ns." },
        Item { name: "end_ns", ty: ColumnType::I64, about: "End, ns." },
        Item { name: "utid", ty: ColumnType::I64, about: "Thread of the interval, if it has one." },
        Item { name: "count", ty: ColumnType::I64, about: "Events in it." },
        Item { name: "sum", ty: ColumnType::F64, about: "Sum of the metric, in its unit." },
    ],
    run,
};

fn role(table: &Table, role: Role) -> Option<usize> {
    table.spec().columns.iter().position(|c| c.role == role)
}

fn run(db: &Database, args: &Args) -> Result<Rows, String> {
    let intervals = args.table(0, db)?;
    let events = args.table(1, db)?;
    let metric = args.column(2, events)?;
    let same = args.integer(3).unwrap_or(1) != 0;
    let none = |table: &Table, what: &str| format!("table `{}` has no {what}", table.name());
    let time = events.spec().sorted_by.as_deref().and_then(|name| events.spec().column_index(name));
    let time = time.or_else(|| role(events, Role::Time)).ok_or_else(|| none(events, "time"))?;
    let duration = column(intervals, "dur_ns")
        .or_else(|_| role(intervals, Role::Duration).ok_or_else(|| none(intervals, "duration")))?;
    let start = column(intervals, "start_ns").ok();
    let stamp = role(intervals, Role::Time).ok_or_else(|| none(intervals, "time"))?;
    let threads = (role(intervals, Role::Thread), role(events, Role::Thread));
    // Events by thread and time: sums up to each, so that an interval is a difference.
    let mut list: Vec<(i64, i64, f64)> = (0..events.rows() as u32)
        .filter_map(|row| {
            let thread = threads.1.filter(|_| same && threads.0.is_some());
            let thread = thread.map_or(-1, |column| events.cell(row, column).as_i64().unwrap_or(-1));
            let ns = events.cell(row, time).as_i64()?;
            Some((thread, ns, events.cell(row, metric).as_f64().unwrap_or(0.0)))
        })
        .collect();
    list.sort_by_key(|(thread, ns, _)| (*thread, *ns));
    let mut sums = Vec::with_capacity(list.len() + 1);
    sums.push(0.0);
    let mut total = 0.0;
    for (_, _, value) in &list {
        total += value;
        sums.push(total);
    }
    let before = |thread: i64, ns: i64| list.partition_point(|(t, n, _)| (*t, *n) < (thread, ns));
    let mut rows = Vec::new();
    for row in 0..intervals.rows() as u32 {
        let Some(dur) = intervals.cell(row, duration).as_i64() else { continue };
        let begin = match start {
            Some(start) => intervals.cell(row, start).as_i64(),
            // Without a start the time is the begin.
            None => intervals.cell(row, stamp).as_i64(),
        };
        let Some(begin) = begin else { continue };
        let end = begin.saturating_add(dur);
        let utid = threads.0.and_then(|column| intervals.cell(row, column).as_i64());
        let thread = if same && threads.0.is_some() && threads.1.is_some() { utid.unwrap_or(-2) } else { -1 };
        let (from, to) = (before(thread, begin), before(thread, end));
        let sum = sums.get(to).copied().unwrap_or(0.0) - sums.get(from).copied().unwrap_or(0.0);
        rows.push(vec![
            i64::from(row).into(),
            begin.into(),
            end.into(),
            utid.into(),
            Cell::I64(to.saturating_sub(from) as i64),
            sum.into(),
        ]);
    }
    Ok(rows)
}
