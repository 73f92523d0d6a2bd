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
//! Only the heaviest stacks and nodes are kept; what was left out stays in the total of the nodes above it.

use super::cpu::{DPC_ISR, StackFrames};
use super::{add, for_each_batch, process_names};
use etwhy_table::Database;
use foldhash::HashMap;
use serde::Serialize;

/// Stacks that are folded, heaviest first: a bound for memory.
const MAX_STACKS: usize = 20_000;

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
}

impl FlameName {
    fn new(name: String, kind: &str) -> FlameName {
        FlameName { name, kind: kind.to_owned(), category: None }
    }
}

#[derive(Default)]
struct Names {
    list: Vec<FlameName>,
    numbers: HashMap<FlameName, u32>,
}

impl Names {
    fn number(&mut self, name: FlameName) -> u32 {
        let next = self.list.len() as u32;
        *self.numbers.entry(name.clone()).or_insert_with(|| {
            self.list.push(name);
            next
        })
    }
}

/// For each frame its name, and whether it has a function.
fn frames(db: &Database, names: &mut Names) -> Vec<(u32, bool)> {
    let mut out = Vec::new();
    let columns = ["module", "label", "function", "category", "kind"];
    for_each_batch(db, "frame", columns, |rows, [module, label, function, category, kind]| {
        for row in 0..rows {
            let module = module.text(row).unwrap_or("[unknown]");
            let named = function.text(row).is_some();
            let name =
                if named { label.text(row).unwrap_or(module).to_owned() } else { format!("{module}!?") };
            let number = names.number(FlameName {
                name,
                kind: kind.text(row).unwrap_or("unknown").to_owned(),
                category: category.text(row).map(str::to_owned),
            });
            out.push((number, named));
        }
    });
    out
}

/// The tree while it grows.
struct Tree {
    name: Vec<u32>,
    parent: Vec<u32>,
    total: Vec<i64>,
    own: Vec<i64>,
    children: HashMap<(u32, u32), u32>,
}

impl Tree {
    fn child(&mut self, parent: u32, name: u32) -> u32 {
        let next = self.name.len() as u32;
        let at = *self.children.entry((parent, name)).or_insert(next);
        if at == next {
            self.name.push(name);
            self.parent.push(parent);
            self.total.push(0);
            self.own.push(0);
        }
        at
    }

    fn add(&mut self, node: u32, weight: i64, own: bool) {
        let sums = if own { &mut self.own } else { &mut self.total };
        if let Some(sum) = sums.get_mut(node as usize) {
            add(sum, weight);
        }
    }
}

/// Folds all CPU samples; keeps the `max_nodes` heaviest nodes. `None` if there is nothing to fold.
pub fn flame(db: &Database, max_nodes: usize) -> Option<Flame> {
    let processes = process_names(db);
    let mut costs: Vec<(i64, i64, i64)> = Vec::new();
    let columns = ["class", "upid", "stack_id", "weight_ns"];
    for_each_batch(db, "stack_cost", columns, |rows, [class, upid, stack, weight]| {
        for row in 0..rows {
            let thread = class.text(row) == Some("thread");
            let upid = if thread { upid.i64(row).unwrap_or(-1) } else { DPC_ISR.1 };
            costs.push((upid, stack.i64(row).unwrap_or(-1), weight.i64(row).unwrap_or(0)));
        }
    });
    if costs.is_empty() || max_nodes == 0 {
        return None;
    }
    costs.sort_unstable_by(|a, b| b.2.cmp(&a.2).then(a.cmp(b)));
    let mut names = Names::default();
    let root = names.number(FlameName::new("all processes".to_owned(), "root"));
    let frames = frames(db, &mut names);
    let stacks = StackFrames::read(db);
    let mut tree = Tree {
        name: vec![root],
        parent: vec![0],
        total: vec![0],
        own: vec![0],
        children: HashMap::default(),
    };
    for (number, &(upid, stack, weight)) in costs.iter().enumerate() {
        let process = match usize::try_from(upid).ok().and_then(|p| processes.get(p)) {
            Some((name, pid)) => FlameName::new(format!("{name} ({pid})"), "process"),
            None if upid == DPC_ISR.1 => FlameName::new(DPC_ISR.0.to_owned(), "interrupt"),
            None => FlameName::new("[unknown process]".to_owned(), "process"),
        };
        tree.add(0, weight, false);
        let mut node = tree.child(0, names.number(process));
        tree.add(node, weight, false);
        if number < MAX_STACKS {
            let mut unnamed = None;
            for &frame in stacks.of(stack).iter().rev() {
                let Some(&(name, named)) = frames.get(frame as usize) else { continue };
                if !named && unnamed == Some(name) {
                    continue;
                }
                unnamed = (!named).then_some(name);
                node = tree.child(node, name);
                tree.add(node, weight, false);
            }
        }
        tree.add(node, weight, true);
    }
    Some(prune(tree, names, max_nodes))
}

