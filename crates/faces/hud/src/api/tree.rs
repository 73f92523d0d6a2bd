//! The nodes of a tree of stacks that a picture has room for.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::part::Part;
use crate::reply::Reply;
use crate::stacks::nodes::Nodes;
use crate::stacks::{Asked, Question, StackFacts};
use etwhy_analysis::stacks::{Before, NodeKind};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "tree",
    about: "body: part, metric, by (levels), inverted, steps; root (labels of the node to begin at), width and min_px (nodes that are \
            narrower are left out), most (nodes), depth; other (trace and range to compare with). Nodes as Arrow, parents before \
            children; facts total, count, sql, why",
    work: Work::Panel,
    answer,
};

#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    root: Vec<String>,
    #[serde(default = "width")]
    width: f64,
    #[serde(default = "half")]
    min_px: f64,
    #[serde(default = "most")]
    most: usize,
    depth: Option<u32>,
    other: Option<Other>,
}

#[derive(Deserialize)]
struct Other {
    range: Option<[i64; 2]>,
}

/// Of the whole tree.
#[derive(Serialize, TS)]
#[ts(rename = "TreeFacts")]
pub(crate) struct Facts {
    #[serde(flatten)]
    stacks: StackFacts,
    total: i64,
    count: i64,
    part_total: i64,
    part_count: i64,
    nodes: usize,
    left_out: u64,
    least: i64,
    refused: u64,
    /// Weight without stacks.
    no_stack: i64,
    /// The recording that has stacks, if most of it has none.
    stacks_record: Option<String>,
    root_found: bool,
    before_total: Option<i64>,
    before_count: Option<i64>,
    /// Weight of paths that are not there any more.
    gone: Option<i64>,
}

fn width() -> f64 {
    4000.0
}

fn half() -> f64 {
    0.5
}

fn most() -> usize {
    MOST
}

/// Nodes of an answer: about 2 MB.
const MOST: usize = 20_000;
/// Levels of an answer.
const DEEPEST: u32 = 2000;

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    let body: Body = call.parse()?;
    let mut question: Question = call.parse()?;
    let part = Part::parse(call)?;
    let number = call.body.get("trace").and_then(serde_json::Value::as_u64).unwrap_or(0);
    let other = match &body.other {
        Some(_) => {
            let number = call.body.pointer("/other/trace").and_then(serde_json::Value::as_u64).unwrap_or(0);
            Some((number, call.trace_number(number)?))
        }
        None => None,
    };
    // Process ids of two traces have nothing to do with each other.
    question.names_only |= other.as_ref().is_some_and(|(other, _)| *other != number);
    let asked = Asked::with(call, call.trace()?, &part, question.clone())?;
    let ordered = asked.tree(call)?;
    let mut compared: Option<(Before, i64, i64)> = None;
    if let (Some(other), Some((other_number, trace))) = (&body.other, other) {
        // Numbers of processes and threads mean others there.
        let filters = part.filters.iter().filter(|f| other_number == number || f.value.is_string()).cloned();
        let part = Part { range: other.range, filters: filters.collect() };
        let before = Asked::with(call, trace, &part, question)?.tree(call)?;
        let total = before.tree.total();
        compared = Some((ordered.tree.compared_with(&before.tree), total.weight, total.count));
        call.cancel.check()?;
    }
    let root = ordered.find(&body.root);
    let at = root.unwrap_or(0);
    let total = ordered.tree.total();
    let of_root = ordered.tree.node(at).map_or(0, |node| node.total.weight);
    let share = (body.min_px.clamp(0.0, 1e3) / body.width.clamp(1.0, 1e5)).min(1.0);
    let least = (share * of_root as f64).ceil() as i64;
    let depth = body.depth.unwrap_or(DEEPEST).min(DEEPEST);
    let shown = ordered.shown(at, least, body.most.min(MOST), depth);
    let mut nodes = Nodes::new(&asked.metric);
    nodes.add("tree", &ordered, &shown, compared.as_ref().map(|(before, ..)| before))?;
    call.cancel.check()?;
    let tree = &ordered.tree;
    let bare = tree.nodes.iter().filter(|node| tree.name(node).kind == NodeKind::NoStack);
    let bare = bare.fold(0i64, |sum, node| sum.saturating_add(node.own.weight));
    let left_out = shown.iter().map(|one| u64::from(one.left_out)).sum::<u64>();
    let facts = Facts {
        stacks: asked.facts(call, total.count),
        total: total.weight,
        count: total.count,
        part_total: tree.before_steps.weight,
        part_count: tree.before_steps.count,
        nodes: tree.nodes.len(),
        left_out,
        least,
        refused: tree.refused,
        no_stack: bare,
        stacks_record: (bare > total.weight / 2).then(|| call.hud.host.recording_for("stack")),
        root_found: root.is_some(),
        before_total: compared.as_ref().map(|(_, total, _)| *total),
        before_count: compared.as_ref().map(|(.., count)| *count),
        gone: compared.as_ref().map(|(before, ..)| before.gone),
    };
    Reply::table(&nodes.finish()?, &facts)
}
