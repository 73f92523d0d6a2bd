//! `time_buckets(table, metric, width_ns, key)`: a metric over time, in slices of equal width.
//!
//! # How it is computed
//! The time is the column by which the table is sorted, else its first time. Slices begin at multiples of the width;
//! those without rows have no row.

use crate::cell::Cell;
use crate::function::{Args, Function, Item, Rows};
use etwhy_table::{ColumnType, Database, Role};
use std::collections::BTreeMap;

/// Declaration.
pub static FUNCTION: Function = Function {
    name: "time_buckets",
    about: "Count and sum of a metric in slices of time, by a column if one is given",
    args: &[
        Item { name: "source", ty: ColumnType::Text, about: "Name of a table." },
        Item { name: "metric", ty: ColumnType::Text, about: "Column to add up." },
        Item { name: "width_ns", ty: ColumnType::I64, about: "Width of a slice, ns." },
        Item { name: "by", ty: ColumnType::Text, about: "Column whose values are kept apart." },
    ],
    required: 3,
    columns: &[
        Item { name: "start_ns", ty: ColumnType::I64, about: "Begin of the slice, ns." },
        Item { name: "key", ty: ColumnType::Text, about: "Value of the column." },
        Item { name: "count", ty: ColumnType::I64, about: "Rows." },
        Item { name: "sum", ty: ColumnType::F64, about: "Sum of the metric, in its unit." },
    ],
    run,
};

fn run(db: &Database, args: &Args) -> Result<Rows, String> {
    let table = args.table(0, db)?;
    let metric = args.column(1, table)?;
    let width = args.integer(2).filter(|w| *w > 0).ok_or("the width must be more than 0 ns")?;
    let key = match args.text(3).filter(|name| !name.is_empty()) {
        Some(_) => Some(args.column(3, table)?),
        None => None,
    };
    let spec = table.spec();
    let sorted = spec.sorted_by.as_deref().and_then(|name| spec.column_index(name));
    let time = sorted.or_else(|| spec.columns.iter().position(|c| c.role == Role::Time));
    let Some(time) = time else { return Err(format!("table `{}` has no time", table.name())) };
    let rows: Vec<u32> = (0..table.rows() as u32).collect();
    let keys: Vec<usize> = key.into_iter().collect();
    let (ids, _) = crate::groups::number_rows(table, &keys, &rows);
    let mut slices: BTreeMap<(i64, u32), (u32, i64, f64)> = BTreeMap::new();
    for batch in 0..table.batches().len() {
        let (times, values) = (table.view(batch, time), table.view(batch, metric));
        let first = table.starts().get(batch).copied().unwrap_or(0);
        for row in 0..times.len() {
            let Some(ns) = times.i64(row) else { continue };
            let at = first.saturating_add(row as u32);
            let id = ids.get(at as usize).copied().unwrap_or(0);
            let slice = slices.entry((ns.div_euclid(width), id)).or_insert((at, 0, 0.0));
            slice.1 += 1;
            slice.2 += values.f64(row).unwrap_or(0.0);
        }
    }
    let name = |row: u32| key.map_or(Cell::Null, |key| Cell::from_value(table.cell(row, key)));
    let line = |((slice, _), (row, count, sum)): ((i64, u32), (u32, i64, f64))| {
        vec![slice.saturating_mul(width).into(), name(row), count.into(), sum.into()]
    };
    Ok(slices.into_iter().map(line).collect())
}