/// The heaviest nodes. A parent is never lighter than its child and has the smaller number, so it is kept too.
fn prune(tree: Tree, names: Names, max_nodes: usize) -> Flame {
    let total = |node: u32| tree.total.get(node as usize).copied().unwrap_or(0);
    let mut order: Vec<u32> = (0..tree.name.len() as u32).collect();
    order.sort_unstable_by(|&a, &b| total(b).cmp(&total(a)).then(a.cmp(&b)));
    let omitted = order.len().saturating_sub(max_nodes) as u64;
    order.truncate(max_nodes);
    let mut place: HashMap<u32, u32> = HashMap::default();
    let mut short: HashMap<u32, u32> = HashMap::default();
    let mut out = Flame { omitted, ..Flame::default() };
    for &node in &order {
        let at = node as usize;
        let (Some(&name), Some(&parent)) = (tree.name.get(at), tree.parent.get(at)) else { continue };
        place.insert(node, out.name.len() as u32);
        let number = *short.entry(name).or_insert_with(|| {
            out.names.extend(names.list.get(name as usize).cloned());
            (out.names.len() as u32).saturating_sub(1)
        });
        out.name.push(number);
        out.parent.push(place.get(&parent).copied().unwrap_or(0));
        out.total_ns.push(total(node));
        out.self_ns.push(tree.own.get(at).copied().unwrap_or(0));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(paths: &[(&[&str], i64)]) -> (Tree, Names) {
        let mut names = Names::default();
        let root = names.number(FlameName::new("all".into(), "root"));
        let mut tree = Tree {
            name: vec![root],
            parent: vec![0],
            total: vec![0],
            own: vec![0],
            children: HashMap::default(),
        };
        for (path, weight) in paths {
            let mut node = 0;
            tree.add(0, *weight, false);
            for name in *path {
                let number = names.number(FlameName::new((*name).to_owned(), "user"));
                node = tree.child(node, number);
                tree.add(node, *weight, false);
            }
            tree.add(node, *weight, true);
        }
        (tree, names)
    }

    #[test]
    fn the_heaviest_nodes_stay_with_their_parents() {
        // a 10 (self 1) > b 7 (self 7), a > c 2 > d 2; e 5.
        let (tree, names) = tree(&[(&["a"], 1), (&["a", "b"], 7), (&["a", "c", "d"], 2), (&["e"], 5)]);
        let all = prune(tree, names, 4);
        let shown: Vec<(&str, u32, i64, i64)> = (0..all.name.len())
            .map(|n| {
                let name = all.names[all.name[n] as usize].name.as_str();
                (name, all.parent[n], all.total_ns[n], all.self_ns[n])
            })
            .collect();
        assert_eq!(shown, [("all", 0, 15, 0), ("a", 0, 10, 1), ("b", 1, 7, 7), ("e", 0, 5, 5)]);
        assert_eq!(all.omitted, 2);
    }

    #[test]
    fn nothing_makes_no_flame() {
        assert!(flame(&Database::new(), 100).is_none());
    }
}
