//! CPU time folded into a tree of calls: what a flame graph draws.
//!
//! # How it is computed
//!
//! From `stack_cost`: each process is a child of the root, its frames follow from the outermost to the innermost. Time in
//! DPCs and ISRs stands under a node of its own, not under the process that was interrupted. Adjacent frames of one module
//! without a function name are one node.
//!
//! # What fools it
//!
//! Stacks that were cut (too deep, or a user half that never came) begin in their middle and so stand beside the whole ones.
//! Only the heaviest nodes are kept; what was left out stays in the total of the nodes above it.

use super::stacks::{Builder, Class, Frames, GroupBy, NodeKind, NodeName, Tree, View, WeightedStack};
use etwhy_table::Database;
use etwhy_trace::catalog::stack_cost::StackCostRow;
use foldhash::HashMap;
use serde::Serialize;

/// A tree of calls as parallel lists; parents stand before their children, node 0 is the root.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Flame {
    /// Distinct names of nodes.
    pub names: Vec<FlameName>,
    /// Name of each node, as a place in `names`.
    pub name: Vec<u32>,
    /// Parent of each node; that of the root is itself.
    pub parent: Vec<u32>,
    /// Time of each node with what it called.
    pub total_ns: Vec<i64>,
    /// Time of each node itself.
    pub self_ns: Vec<i64>,
    /// Nodes that were left out because they are too small.
    pub omitted: u64,
}

/// What a node is called.
#[derive(Clone, Debug, Eq, Hash, PartialEq, Serialize)]
pub struct FlameName {
    /// `module!function`, or a process.
    pub name: String,
    /// process, kernel, user, managed, interrupt or unknown.
    pub kind: String,
    /// Category of the module in the knowledge base.
    pub category: Option<String>,
    /// The category is one of security products.
    pub security: bool,
}

impl From<&NodeName> for FlameName {
    fn from(name: &NodeName) -> FlameName {
        let kind = match name.kind {
            NodeKind::Group => "process",
            NodeKind::NoStack | NodeKind::System | NodeKind::Others => "unknown",
            kind => kind.name(),
        };
        FlameName {
            name: name.label.clone(),
            kind: kind.to_owned(),
            category: Some(name.category.clone()).filter(|c| !c.is_empty()),
            security: name.security,
        }
    }
}

/// Folds all CPU samples; keeps the `max_nodes` heaviest nodes. `None` if there is nothing to fold.
pub fn flame(db: &Database, max_nodes: usize) -> Option<Flame> {
    if max_nodes == 0 || db.read_or_empty::<StackCostRow>().is_empty() {
        return None;
    }
    let frames = Frames::read(db);
    let view = View { groups: vec![GroupBy::Process], one_interrupt: true, ..View::default() };
    let mut builder = Builder::new(db, &frames, &view);
    for row in &db.read_or_empty::<StackCostRow>() {
        builder.add(&WeightedStack {
            upid: row.upid(),
            class: Class::named(row.class()),
            stack: row.stack_id(),
            weight: row.weight_ns(),
            count: row.samples(),
            ..WeightedStack::default()
        });
    }
    Some(heaviest(&builder.finish("all processes"), max_nodes))
}

/// The heaviest nodes, heaviest first. A parent is never lighter than its child and has the smaller number, so it is kept too
/// and stands before it.
fn heaviest(tree: &Tree, max_nodes: usize) -> Flame {
    let total = |node: u32| tree.node(node).map_or(0, |n| n.total.weight);
    let mut order: Vec<u32> = (0..tree.nodes.len() as u32).collect();
    order.sort_unstable_by(|&a, &b| total(b).cmp(&total(a)).then(a.cmp(&b)));
    let omitted = order.len().saturating_sub(max_nodes) as u64;
    order.truncate(max_nodes);
    let mut place: HashMap<u32, u32> = HashMap::default();
    let mut short: HashMap<u32, u32> = HashMap::default();
    let mut out = Flame { omitted, ..Flame::default() };
    for number in order {
        let Some(node) = tree.node(number) else { continue };
        place.insert(number, out.name.len() as u32);
        let name = *short.entry(node.name).or_insert_with(|| {
            out.names.push(tree.name(node).into());
            (out.names.len() as u32).saturating_sub(1)
        });
        out.name.push(name);
        out.parent.push(place.get(&node.parent).copied().unwrap_or(0));
        out.total_ns.push(node.total.weight);
        out.self_ns.push(node.own.weight);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::tests::sampled;

    #[test]
    fn the_heaviest_nodes_stay_with_their_parents() {
        // In a process whose name is not known: a 10 (self 1) > b 7 (self 7), a > c 2 > d 2; e 5.
        let db = sampled(&[
            ("thread", 0, 1, "| m!a"),
            ("thread", 0, 7, "| m!b m!a"),
            ("thread", 0, 2, "| m!d m!c m!a"),
            ("thread", 0, 5, "| m!e"),
        ]);
        let all = flame(&db, 5).unwrap();
        let shown: Vec<(&str, u32, i64, i64)> = (0..all.name.len())
            .map(|n| {
                let name = all.names[all.name[n] as usize].name.as_str();
                (name, all.parent[n], all.total_ns[n] / 1_000_000, all.self_ns[n] / 1_000_000)
            })
            .collect();
        let expected = [
            ("all processes", 0, 15, 0),
            ("[unknown process]", 0, 15, 0),
            ("m!a", 1, 10, 1),
            ("m!b", 2, 7, 7),
            ("m!e", 1, 5, 5),
        ];
        assert_eq!(shown, expected);
        assert_eq!(all.omitted, 2);
    }

    #[test]
    fn dpcs_and_isrs_are_nobodys() {
        let db = sampled(&[("dpc", 0, 3, "x.sys!f"), ("isr", 0, 2, "y.sys!g"), ("thread", 0, 1, "| m!a")]);
        let all = flame(&db, 100).unwrap();
        let at = all.names.iter().position(|n| n.kind == "interrupt").unwrap() as u32;
        let node = all.name.iter().position(|&n| n == at).unwrap();
        assert_eq!((all.names[at as usize].name.as_str(), all.total_ns[node]), ("[DPC and ISR]", 5_000_000));
    }

    #[test]
    fn nothing_makes_no_flame() {
        assert!(flame(&Database::new(), 100).is_none());
    }
}
