//! The query whose sum is a metric's total over a part.
//!
//! # What fools it
//!
//! A metric that is computed (energy) has no such query; neither have weights that stand at a frame and at no stack, once a filter
//! asks what is on the stack.

use crate::part::{Kind, Part};
use etwhy_analysis::stacks::{Class, Metric, Rows, Source};
use etwhy_table::TableSpec;
use etwhy_table::filter::{quoted, quoted_text};

/// The query, if there is one. `rows` are those of the metric, with the columns that their table has; `unused` says nothing of them.
pub fn query(
    metric: &Metric,
    rows: &Rows,
    spec: Option<&TableSpec>,
    part: &Part,
    unused: &[&str],
) -> Option<String> {
    let Source::Rows(_) = metric.source else { return None };
    let (sum, mut conditions) = rows.sql(spec?)?;
    if let (Some([from, to]), Some(ts)) = (part.range, rows.ts) {
        conditions.push(format!("{0} >= {from} AND {0} < {to}", quoted(ts)));
    }
    for (kind, column) in [(Kind::Process, rows.upid), (Kind::Thread, rows.utid), (Kind::Cpu, rows.cpu)] {
        let numbers = part.numbers(kind);
        if numbers.is_empty() || unused.contains(&kind.name()) {
            continue;
        }
        if kind != Kind::Cpu {
            // DPCs and ISRs are nobody's.
            match rows.class {
                Some(Class::Thread) => {}
                Some(_) => return None,
                None => conditions.push("NOT in_dpc AND NOT in_isr".to_owned()),
            }
        }
        let column = quoted(column?);
        conditions.extend(numbers.wanted_sql(&column));
        // Rows of nobody are in no process that is not this one either.
        conditions.extend(numbers.unwanted().iter().map(|number| format!("NOT {column} = {number}")));
    }
    for kind in [Kind::Module, Kind::Frame] {
        let names = part.names(kind);
        if names.is_empty() {
            continue;
        }
        // DPCs have a part of their stacks only, and the stacks of some system calls are not recorded.
        if rows.class != Some(Class::Thread) || rows.frame.is_some() {
            return None;
        }
        let stack = quoted(rows.stack?);
        let has = |name: &&str| format!("stack_has({stack}, {})", quoted_text(name));
        let wanted: Vec<String> = names.wanted().iter().map(has).collect();
        match wanted.as_slice() {
            [] => {}
            [one] => conditions.push(one.clone()),
            some => conditions.push(format!("({})", some.join(" OR "))),
        }
        conditions.extend(names.unwanted().iter().map(|name| format!("NOT coalesce({}, 0)", has(name))));
    }
    let conditions =
        if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
    Some(format!("SELECT {sum} AS total FROM {}{conditions}", quoted(&rows.table.name)))
}
