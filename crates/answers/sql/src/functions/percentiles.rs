//! `percentiles(table, column, by)`: count, mean and percentiles of a column, by another one if given.
//!
//! # How it is computed
//! Exactly, by sorting the values of each group; a percentile is the least value that so many do not exceed (nearest
//! rank).

use crate::cell::Cell;
use crate::function::{Args, Function, Item, Rows};
use crate::groups::Groups;
use etwhy_table::{ColumnType, Database};

/// Declaration.
pub static FUNCTION: Function = Function {
    name: "percentiles",
    about: "Count, mean and percentiles of a column, by another column if one is given",
    args: &[
        Item { name: "source", ty: ColumnType::Text, about: "Name of a table." },
        Item { name: "of", ty: ColumnType::Text, about: "Column." },
        Item {
            name: "by",
            ty: ColumnType::Text,
            about: "Columns whose values are kept apart (the first is shown).",
        },
    ],
    required: 2,
    columns: &[
        Item { name: "key", ty: ColumnType::Text, about: "Value of the column that is kept apart." },
        Item { name: "count", ty: ColumnType::I64, about: "Values." },
        Item { name: "sum", ty: ColumnType::F64, about: "Their sum, in the column's unit." },
        Item { name: "mean", ty: ColumnType::F64, about: "Mean." },
        Item { name: "min", ty: ColumnType::F64, about: "Least." },
        Item { name: "p50", ty: ColumnType::F64, about: "Half are no more." },
        Item { name: "p90", ty: ColumnType::F64, about: "90 % are no more." },
        Item { name: "p95", ty: ColumnType::F64, about: "95 % are no more." },
        Item { name: "p99", ty: ColumnType::F64, about: "99 % are no more." },
        Item { name: "max", ty: ColumnType::F64, about: "Greatest." },
    ],
    run,
};

fn run(db: &Database, args: &Args) -> Result<Rows, String> {
    let table = args.table(0, db)?;
    let column = args.column(1, table)?;
    let keys = args.columns(2, table)?;
    let groups = Groups::by_values(table, &keys, (0..table.rows() as u32).collect());
    let mut rows = Vec::new();
    for n in 0..groups.len() {
        let group = groups.group(n);
        let mut values: Vec<f64> = group.iter().filter_map(|&row| table.cell(row, column).as_f64()).collect();
        let Some(&first) = group.first() else { continue };
        if values.is_empty() {
            continue;
        }
        values.sort_unstable_by(f64::total_cmp);
        let rank = |share: f64| {
            let at = (share * values.len() as f64).ceil() as usize;
            Cell::from(values.get(at.clamp(1, values.len()) - 1).copied())
        };
        let sum: f64 = values.iter().sum();
        let key = keys.first().map_or(Cell::Null, |&key| Cell::from_value(table.cell(first, key)));
        rows.push(vec![
            key,
            (values.len() as i64).into(),
            sum.into(),
            (sum / values.len() as f64).into(),
            rank(0.0),
            rank(0.5),
            rank(0.9),
            rank(0.95),
            rank(0.99),
            rank(1.0),
        ]);
    }
    Ok(rows)
}
