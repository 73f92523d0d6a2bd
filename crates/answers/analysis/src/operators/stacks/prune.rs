//! Trees made smaller: what is too light, too many or too deep is folded into its parent, visibly.

use super::tree::{Node, NodeKind, NodeName, Tree};

/// Limits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Least weight of a node.
    pub least: i64,
    /// Least share of the root's weight, 0 to 100.
    pub least_percent: f64,
    /// Most nodes, the heaviest.
    pub nodes: Option<usize>,
    /// Most levels below the root.
    pub depth: Option<u32>,
}

impl Tree {
    /// The tree within limits. What is too small becomes a child `[… n others]` of its parent; what is too deep becomes its
    /// parent's own.
    pub fn limited(&self, limits: &Limits) -> Tree {
        let deep = match limits.depth {
            Some(depth) => self.to_depth(depth),
            None => self.clone(),
        };
        let percent = limits.least_percent.clamp(0.0, 100.0) / 100.0 * deep.total().weight as f64;
        let least = limits.least.max(percent.ceil() as i64);
        let kept = deep.kept(least, limits.nodes);
        if kept.iter().all(|k| *k) { deep } else { deep.only(&kept) }
    }

    /// The heaviest nodes that are heavy enough. A parent is not lighter than its child and stands before it, so it is kept too.
    fn kept(&self, least: i64, most: Option<usize>) -> Vec<bool> {
        let weight = |n: usize| self.nodes.get(n).map_or(0, |node| node.total.weight);
        let mut kept: Vec<bool> = (0..self.nodes.len()).map(|n| n == 0 || weight(n) >= least).collect();
        let Some(most) = most else { return kept };
        let mut order: Vec<usize> = (0..kept.len()).filter(|&n| kept.get(n) == Some(&true)).collect();
        order.sort_by_key(|&n| (-weight(n), n));
        for &node in order.iter().skip(most.max(1)) {
            if let Some(kept) = kept.get_mut(node) {
                *kept = false;
            }
        }
        kept
    }

    fn only(&self, kept: &[bool]) -> Tree {
        let mut out = self.without_nodes();
        let mut place: Vec<u32> = Vec::with_capacity(self.nodes.len());
        // The node that stands for others, by the place of its parent.
        let mut others: Vec<(u32, Node)> = Vec::new();
        let mut other_of: Vec<Option<usize>> = Vec::new();
        for (number, node) in self.nodes.iter().enumerate() {
            let keep = kept.get(number) == Some(&true);
            let parent = place.get(node.parent as usize).copied().unwrap_or(0);
            if keep {
                place.push(out.nodes.len() as u32);
                out.nodes.push(Node { parent, ..*node });
                other_of.push(None);
                continue;
            }
            // Below a node that is not kept everything is in that node's total.
            place.push(parent);
            if kept.get(node.parent as usize) != Some(&true) {
                continue;
            }
            let Some(slot) = other_of.get_mut(parent as usize) else { continue };
            let at = *slot.get_or_insert_with(|| {
                others.push((parent, Node { parent, ..Node::default() }));
                others.len() - 1
            });
            if let Some((_, other)) = others.get_mut(at) {
                other.total.add(&node.total);
                other.own.add(&node.total);
                other.folded = other.folded.saturating_add(1);
            }
        }
        let mut names: std::collections::BTreeMap<u32, u32> = std::collections::BTreeMap::new();
        for (_, mut other) in others {
            other.name = *names.entry(other.folded).or_insert_with(|| {
                let plural = if other.folded == 1 { "other" } else { "others" };
                out.names.push(NodeName::named(format!("[… {} {plural}]", other.folded), NodeKind::Others));
                (out.names.len() - 1) as u32
            });
            out.nodes.push(other);
        }
        out
    }

    fn without_nodes(&self) -> Tree {
        Tree {
            names: self.names.clone(),
            nodes: Vec::new(),
            refused: self.refused,
            before_steps: self.before_steps,
        }
    }

    /// At most so many levels below the root; what is deeper is its last visible caller's own.
    fn to_depth(&self, depth: u32) -> Tree {
        let depths = self.depths();
        let mut out = self.without_nodes();
        let mut place: Vec<u32> = Vec::with_capacity(self.nodes.len());
        for (node, at) in self.nodes.iter().zip(depths) {
            let parent = place.get(node.parent as usize).copied().unwrap_or(0);
            if at > depth {
                place.push(parent);
                if let Some(last) = out.nodes.get_mut(parent as usize) {
                    last.folded = last.folded.saturating_add(1);
                }
                continue;
            }
            place.push(out.nodes.len() as u32);
            let own = if at == depth { node.total } else { node.own };
            out.nodes.push(Node { parent, own, ..*node });
        }
        out
    }
}
