//! Operators, one file each.

pub mod activity;
pub mod among;
pub mod clr;
pub mod cpu;
pub mod critical_path;
pub mod disk;
pub mod episode;
pub mod flame;
pub mod interrupts;
pub mod lanes;
pub mod pivot;
pub mod stack_modules;
pub mod stacks;
pub mod states;
pub mod strace;
pub mod timeline;

use etwhy_table::Database;
pub use etwhy_trace::catalog::{process::ProcessRow, trace::TraceRow};

/// Adds to a sum. Durations of damaged traces may be anything, and so sums stop at the largest number.
pub(crate) fn add(sum: &mut i64, n: i64) {
    *sum = sum.saturating_add(n);
}

/// First and last moment of the trace, if it says so.
pub(crate) fn span(db: &Database) -> Option<(i64, i64)> {
    let trace = db.read_or_empty::<TraceRow>();
    Some((trace.iter().map(|row| row.first_ns()).min()?, trace.iter().map(|row| row.last_ns()).max()?))
}

/// Name and process id of each process, by `upid`.
pub fn process_names(db: &Database) -> Vec<(String, i64)> {
    db.read_or_empty::<ProcessRow>().iter().map(|row| (row.name().to_owned(), row.pid())).collect()
}
