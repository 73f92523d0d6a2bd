//! `histogram(table, column, buckets, scale)`: how the values of a column are spread.
//!
//! # How it is computed
//! `linear` cuts from the least to the greatest value into equal parts, `log` (the default) into ten parts per factor of ten;
//! `buckets` limits the number of linear parts. Values of 0 and less stand in a bucket of their own on a
//! logarithmic scale.

use crate::function::{Args, Function, Item, Rows};
use etwhy_table::{ColumnType, Database};
use std::collections::BTreeMap;

/// Declaration.
pub static FUNCTION: Function = Function {
    name: "histogram",
    about: "How the values of a column are spread",
    args: &[
        Item { name: "source", ty: ColumnType::Text, about: "Name of a table." },
        Item { name: "of", ty: ColumnType::Text, about: "Column." },
        Item { name: "scale", ty: ColumnType::Text, about: "log (ten parts per factor of ten) or linear." },
        Item { name: "buckets", ty: ColumnType::I64, about: "Parts of a linear scale; 20 if not given." },
    ],
    required: 2,
    columns: &[
        Item { name: "low", ty: ColumnType::F64, about: "Least value of the bucket, in the column's unit." },
        Item { name: "high", ty: ColumnType::F64, about: "End of the bucket." },
        Item { name: "count", ty: ColumnType::I64, about: "Values." },
        Item { name: "sum", ty: ColumnType::F64, about: "Their sum." },
    ],
    run,
};

fn run(db: &Database, args: &Args) -> Result<Rows, String> {
    let table = args.table(0, db)?;
    let column = args.column(1, table)?;
    let linear = match args.text(2).unwrap_or("log") {
        "log" => false,
        "linear" => true,
        other => return Err(format!("scale is log or linear, not `{other}`")),
    };
    let parts = args.integer(3).unwrap_or(20).clamp(1, 100_000);
    let views: Vec<_> = (0..table.batches().len()).map(|batch| table.view(batch, column)).collect();
    let values = || {
        views
            .iter()
            .flat_map(|view| (0..view.len()).filter_map(|row| view.f64(row)))
            .filter(|v| v.is_finite())
    };
    let least = values().fold(f64::INFINITY, f64::min);
    let most = values().fold(f64::NEG_INFINITY, f64::max);
    if least > most {
        return Ok(Vec::new());
    }
    let step = ((most - least) / parts as f64).max(f64::MIN_POSITIVE);
    let bucket = |v: f64| {
        if linear {
            (((v - least) / step) as i64).min(parts - 1)
        } else if v > 0.0 {
            (v.log10() * 10.0 + 1e-9).floor() as i64
        } else {
            i64::MIN
        }
    };
    let mut found: BTreeMap<i64, (i64, f64)> = BTreeMap::new();
    for value in values() {
        let entry = found.entry(bucket(value)).or_insert((0, 0.0));
        entry.0 += 1;
        entry.1 += value;
    }
    let ends = |bucket: i64| {
        if linear {
            (least + bucket as f64 * step, least + (bucket + 1) as f64 * step)
        } else if bucket == i64::MIN {
            (least.min(0.0), 0.0)
        } else {
            (10f64.powf(bucket as f64 / 10.0), 10f64.powf((bucket + 1) as f64 / 10.0))
        }
    };
    let line = |(bucket, (count, sum)): (i64, (i64, f64))| {
        let (low, high) = ends(bucket);
        vec![low.into(), high.into(), count.into(), sum.into()]
    };
    Ok(found.into_iter().map(line).collect())
}
