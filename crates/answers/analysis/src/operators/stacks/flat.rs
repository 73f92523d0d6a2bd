//! Functions without their places in a tree: what each cost with all that it called, and itself.

use super::grow::Builder;
use super::tree::{NodeName, Sum};
use etwhy_trace::stacks::LastStack;

/// A function's sums.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flat {
    /// The function.
    pub name: NodeName,
    /// With it on the stack, however often.
    pub total: Sum,
    /// In itself.
    pub own: Sum,
}

impl Builder<'_> {
    /// All functions that stand on stacks, those that cost most themselves first; the sum of all stacks; and the sum before steps.
    pub fn functions(self) -> (Vec<Flat>, Sum, Sum) {
        // Of each name its sums, and the path in which it was seen last.
        let mut sums: Vec<(Sum, Sum, LastStack)> = Vec::new();
        let (mut number, mut all) = (0u32, Sum::default());
        let (names, before) = self.paths(|path| {
            number = number.wrapping_add(1);
            all.add(path.sum);
            for &name in path.frames {
                let place = name as usize;
                if sums.len() <= place {
                    sums.resize(place + 1, Default::default());
                }
                if let Some((total, _, last)) = sums.get_mut(place)
                    && last.is_new(number)
                {
                    total.add(path.sum);
                }
            }
            if let Some(sum) = path.frames.last().and_then(|&name| sums.get_mut(name as usize)) {
                sum.1.add(path.sum);
            }
        });
        let found =
            names.into_iter().zip(sums).filter(|(_, (total, ..))| total.count > 0 || total.weight > 0);
        let mut out: Vec<Flat> = found.map(|(name, (total, own, _))| Flat { name, total, own }).collect();
        out.sort_by(|a, b| {
            let key = |f: &Flat| (-f.own.weight, -f.total.weight);
            key(a).cmp(&key(b)).then_with(|| a.name.label.cmp(&b.name.label))
        });
        (out, all, before)
    }
}
