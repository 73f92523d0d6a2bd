//! Call trees for programs: JSON and CSV.

use etwhy_analysis::stacks::{Metric, NodeName, Sum, Tree};
use etwhy_base::units::percent;
use etwhy_table::{
    AdHocBuilder, ColumnSpec, ColumnType, Evidence, Memory, Role, Table, TableSpec, Unit, Value,
};
use serde::Serialize;

/// A tree as a document.
#[derive(Serialize)]
pub struct Document {
    schema: &'static str,
    /// Name of the metric.
    metric: String,
    about: String,
    unit: &'static str,
    view: &'static str,
    total: i64,
    count: i64,
    /// Nodes that were not made because the tree was full.
    refused: u64,
    /// Why there is nothing to show, if there is nothing.
    pub cannot_tell: Option<String>,
    nodes: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    id: u32,
    parent: Option<u32>,
    depth: u32,
    name: String,
    kind: &'static str,
    module: Option<String>,
    category: Option<String>,
    tag: Option<String>,
    weight: i64,
    #[serde(rename = "self")]
    own: i64,
    percent: f64,
    count: i64,
    self_count: i64,
    first_ns: Option<i64>,
    last_ns: Option<i64>,
    cut: i64,
    folded: u32,
}

/// The lines of a tree, callers before what they call, the heaviest first.
fn lines(tree: &Tree) -> Vec<Line> {
    let (children, depths) = (tree.children(), tree.depths());
    let whole = tree.total().weight;
    let mut out: Vec<Line> = Vec::with_capacity(tree.nodes.len());
    let mut open: Vec<(u32, Option<u32>)> = vec![(0, None)];
    while let Some((number, parent)) = open.pop() {
        let Some(node) = tree.node(number) else { continue };
        let NodeName { label, kind, module, category, tag, .. } = tree.name(node).clone();
        let some = |text: String| Some(text).filter(|t| !t.is_empty());
        let Sum { weight, count, first_ns, last_ns } = node.total;
        let id = out.len() as u32;
        out.push(Line {
            id,
            parent,
            depth: depths.get(number as usize).copied().unwrap_or(0),
            name: label,
            kind: kind.name(),
            module: some(module),
            category: some(category),
            tag: some(tag),
            weight,
            own: node.own.weight,
            percent: (percent(weight, whole) * 1e4).round() / 1e4,
            count,
            self_count: node.own.count,
            first_ns,
            last_ns,
            cut: node.cut,
            folded: node.folded,
        });
        let below = children.get(number as usize).into_iter().flatten().rev();
        open.extend(below.map(|&child| (child, Some(id))));
    }
    out
}

/// The tree as a document.
pub fn document(metric: &Metric, view: &'static str, tree: &Tree) -> Document {
    let total = tree.total();
    Document {
        schema: "etwhy.tree/1",
        metric: metric.label(),
        about: metric.about.to_owned(),
        unit: metric.unit.name(),
        view,
        total: total.weight,
        count: total.count,
        refused: tree.refused,
        cannot_tell: None,
        nodes: lines(tree),
    }
}

/// The tree as a table, a row for each node.
///
/// # Errors
/// Those of the table builder.
pub fn table(metric: &Metric, tree: &Tree) -> etwhy_table::Result<Table> {
    use ColumnType::{F64, I32, I64, Text};
    let column = |name: &'static str, ty, unit, doc: &'static str| ColumnSpec {
        name: name.into(),
        ty,
        unit,
        role: Role::Other,
        doc: doc.into(),
        nullable: true,
    };
    let columns = vec![
        column("id", I32, Unit::None, "Number of the node."),
        column("parent", I32, Unit::None, "Number of its parent."),
        column("depth", I32, Unit::None, "Levels below the root."),
        column("name", Text, Unit::None, "module!function, or a group."),
        column("kind", Text, Unit::None, "What it is."),
        column("module", Text, Unit::None, "Module."),
        column("category", Text, Unit::None, "Category of the module."),
        column("tag", Text, Unit::None, "Stack tag."),
        column("weight", I64, metric.unit, "With what stands below it."),
        column("self", I64, metric.unit, "Itself."),
        column("percent", F64, Unit::Percent, "Share of the root."),
        column("count", I64, Unit::Count, "Events."),
        column("self_count", I64, Unit::Count, "Events of itself."),
        column("first_ns", I64, Unit::Ns, "Time of the first event."),
        column("last_ns", I64, Unit::Ns, "Time of the last event."),
        column("cut", I64, metric.unit, "Weight of stacks that begin there in their middle."),
        column("folded", I32, Unit::Count, "Nodes that it stands for."),
    ];
    let spec = TableSpec {
        name: "tree".into(),
        title: "Call tree".into(),
        doc: "One row for each node, callers before what they call.".into(),
        columns: columns.into(),
        sorted_by: None,
        version: 1,
        evidence: Evidence::Documented,
    };
    let mut rows = AdHocBuilder::new(spec, &Memory::unlimited());
    for line in lines(tree) {
        let number = |n: Option<i64>| n.map_or(Value::Null, Value::I64);
        rows.push(&[
            Value::I64(line.id.into()),
            number(line.parent.map(i64::from)),
            Value::I64(line.depth.into()),
            Value::Text(&line.name),
            Value::Text(line.kind),
            line.module.as_deref().map_or(Value::Null, Value::Text),
            line.category.as_deref().map_or(Value::Null, Value::Text),
            line.tag.as_deref().map_or(Value::Null, Value::Text),
            Value::I64(line.weight),
            Value::I64(line.own),
            Value::F64(line.percent),
            Value::I64(line.count),
            Value::I64(line.self_count),
            number(line.first_ns),
            number(line.last_ns),
            Value::I64(line.cut),
            Value::I64(line.folded.into()),
        ])?;
    }
    rows.finish()
}
