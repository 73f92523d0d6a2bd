//! `aggregate(table, keys, metric, from_ns, to_ns)`: count and sum of a metric by up to four columns.
//!
//! # How it is computed
//! Keys become dense numbers (texts and ids are numbers already), then one pass over the columns adds up. No sorting.
//!
//! # What fools it
//! Rows without a metric count, and add nothing.

use crate::cell::Cell;
use crate::function::{Args, Function, Item, Rows, rows_between};
use crate::groups::number_rows;
use etwhy_table::{ColumnType, ColumnView, Database, Table};

/// Declaration.
pub static FUNCTION: Function = Function {
    name: "aggregate",
    about: "Count, sum, least and most of a metric by up to four columns over a range of time",
    args: &[
        Item { name: "source", ty: ColumnType::Text, about: "Name of a table." },
        Item { name: "keys", ty: ColumnType::Text, about: "Columns, separated by commas; at most four." },
        Item { name: "metric", ty: ColumnType::Text, about: "Column to add up; none counts only." },
        Item { name: "from_ns", ty: ColumnType::I64, about: "First moment, ns." },
        Item { name: "to_ns", ty: ColumnType::I64, about: "End, ns." },
    ],
    required: 2,
    columns: &[
        Item { name: "key1", ty: ColumnType::Text, about: "Value of the first key." },
        Item { name: "key2", ty: ColumnType::Text, about: "Value of the second key." },
        Item { name: "key3", ty: ColumnType::Text, about: "Value of the third key." },
        Item { name: "key4", ty: ColumnType::Text, about: "Value of the fourth key." },
        Item { name: "count", ty: ColumnType::I64, about: "Rows." },
        Item { name: "sum", ty: ColumnType::F64, about: "Sum of the metric, in its unit." },
        Item { name: "mean", ty: ColumnType::F64, about: "Mean of the metric." },
        Item { name: "min", ty: ColumnType::F64, about: "Least value." },
        Item { name: "max", ty: ColumnType::F64, about: "Greatest value." },
    ],
    run,
};

/// Figures of a group.
#[derive(Clone, Copy)]
struct Sum {
    first: u32,
    count: i64,
    measured: i64,
    integer: i64,
    float: f64,
    min: f64,
    max: f64,
}

const NOTHING: Sum = Sum {
    first: u32::MAX,
    count: 0,
    measured: 0,
    integer: 0,
    float: 0.0,
    min: f64::INFINITY,
    max: f64::NEG_INFINITY,
};

fn run(db: &Database, args: &Args) -> Result<Rows, String> {
    let table = args.table(0, db)?;
    let keys = args.columns(1, table)?;
    if keys.len() > 4 {
        return Err("at most four keys".to_owned());
    }
    let metric = match args.text(2).filter(|name| !name.is_empty()) {
        Some(_) => Some(args.column(2, table)?),
        None => None,
    };
    let rows = rows_between(table, args.integer(3), args.integer(4));
    let sums = sums(table, &keys, metric, &rows);
    let mut out = Vec::with_capacity(sums.len());
    for sum in sums {
        let mut row: Vec<Cell> =
            keys.iter().map(|&key| Cell::from_value(table.cell(sum.first, key))).collect();
        row.resize(4, Cell::Null);
        row.push(sum.count.into());
        let measured = sum.measured > 0;
        let whole = sum.float == 0.0;
        let total = sum.float + sum.integer as f64;
        row.push(match (measured, whole) {
            (false, _) => Cell::Null,
            (true, true) => sum.integer.into(),
            (true, false) => total.into(),
        });
        row.push(measured.then(|| total / sum.measured as f64).into());
        row.push(measured.then_some(sum.min).into());
        row.push(measured.then_some(sum.max).into());
        out.push(row);
    }
    Ok(out)
}

fn sums(table: &Table, keys: &[usize], metric: Option<usize>, rows: &[u32]) -> Vec<Sum> {
    let (ids, bound) = number_rows(table, keys, rows);
    let mut sums = vec![NOTHING; bound];
    let views: Vec<ColumnView<'_>> =
        metric.map_or(Vec::new(), |m| (0..table.batches().len()).map(|b| table.view(b, m)).collect());
    for (&row, &id) in rows.iter().zip(&ids) {
        let Some(sum) = sums.get_mut(id as usize) else { continue };
        sum.first = sum.first.min(row);
        sum.count += 1;
        let Some((batch, row)) = table.locate(row) else { continue };
        let Some(view) = views.get(batch) else { continue };
        let value = match view.i64(row) {
            Some(n) => {
                sum.integer = sum.integer.saturating_add(n);
                n as f64
            }
            None => match view.f64(row) {
                Some(n) => {
                    sum.float += n;
                    n
                }
                None => continue,
            },
        };
        sum.measured += 1;
        sum.min = sum.min.min(value);
        sum.max = sum.max.max(value);
    }
    sums.retain(|sum| sum.count > 0);
    sums
}
