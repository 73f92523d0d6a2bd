//! Operators, one file each.

pub mod activity;
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

pub use etwhy_table::for_each_batch;

use etwhy_table::Database;

/// Adds to a sum. Durations of damaged traces may be anything, and so sums stop at the largest number.
pub(crate) fn add(sum: &mut i64, n: i64) {
    *sum = sum.saturating_add(n);
}

/// Name and process id of each process, by `upid`.
pub fn process_names(db: &Database) -> Vec<(String, i64)> {
    let mut names = Vec::new();
    for_each_batch(db, "process", ["name", "pid"], |rows, [name, pid]| {
        for row in 0..rows {
            names.push((name.text(row).unwrap_or("[unknown]").to_owned(), pid.i64(row).unwrap_or(-1)));
        }
    });
    names
}
