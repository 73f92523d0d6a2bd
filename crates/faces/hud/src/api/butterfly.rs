//! A function from both sides: who calls it, what it calls.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::reply::Reply;
use crate::stacks::nodes::Nodes;
use crate::stacks::{Asked, StackFacts};
use etwhy_analysis::stacks::{Matcher, Ordered};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "butterfly",
    about: "body: part, metric, by, steps; function (its exact name, module!function) or module; width, min_px. Nodes of two trees by column \
            `side`: callers (outwards) and callees; facts inclusive, exclusive, recursive, all, groups, functions",
    work: Work::Panel,
    answer,
};

#[derive(Deserialize)]
struct Body {
    function: Option<String>,
    module: Option<String>,
    #[serde(default = "width")]
    width: f64,
    #[serde(default = "half")]
    min_px: f64,
}

fn width() -> f64 {
    1000.0
}

fn half() -> f64 {
    0.5
}

const MOST: usize = 10_000;
const GROUPS: usize = 200;

/// Of the function or module.
#[derive(Serialize, TS)]
#[ts(rename = "ButterflyFacts")]
pub(crate) struct Facts {
    #[serde(flatten)]
    stacks: StackFacts,
    total: i64,
    count: i64,
    part_total: i64,
    inclusive: i64,
    inclusive_count: i64,
    exclusive: i64,
    exclusive_count: i64,
    recursive: i64,
    functions: Vec<String>,
    groups: Vec<Group>,
    groups_in_all: usize,
}

/// What it cost in a process or thread.
#[derive(Serialize, TS)]
#[ts(rename = "ButterflyGroup")]
struct Group {
    name: String,
    total: i64,
    own: i64,
    count: i64,
}

struct Wings {
    callers: Ordered,
    callees: Ordered,
    rest: etwhy_analysis::stacks::Butterfly,
}

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    let body: Body = call.parse()?;
    let (matcher, what) = match (body.function, body.module) {
        (Some(function), _) => (Matcher::function(function.clone()), format!("function {function}")),
        (None, Some(module)) => (Matcher::module(module.clone()), format!("module {module}")),
        (None, None) => return Err(Fault::wrong("which function?")),
    };
    let asked = Asked::parse(call)?;
    let wings = asked.trace.cached(&format!("butterfly {} {what}", asked.key), || {
        let mut rest = asked.builder(call)?.butterfly(&matcher);
        call.cancel.check()?;
        let (callers, callees) = (std::mem::take(&mut rest.callers), std::mem::take(&mut rest.callees));
        let bytes = (callers.nodes.len() + callees.nodes.len()) * 160 + (callers.names.len() * 2) * 250;
        Ok((Wings { callers: Ordered::new(callers), callees: Ordered::new(callees), rest }, bytes))
    })?;
    let all = wings.rest.all;
    let share = (body.min_px.clamp(0.0, 1e3) / body.width.clamp(1.0, 1e5)).min(1.0);
    let least = (share * wings.rest.inclusive.weight as f64).ceil() as i64;
    let mut nodes = Nodes::new(&asked.metric);
    for (side, tree) in [("callers", &wings.callers), ("callees", &wings.callees)] {
        nodes.add(side, tree, &tree.shown(0, least, MOST, 1000), None)?;
    }
    let rest = &wings.rest;
    let groups = rest.by_group.iter().take(GROUPS).map(|(name, total, own)| Group {
        name: name.clone(),
        total: total.weight,
        own: own.weight,
        count: total.count,
    });
    let facts = Facts {
        stacks: asked.facts(call, all.count),
        total: all.weight,
        count: all.count,
        part_total: rest.before_steps.weight,
        inclusive: rest.inclusive.weight,
        inclusive_count: rest.inclusive.count,
        exclusive: rest.exclusive.weight,
        exclusive_count: rest.exclusive.count,
        recursive: rest.recursive.weight,
        functions: rest.functions.iter().take(50).map(|f| f.label.clone()).collect(),
        groups: groups.collect(),
        groups_in_all: rest.by_group.len(),
    };
    Reply::table(&nodes.finish()?, &facts)
}
