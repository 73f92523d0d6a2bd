//! Two trees compared, path by path.

use super::tree::{NodeKind, Tree};
use foldhash::HashMap;

/// What a tree was before.
#[derive(Clone, Debug, Default)]
pub struct Before {
    /// For each node of the tree the weight of the same path before; 0 if there was none.
    pub weights: Vec<i64>,
    /// Weight of paths that the tree no longer has.
    pub gone: i64,
}

impl Tree {
    /// The weights that the paths of this tree have in `before`. Paths are the same if all names and kinds on them are.
    pub fn compared_with(&self, before: &Tree) -> Before {
        let mut children: HashMap<(u32, NodeKind, &str), u32> = HashMap::default();
        for (number, node) in before.nodes.iter().enumerate().skip(1) {
            let name = before.name(node);
            children.insert((node.parent, name.kind, name.label.as_str()), number as u32);
        }
        let mut same: Vec<Option<u32>> = Vec::with_capacity(self.nodes.len());
        let mut seen = vec![false; before.nodes.len()];
        for (number, node) in self.nodes.iter().enumerate() {
            let name = self.name(node);
            let parent = same.get(node.parent as usize).copied().flatten();
            let found = match number {
                0 => (!before.nodes.is_empty()).then_some(0),
                _ => parent.and_then(|p| children.get(&(p, name.kind, name.label.as_str())).copied()),
            };
            if let Some(seen) = found.and_then(|f| seen.get_mut(f as usize)) {
                *seen = true;
            }
            same.push(found);
        }
        let weight = |n: Option<u32>| n.and_then(|n| before.node(n)).map_or(0, |node| node.total.weight);
        // Of paths that are gone the outermost nodes hold it all.
        let outermost = before.nodes.iter().enumerate().skip(1).filter(|(number, node)| {
            seen.get(*number) == Some(&false) && seen.get(node.parent as usize) == Some(&true)
        });
        let gone = outermost.fold(0i64, |sum, (_, node)| sum.saturating_add(node.total.weight));
        Before { weights: same.into_iter().map(weight).collect(), gone }
    }
}
