//! Paths of calls made simpler before they become a tree.
//!
//! The order is fixed: which stacks count (`focus`, `exclude`), what is cut off (`above`, `below`), which frames go (`drop`, code of
//! Windows), what becomes one (modules, recursion). None of it changes the sum of all stacks that count.

use super::frames::{FrameName, Frames};
use super::matcher::Matcher;
use super::tree::{NodeKind, NodeName};

/// How paths are made simpler.
#[derive(Clone, Debug, Default)]
pub struct Folding {
    /// Only stacks in which each of these has a frame (PerfView's IncPats: all must match).
    pub focus: Vec<Matcher>,
    /// No stacks in which one of these has a frame (PerfView's ExcPats).
    pub exclude: Vec<Matcher>,
    /// Callers of these are left out: the path begins at the outermost frame that matches.
    pub above: Vec<Matcher>,
    /// What these call is theirs: the path ends at the outermost frame that matches.
    pub below: Vec<Matcher>,
    /// Frames that are left out; their weight is their caller's (PerfView's FoldPats).
    pub drop: Vec<Matcher>,
    /// Code of Windows is left out; its weight is that of the code that called it.
    pub just_my_code: bool,
    /// Adjacent frames of these modules become one that is called as the module.
    pub collapse: Vec<Matcher>,
    /// A function that is called again inside of itself stands once: what lies between is left out.
    pub merge_recursion: bool,
}

/// What the folding knows of a name.
#[derive(Clone, Copy, Default)]
struct Flags {
    /// Which of `focus` it matches, by bits.
    focus: u64,
    exclude: bool,
    above: bool,
    below: bool,
    drop: bool,
    unnamed: bool,
    /// The name that it becomes.
    becomes: Option<u32>,
}

/// A folding that knows the names of a trace. Numbers of names are those of [`Frames::names`].
pub(super) struct Folder {
    flags: Vec<Flags>,
    /// Bits of all of `focus`.
    all: u64,
    merge_recursion: bool,
    /// The frames that were left out were all.
    system: u32,
    just_my_code: bool,
    trims: (bool, bool),
}

/// Matchers that `focus` may have.
pub const MAX_FOCUS: usize = 64;

impl Folder {
    /// Looks at all names, and adds those that it needs.
    pub fn new(folding: &Folding, frames: &Frames, names: &mut Vec<NodeName>) -> Folder {
        let system = names.len() as u32;
        names.push(NodeName::named("[code of Windows]", NodeKind::System));
        let mut modules: Vec<(String, NodeKind, u32)> = Vec::new();
        let mut flags = Vec::with_capacity(frames.names().len());
        // A folding before this one may have made names: modules that became one frame.
        let made: Vec<FrameName> =
            names.get(frames.names().len()..).unwrap_or(&[]).iter().map(FrameName::from).collect();
        for (number, name) in frames.names().iter().chain(&made).enumerate() {
            let windows = || match frames.names().get(number) {
                Some(_) => frames.is_windows(number as u32),
                None => frames
                    .names()
                    .iter()
                    .position(|f| name.kind == f.kind && !f.module.is_empty() && f.module == name.module)
                    .is_some_and(|n| frames.is_windows(n as u32)),
            };
            let any = |list: &[Matcher]| list.iter().any(|m| m.matches(name));
            let focus = folding.focus.iter().take(MAX_FOCUS).enumerate();
            let focus = focus.filter(|(_, m)| m.matches(name)).fold(0, |bits, (at, _)| bits | 1u64 << at);
            let collapsed = folding.collapse.iter().any(|m| m.matches_module(&name.module));
            let becomes = collapsed.then(|| {
                let kind = NodeKind::from(name.kind);
                let known = modules.iter().find(|(module, k, _)| *k == kind && *module == name.module);
                known.map(|(_, _, number)| *number).unwrap_or_else(|| {
                    let number = names.len() as u32;
                    let label = name.module.clone();
                    names.push(NodeName { label, tag: String::new(), ..NodeName::from(name) });
                    modules.push((name.module.clone(), kind, number));
                    number
                })
            });
            flags.push(Flags {
                focus,
                exclude: any(&folding.exclude),
                above: any(&folding.above),
                below: any(&folding.below),
                drop: any(&folding.drop) || folding.just_my_code && windows(),
                unnamed: name.function.is_none(),
                becomes,
            });
        }
        let asked = folding.focus.len().min(MAX_FOCUS) as u32;
        Folder {
            flags,
            all: 1u64.checked_shl(asked).map_or(u64::MAX, |bits| bits - 1),
            merge_recursion: folding.merge_recursion,
            system,
            just_my_code: folding.just_my_code,
            trims: (!folding.above.is_empty(), !folding.below.is_empty()),
        }
    }

    fn of(&self, name: u32) -> Flags {
        self.flags.get(name as usize).copied().unwrap_or_default()
    }

    /// Folds a path, outermost first, in place. False: the stack does not count. The second result: the outermost frame is no longer
    /// the one that it was.
    pub fn fold(&self, path: &mut Vec<u32>) -> (bool, bool) {
        let mut seen = 0;
        for &name in path.iter() {
            let flags = self.of(name);
            if flags.exclude {
                return (false, false);
            }
            seen |= flags.focus;
        }
        if seen & self.all != self.all {
            return (false, false);
        }
        let first = path.first().copied();
        let mut trimmed = false;
        if self.trims.0
            && let Some(at) = path.iter().position(|&n| self.of(n).above)
        {
            path.drain(..at);
            trimmed = at > 0;
        }
        if self.trims.1
            && let Some(at) = path.iter().position(|&n| self.of(n).below)
        {
            path.truncate(at + 1);
        }
        let had_frames = !path.is_empty();
        path.retain(|&n| !self.of(n).drop);
        if had_frames && path.is_empty() && self.just_my_code {
            path.push(self.system);
        }
        trimmed |= path.first().copied() != first;
        self.merge(path);
        (true, trimmed)
    }

    /// Makes one of what belongs together.
    fn merge(&self, path: &mut Vec<u32>) {
        let mut to = 0;
        for at in 0..path.len() {
            let Some(&name) = path.get(at) else { break };
            let flags = self.of(name);
            let name = flags.becomes.unwrap_or(name);
            let kept = path.get(..to).unwrap_or(&[]);
            // Addresses without a name in one module are one place.
            let one = flags.becomes.is_some() || flags.unnamed;
            if one && kept.last() == Some(&name) {
                continue;
            }
            // ... and two visits of it need not be the same function.
            if self.merge_recursion
                && (flags.becomes.is_some() || !flags.unnamed)
                && let Some(again) = kept.iter().position(|&n| n == name)
            {
                to = again + 1;
                continue;
            }
            if let Some(place) = path.get_mut(to) {
                *place = name;
            }
            to += 1;
        }
        path.truncate(to);
    }
}
