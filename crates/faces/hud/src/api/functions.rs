//! Functions without their places in a tree.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::reply::Reply;
use crate::stacks::nodes::{column, name_cells, name_columns, spec};
use crate::stacks::{Asked, StackFacts};
use etwhy_analysis::stacks::{Flat, Sum};
use etwhy_table::{AdHocBuilder, ColumnType, Memory, Role, Unit, Value};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "functions",
    about: "body: part, metric, steps; search (part of a name), by_total, most. Functions with what they cost with all that they called and \
            themselves; facts total, count, sql, matched",
    work: Work::Panel,
    answer,
};

#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    search: String,
    #[serde(default)]
    by_total: bool,
    #[serde(default = "most")]
    most: usize,
}

fn most() -> usize {
    1000
}

const MOST: usize = 20_000;

/// Of all functions.
#[derive(Serialize, TS)]
#[ts(rename = "FunctionsFacts")]
pub(crate) struct Facts {
    #[serde(flatten)]
    stacks: StackFacts,
    total: i64,
    count: i64,
    part_total: i64,
    functions: usize,
    matched: usize,
}

struct Functions {
    list: Vec<Flat>,
    all: Sum,
    before: Sum,
}

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    let body: Body = call.parse()?;
    let asked = Asked::parse(call)?;
    let known = asked.trace.cached(&format!("functions {}", asked.key), || {
        let (list, all, before) = asked.builder(call)?.functions();
        call.cancel.check()?;
        let bytes = list.len() * 400;
        Ok((Functions { list, all, before }, bytes))
    })?;
    let wanted = body.search.trim().to_lowercase();
    let mut found: Vec<&Flat> = known
        .list
        .iter()
        .filter(|f| wanted.is_empty() || f.name.label.to_lowercase().contains(&wanted))
        .collect();
    if body.by_total {
        found.sort_by_key(|f| (-f.total.weight, -f.own.weight));
    }
    let matched = found.len();
    found.truncate(body.most.min(MOST));
    let unit = asked.metric.unit;
    let mut columns = name_columns();
    columns.extend([
        column(
            "total",
            ColumnType::I64,
            unit,
            Role::Weight,
            "With all that it called; recursion counts once.",
        ),
        column("own", ColumnType::I64, unit, Role::Weight, "Itself: where stacks end."),
        column("count", ColumnType::I64, Unit::Count, Role::Count, "Events with it on the stack."),
    ]);
    let mut rows = AdHocBuilder::new(spec("functions", columns), &Memory::unlimited());
    for one in found {
        let mut cells = name_cells(&one.name).to_vec();
        cells.extend([Value::I64(one.total.weight), Value::I64(one.own.weight), Value::I64(one.total.count)]);
        rows.push(&cells).map_err(Fault::wrong)?;
    }
    let facts = Facts {
        stacks: asked.facts(call, known.all.count),
        total: known.all.weight,
        count: known.all.count,
        part_total: known.before.weight,
        functions: known.list.len(),
        matched,
    };
    Reply::table(&rows.finish().map_err(Fault::wrong)?, &facts)
}
