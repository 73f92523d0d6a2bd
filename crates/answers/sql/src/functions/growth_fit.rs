//! `growth_fit(table, n, cost, by)`: does a cost grow with a number, and by which law?
//!
//! # How it is computed
//! As table `growth`: models a + b·f(n) are compared by their AICc weights, robust against outliers
//! (docs/guide/growth.md). The cost is that of one call (`form` `per_call`, the default) or of all work up to n (`total`).

use crate::cell::Cell;
use crate::function::{Args, Function, Item, Rows};
use crate::groups::Groups;
use etwhy_stats::growth::{Form, Point, fit};
use etwhy_table::{ColumnType, Database};

/// Declaration.
pub static FUNCTION: Function = Function {
    name: "growth_fit",
    about: "The law by which a cost grows with a number, with its exponent and confidence",
    args: &[
        Item { name: "source", ty: ColumnType::Text, about: "Name of a table." },
        Item {
            name: "n",
            ty: ColumnType::Text,
            about: "Column with the number of earlier calls, or the size.",
        },
        Item { name: "cost", ty: ColumnType::Text, about: "Column with the cost." },
        Item {
            name: "by",
            ty: ColumnType::Text,
            about: "Columns whose values are kept apart (the first is shown).",
        },
        Item { name: "form", ty: ColumnType::Text, about: "per_call (default) or total." },
    ],
    required: 3,
    columns: &[
        Item { name: "key", ty: ColumnType::Text, about: "Value of the column that is kept apart." },
        Item { name: "points", ty: ColumnType::I64, about: "Points with both numbers." },
        Item {
            name: "verdict",
            ty: ColumnType::Text,
            about: "constant, logarithmic, linear, slight, super_linear, or why it cannot be determined.",
        },
        Item { name: "doubt", ty: ColumnType::Text, about: "Why the points do not decide." },
        Item { name: "a", ty: ColumnType::F64, about: "Constant part of the best law, in the cost's unit." },
        Item { name: "b", ty: ColumnType::F64, about: "Factor of the growing part." },
        Item {
            name: "exponent",
            ty: ColumnType::F64,
            about: "Exponent of the growing part, if it can be told.",
        },
        Item { name: "exponent_low", ty: ColumnType::F64, about: "Lower end of its interval." },
        Item { name: "exponent_high", ty: ColumnType::F64, about: "Upper end of its interval." },
        Item { name: "first_cost", ty: ColumnType::F64, about: "Cost at the smallest n, by the law." },
        Item { name: "last_cost", ty: ColumnType::F64, about: "Cost at the greatest n, by the law." },
        Item {
            name: "cost_at_10x",
            ty: ColumnType::F64,
            about: "Cost at ten times the greatest n, by the law.",
        },
    ],
    run,
};

fn run(db: &Database, args: &Args) -> Result<Rows, String> {
    let table = args.table(0, db)?;
    let (n, cost) = (args.column(1, table)?, args.column(2, table)?);
    let keys = args.columns(3, table)?;
    let form = match args.text(4).unwrap_or("per_call") {
        "per_call" => Form::PerCall,
        "total" => Form::Total,
        other => return Err(format!("form is per_call or total, not `{other}`")),
    };
    let groups = Groups::by_values(table, &keys, (0..table.rows() as u32).collect());
    let mut rows = Vec::new();
    for at in 0..groups.len() {
        let group = groups.group(at);
        let Some(&first) = group.first() else { continue };
        let point = |&row: &u32| {
            let (n, cost) = (table.cell(row, n).as_f64()?, table.cell(row, cost).as_f64()?);
            Some(Point { n, cost, weight: 1.0, time: None })
        };
        let points: Vec<Point> = group.iter().filter_map(point).collect();
        let growth = fit(&points, form);
        let key = keys.first().map_or(Cell::Null, |&key| Cell::from_value(table.cell(first, key)));
        let exponent = growth.exponent;
        rows.push(vec![
            key,
            (growth.points as i64).into(),
            growth.verdict.name().into(),
            growth.doubt.map(|d| d.text()).into(),
            growth.a.into(),
            growth.b.into(),
            exponent.map(|e| e.value).into(),
            exponent.map(|e| e.low).into(),
            exponent.map(|e| e.high).into(),
            growth.cost_at(growth.range.0).into(),
            growth.cost_at(growth.range.1).into(),
            growth.cost_at(growth.range.1 * 10.0).into(),
        ]);
    }
    Ok(rows)
}
