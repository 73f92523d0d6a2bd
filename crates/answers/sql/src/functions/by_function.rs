//! `by_function(table, metric, from_ns, to_ns, upid)`: a metric along stacks, inclusive and exclusive by function.
//!
//! # How it is computed
//! The metric is added up by stack, then each stack gives its sum to the function of its innermost frame (exclusive) and
//! once to every function on it (inclusive), however often that stands there. Works for any table that has a stack:
//! `sample` with `weight_ns`, `cswitch` with `wait_ns` or `ready_ns`, `disk_io`, `page_fault`.

use crate::cell::Cell;
use crate::function::{Args, Function, Item, Rows, rows_between};
use etwhy_table::{ColumnType, Database, Role};
use etwhy_trace::catalog::stack::{FrameRow, StackFrameRow};
use etwhy_trace::stacks::{LastStack, Stacks};
use foldhash::HashMap;

/// Declaration.
pub static FUNCTION: Function = Function {
    name: "by_function",
    about: "A metric of a table with stacks, inclusive and exclusive by function",
    args: &[
        Item { name: "source", ty: ColumnType::Text, about: "Name of a table with a stack." },
        Item { name: "metric", ty: ColumnType::Text, about: "Column to add up." },
        Item { name: "from_ns", ty: ColumnType::I64, about: "First moment, ns." },
        Item { name: "to_ns", ty: ColumnType::I64, about: "End, ns." },
        Item { name: "process", ty: ColumnType::I64, about: "Only this process (`upid`)." },
    ],
    required: 2,
    columns: &[
        Item { name: "module", ty: ColumnType::Text, about: "Module." },
        Item {
            name: "function",
            ty: ColumnType::Text,
            about: "`module!function`; stacks without frames stand under null.",
        },
        Item {
            name: "inclusive",
            ty: ColumnType::F64,
            about: "Metric of stacks with the function, in its unit.",
        },
        Item { name: "exclusive", ty: ColumnType::F64, about: "Metric of stacks that end in the function." },
        Item { name: "count", ty: ColumnType::I64, about: "Rows whose stack has the function." },
    ],
    run,
};

#[derive(Default, Clone, Copy)]
struct Sum {
    inclusive: f64,
    exclusive: f64,
    count: i64,
    last: LastStack,
}

fn run(db: &Database, args: &Args) -> Result<Rows, String> {
    let table = args.table(0, db)?;
    let metric = args.column(1, table)?;
    let spec = table.spec();
    let stack = spec.columns.iter().position(|c| c.role == Role::Stack);
    let stack = stack.ok_or_else(|| format!("table `{}` has no stacks", table.name()))?;
    let process = spec.columns.iter().position(|c| c.role == Role::Process);
    let wanted = args.integer(4);
    let mut by_stack: HashMap<i64, (f64, i64)> = HashMap::default();
    for row in rows_between(table, args.integer(2), args.integer(3)) {
        if let (Some(wanted), Some(process)) = (wanted, process)
            && table.cell(row, process).as_i64() != Some(wanted)
        {
            continue;
        }
        let Some(value) = table.cell(row, metric).as_f64() else { continue };
        let entry = by_stack.entry(table.cell(row, stack).as_i64().unwrap_or(-1)).or_default();
        entry.0 += value;
        entry.1 += 1;
    }
    let (Ok(frames), Ok(_)) = (db.read::<FrameRow>(), db.read::<StackFrameRow>()) else {
        return Err("the stacks are not here: name the table stack_frame in the query".to_owned());
    };
    // Frames of the same function count as one.
    let mut functions: Vec<u32> = Vec::with_capacity(frames.len());
    let mut numbers: HashMap<&str, u32> = HashMap::default();
    for row in &frames {
        let next = numbers.len() as u32;
        functions.push(*numbers.entry(row.label()).or_insert(next));
    }
    let mut sums = vec![Sum::default(); numbers.len()];
    let mut examples = vec![0u32; numbers.len()];
    for (frame, &function) in functions.iter().enumerate() {
        if let Some(example) = examples.get_mut(function as usize) {
            *example = frame as u32;
        }
    }
    for (stack, mark) in Stacks::read(db).iter().zip(1..) {
        let Some(&(value, count)) = by_stack.get(&(i64::from(mark) - 1)) else { continue };
        for (position, &frame) in stack.iter().enumerate() {
            let Some(&function) = functions.get(frame as usize) else { continue };
            let Some(sum) = sums.get_mut(function as usize) else { continue };
            if position == 0 {
                sum.exclusive += value;
            }
            if sum.last.is_new(mark) {
                sum.inclusive += value;
                sum.count += count;
            }
        }
    }
    let mut rows: Rows = sums
        .iter()
        .zip(&examples)
        .filter(|(sum, _)| sum.count > 0)
        .filter_map(|(sum, &frame)| {
            let frame = frames.get(frame)?;
            let [module, label] =
                [frame.module(), frame.label()].map(|text| Cell::from_value(etwhy_table::Value::Text(text)));
            Some(vec![module, label, sum.inclusive.into(), sum.exclusive.into(), sum.count.into()])
        })
        .collect();
    if let Some((value, count)) = by_stack.get(&-1) {
        rows.push(vec![Cell::Null, Cell::Null, (*value).into(), (*value).into(), (*count).into()]);
    }
    Ok(rows)
}
