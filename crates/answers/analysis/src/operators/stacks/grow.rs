//! From weights to trees.
//!
//! Weights with the same stack and groups are added up first, then each such path is folded and hung into the tree once. Children are
//! found by (parent, name), both numbers.

use super::butterfly::Butterfly;
use super::folding::{Folder, Folding};
use super::frames::Frames;
use super::groups::{GroupBy, Groups};
use super::matcher::Matcher;
use super::steps::{Step, Stepper};
use super::tree::{Grow, NodeKind, NodeName, Path, Sum, Tree};
use super::{Class, Metric, TracePart, WeightedStack};
use etwhy_table::Database;
use foldhash::HashMap;

/// What a tree shows.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Levels between the root and the frames.
    pub groups: Vec<GroupBy>,
    /// Bottom-up: functions in which stacks end are outermost, their callers below them.
    pub inverted: bool,
    /// How paths are made simpler.
    pub folding: Folding,
    /// How they are made simpler after that, one step after the other.
    pub steps: Vec<Step>,
    /// DPCs and ISRs stand under one node, not each under its own.
    pub one_interrupt: bool,
    /// Processes and threads go by their names alone, which two traces may share.
    pub without_ids: bool,
}

/// Weights on their way to a tree.
pub struct Builder<'f> {
    frames: &'f Frames,
    folder: Folder,
    steps: Vec<Stepper>,
    groups: Groups,
    names: Vec<NodeName>,
    sums: HashMap<Key, Sum>,
    inverted: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key {
    class: Class,
    upid: Option<i64>,
    utid: Option<i64>,
    stack: Option<i64>,
    frame: Option<i64>,
}

impl Key {
    fn weight(&self) -> WeightedStack {
        let Key { class, upid, utid, stack, frame } = *self;
        WeightedStack { class, upid, utid, stack, frame, ..WeightedStack::default() }
    }
}

impl<'f> Builder<'f> {
    /// Begins a tree.
    pub fn new(db: &Database, frames: &'f Frames, view: &View) -> Builder<'f> {
        let mut names: Vec<NodeName> = frames.names().iter().map(NodeName::from).collect();
        let folder = Folder::new(&view.folding, frames, &mut names);
        let steps = view.steps.iter().map(|step| Stepper::new(step, frames, &mut names)).collect();
        let groups = Groups::read(db, &view.groups, view.one_interrupt, view.without_ids);
        Builder { frames, folder, steps, groups, names, sums: HashMap::default(), inverted: view.inverted }
    }

    /// Adds a weight. Negative ones, which only damage makes, do not count.
    pub fn add(&mut self, weight: &WeightedStack) {
        if weight.weight < 0 {
            return;
        }
        let (class, upid, utid) = self.groups.key(weight);
        let frame = weight.frame.filter(|_| weight.stack.is_none());
        let sum = self.sums.entry(Key { class, upid, utid, stack: weight.stack, frame }).or_default();
        sum.add(&Sum {
            weight: weight.weight,
            count: weight.count,
            first_ns: weight.ts_ns,
            last_ns: weight.ts_ns,
        });
    }

    /// Hands over each distinct path; returns the names, and the sum before the steps.
    pub(super) fn paths(mut self, mut each: impl FnMut(Path<'_>)) -> (Vec<NodeName>, Sum) {
        let mut before = Sum::default();
        let no_stack = self.names.len() as u32;
        self.names.push(NodeName::named("[no stack]", NodeKind::NoStack));
        let mut sums: Vec<(Key, Sum)> = std::mem::take(&mut self.sums).into_iter().collect();
        sums.sort_unstable_by_key(|(key, _)| *key);
        let (mut frames, mut groups) = (Vec::new(), Vec::new());
        for (key, sum) in &sums {
            let weight = key.weight();
            frames.clear();
            frames.extend(self.frames.frames_of(&weight).filter_map(|f| self.frames.name_of(f)));
            let innermost = frames.clone();
            frames.reverse();
            let had_none = frames.is_empty();
            let (counts, trimmed) = self.folder.fold(&mut frames);
            if !counts {
                continue;
            }
            if had_none {
                frames.push(no_stack);
            }
            groups.clear();
            self.groups.path(&weight, &innermost, self.frames, &mut self.names, &mut groups);
            before.add(sum);
            let (names, mut trimmed) = (&self.names, trimmed);
            let counts = self.steps.iter().all(|step| {
                let (counts, cut_off) = step.fold(names, &groups, &mut frames);
                trimmed |= cut_off;
                counts
            });
            if !counts {
                continue;
            }
            let cut = !trimmed && !had_none && self.frames.is_cut(&weight);
            each(Path { groups: &groups, frames: &frames, sum, cut });
        }
        (self.names, before)
    }

    /// The tree.
    pub fn finish(mut self, root: &str) -> Tree {
        let mut grow = Grow::new(self.names.len() as u32);
        self.names.push(NodeName::named(root, NodeKind::Root));
        let inverted = self.inverted;
        let (names, before_steps) = self.paths(|path| {
            let groups = path.groups.iter().copied();
            if inverted {
                grow.add(groups.chain(path.frames.iter().rev().copied()), path.sum, None);
            } else {
                let cut = path.cut.then_some(path.groups.len());
                grow.add(groups.chain(path.frames.iter().copied()), path.sum, cut);
            }
        });
        Tree { before_steps, ..grow.finish(names) }
    }

    /// What calls the functions that `matcher` means, and what they call.
    pub fn butterfly(mut self, matcher: &Matcher) -> Butterfly {
        let matched: Vec<bool> = self.frames.names().iter().map(|name| matcher.matches(name)).collect();
        let root = self.names.len() as u32;
        self.names.push(NodeName::default());
        let mut grown = super::butterfly::Halves::new(root, matched);
        let (names, before_steps) = self.paths(|path| grown.add(&path));
        Butterfly { before_steps, ..grown.finish(names) }
    }
}

/// The tree of a metric over a part of the trace.
pub fn tree(db: &Database, frames: &Frames, metric: &Metric, part: &TracePart, view: &View) -> Tree {
    let mut builder = Builder::new(db, frames, view);
    metric.each_of(db, part, &mut |weight| builder.add(&weight));
    builder.finish("[all]")
}

/// Callers and callees of the functions that `matcher` means.
pub fn butterfly(
    db: &Database,
    frames: &Frames,
    metric: &Metric,
    part: &TracePart,
    view: &View,
    matcher: &Matcher,
) -> Butterfly {
    let mut builder = Builder::new(db, frames, view);
    metric.each_of(db, part, &mut |weight| builder.add(&weight));
    builder.butterfly(matcher)
}
