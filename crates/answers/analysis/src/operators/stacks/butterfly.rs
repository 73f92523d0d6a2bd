//! A function from both sides: who calls it, what it calls.
//!
//! A stack counts once, however often the function stands on it. Its callers are those of the outermost place, its
//! callees those of the innermost one, so that what is the function's own is what ends in it; what lies between (recursion) is in
//! neither.

use super::tree::{Grow, NodeName, Path, Sum, Tree};
use std::collections::BTreeMap;

/// Callers and callees.
#[derive(Clone, Debug, Default)]
pub struct Butterfly {
    /// Names of the functions that were meant and stand on stacks.
    pub functions: Vec<NodeName>,
    /// With the function on the stack.
    pub inclusive: Sum,
    /// In the function itself.
    pub exclusive: Sum,
    /// Of all stacks, with the function and without.
    pub all: Sum,
    /// Of the part before steps.
    pub before_steps: Sum,
    /// Stacks on which it stands more than once.
    pub recursive: Sum,
    /// Callers: the root is the function, its callers are its children, their callers below them.
    pub callers: Tree,
    /// Callees: the root is the function.
    pub callees: Tree,
    /// Inclusive and exclusive sums by group, if groups were asked for, the largest first.
    pub by_group: Vec<(String, Sum, Sum)>,
}

/// Both trees while they grow.
pub(super) struct Halves {
    matched: Vec<bool>,
    seen: Vec<bool>,
    callers: Grow,
    callees: Grow,
    root: u32,
    out: Butterfly,
    groups: BTreeMap<Vec<u32>, (Sum, Sum)>,
}

impl Halves {
    /// `matched`: for each name of a frame whether the function is meant.
    pub fn new(root: u32, matched: Vec<bool>) -> Halves {
        let seen = vec![false; matched.len()];
        let (callers, callees) = (Grow::new(root), Grow::new(root));
        let (out, groups) = (Butterfly::default(), BTreeMap::new());
        Halves { matched, seen, callers, callees, root, out, groups }
    }

    pub fn add(&mut self, path: &Path<'_>) {
        let is = |name: &u32| self.matched.get(*name as usize) == Some(&true);
        self.out.all.add(path.sum);
        let (Some(outer), Some(inner)) = (path.frames.iter().position(is), path.frames.iter().rposition(is))
        else {
            return;
        };
        for &name in path.frames.iter().filter(|name| is(name)) {
            if let Some(seen) = self.seen.get_mut(name as usize) {
                *seen = true;
            }
        }
        self.out.inclusive.add(path.sum);
        let above = path.frames.get(..outer).unwrap_or(&[]);
        let below = path.frames.get(inner + 1..).unwrap_or(&[]);
        let group = self.groups.entry(path.groups.to_vec()).or_default();
        group.0.add(path.sum);
        if below.is_empty() {
            self.out.exclusive.add(path.sum);
            group.1.add(path.sum);
        }
        if outer != inner {
            self.out.recursive.add(path.sum);
        }
        self.callers.add(above.iter().rev().copied(), path.sum, None);
        self.callees.add(below.iter().copied(), path.sum, None);
    }

    pub fn finish(self, mut names: Vec<NodeName>) -> Butterfly {
        let mut out = self.out;
        let seen = self.seen.iter().enumerate().filter(|(_, seen)| **seen);
        out.functions = seen.filter_map(|(number, _)| names.get(number).cloned()).collect();
        let label = match out.functions.as_slice() {
            [one] => one.clone(),
            [first, ..] if out.functions.iter().all(|f| f.module == first.module) => {
                NodeName { label: first.module.clone(), tag: String::new(), ..first.clone() }
            }
            many => NodeName::named(format!("[{} functions]", many.len()), super::tree::NodeKind::Group),
        };
        let text = |path: &[u32]| {
            let labels: Vec<&str> =
                path.iter().filter_map(|&n| names.get(n as usize)).map(|n| n.label.as_str()).collect();
            labels.join(" / ")
        };
        out.by_group = self.groups.iter().map(|(path, (all, own))| (text(path), *all, *own)).collect();
        out.by_group.sort_by(|a, b| b.1.weight.cmp(&a.1.weight).then_with(|| a.0.cmp(&b.0)));
        if let Some(root) = names.get_mut(self.root as usize) {
            *root = label;
        }
        out.callers = self.callers.finish(names.clone());
        out.callees = self.callees.finish(names);
        out
    }
}
