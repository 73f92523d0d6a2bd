//! The nodes of a tree that a picture has room for.
//!
//! # How it is computed
//!
//! The heaviest node first: each takes its children into the queue, those below the least weight are counted and left out. A child is
//! never heavier than its parent, so that what is taken is what is heaviest, and parents come before children. No tree is copied.

use super::tree::Tree;
use std::collections::BinaryHeap;

/// A tree with its children by node.
pub struct Ordered {
    /// The tree.
    pub tree: Tree,
    /// Where the children of a node begin in `children`.
    starts: Vec<u32>,
    children: Vec<u32>,
}

/// A node that is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// Number in the tree.
    pub node: u32,
    /// Place of the parent in the list; its own of the first.
    pub parent: u32,
    /// Levels below the first.
    pub depth: u32,
    /// Children in the tree.
    pub children: u32,
    /// Children that are not shown.
    pub left_out: u32,
    /// What they weigh.
    pub left_weight: i64,
}

impl Ordered {
    /// Puts the children of a tree in order.
    pub fn new(tree: Tree) -> Ordered {
        let mut starts = vec![0u32; tree.nodes.len() + 1];
        for node in tree.nodes.iter().skip(1) {
            if let Some(count) = starts.get_mut(node.parent as usize + 1) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut next = starts.clone();
        let mut children = vec![0u32; tree.nodes.len().saturating_sub(1)];
        for (number, node) in tree.nodes.iter().enumerate().skip(1) {
            if let Some(at) = next.get_mut(node.parent as usize) {
                if let Some(slot) = children.get_mut(*at as usize) {
                    *slot = number as u32;
                }
                *at += 1;
            }
        }
        Ordered { tree, starts, children }
    }

    /// Children of a node, in no particular order.
    pub fn children(&self, node: u32) -> &[u32] {
        let at = |n: usize| self.starts.get(n).copied().unwrap_or(0) as usize;
        self.children.get(at(node as usize)..at(node as usize + 1)).unwrap_or(&[])
    }

    /// The node that these labels lead to.
    pub fn find(&self, path: &[String]) -> Option<u32> {
        path.iter().try_fold(0u32, |at, label| {
            let is = |&&child: &&u32| {
                self.tree.node(child).is_some_and(|node| self.tree.name(node).label == **label)
            };
            self.children(at).iter().find(is).copied()
        })
    }

    /// At most so many nodes from `root` on, none lighter than `least`, none deeper than `depth` below it: parents before children,
    /// the heaviest child first, each with all that is below it before the next.
    pub fn shown(&self, root: u32, least: i64, most: usize, depth: u32) -> Vec<Shown> {
        let weight = |node: u32| self.tree.node(node).map_or(0, |n| n.total.weight);
        let count = |node: u32| self.children(node).len() as u32;
        let mut taken: Vec<Shown> = Vec::new();
        // Weight, then what was found first, then place of the parent and depth.
        let mut queue: BinaryHeap<(i64, std::cmp::Reverse<u32>, u32, u32)> = BinaryHeap::new();
        queue.push((weight(root), std::cmp::Reverse(root), 0, 0));
        while let Some((_, std::cmp::Reverse(node), parent, at)) = queue.pop() {
            if taken.len() >= most.max(1) {
                leave_out(&mut taken, parent, weight(node));
                continue;
            }
            let place = taken.len() as u32;
            taken.push(Shown { node, parent, depth: at, children: count(node), ..Shown::default() });
            for &child in self.children(node) {
                if at >= depth || weight(child) < least {
                    leave_out(&mut taken, place, weight(child));
                } else {
                    queue.push((weight(child), std::cmp::Reverse(child), place, at + 1));
                }
            }
        }
        self.in_order(&taken)
    }

    fn in_order(&self, taken: &[Shown]) -> Vec<Shown> {
        // They were taken by weight, so that the children of each stand in order already.
        let mut below: Vec<Vec<u32>> = vec![Vec::new(); taken.len()];
        for (place, one) in taken.iter().enumerate().skip(1) {
            if let Some(list) = below.get_mut(one.parent as usize) {
                list.push(place as u32);
            }
        }
        let mut out: Vec<Shown> = Vec::with_capacity(taken.len());
        let mut open = vec![(0u32, 0u32)];
        while let Some((place, parent)) = open.pop() {
            let Some(one) = taken.get(place as usize) else { continue };
            let now = out.len() as u32;
            out.push(Shown { parent, ..*one });
            open.extend(below.get(place as usize).into_iter().flatten().rev().map(|&child| (child, now)));
        }
        out
    }
}

fn leave_out(taken: &mut [Shown], parent: u32, weight: i64) {
    if let Some(parent) = taken.get_mut(parent as usize) {
        parent.left_out += 1;
        parent.left_weight = parent.left_weight.saturating_add(weight);
    }
}
