//! Operators, one file each.

pub mod clr;
pub mod cpu;
pub mod critical_path;
pub mod disk;
pub mod flame;
pub mod stack_modules;
pub mod stacks;
pub mod strace;
pub mod timeline;

use etwhy_table::{ColumnView, Database, Table};

/// Views of the columns `names` of a table, batch by batch, handed to `each` with the number of rows.
/// Nothing happens if the table or a column is missing.
pub fn for_each_batch<const N: usize>(
    db: &Database,
    table: &str,
    names: [&str; N],
    mut each: impl FnMut(usize, [ColumnView<'_>; N]),
) {
    let Some(table) = db.get(table) else { return };
    let Some(columns) = column_numbers(table, names) else { return };
    for (batch, rows) in table.batches().iter().map(|b| b.num_rows()).enumerate() {
        each(rows, columns.map(|column| table.view(batch, column)));
    }
}

/// Adds to a sum. Durations of damaged traces may be anything, and so sums stop at the largest number.
pub(crate) fn add(sum: &mut i64, n: i64) {
    *sum = sum.saturating_add(n);
}

fn column_numbers<const N: usize>(table: &Table, names: [&str; N]) -> Option<[usize; N]> {
    let mut numbers = [0; N];
    for (number, name) in numbers.iter_mut().zip(names) {
        *number = table.spec().column_index(name)?;
    }
    Some(numbers)
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
