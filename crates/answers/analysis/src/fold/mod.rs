//! Sampled time folded along stacks: what the tables of costs have in common.
//!
//! Rows of `stack_cost` are looked at by class and process; within one of these groups every sum has a dense number,
//! so that nothing is hashed per frame. A thing that stands on a stack more than once counts once.

pub mod api_cost;
pub mod driver_cost;
mod facts;
pub mod function_cost;
mod groups;
pub mod module_cost;
pub mod system_work;
pub mod tag_cost;
mod work;

pub use facts::Kind;
pub(crate) use facts::{Facts, FactsRows};
pub(crate) use groups::{Group, Row, groups, interrupts};
pub(crate) use work::{Whose, whose_work};

use crate::operators::{add, process_names};
use etwhy_table::{Database, Strings, Sym, TableError, Texts};
use etwhy_trace::catalog::stack_cost::StackCostRow;
use etwhy_trace::stacks::LastStack;
pub(crate) use etwhy_trace::stacks::{Class, Stack, Stacks, StacksRows};

/// Stands for "none" among dense numbers.
pub(crate) const NONE: u32 = u32::MAX;

/// What [`Fold::read`] reads.
pub(crate) type FoldRows = (StackCostRow, FactsRows, StacksRows);

/// Everything that folding reads.
pub(crate) struct Fold {
    /// What is known of frames.
    pub facts: Facts,
    /// Frames of stacks.
    pub stacks: Stacks,
    /// Sampled time, by class and process.
    pub groups: Vec<Group>,
}

impl Fold {
    /// Reads the tables; `with_tags` if stack tags are wanted.
    pub fn read(db: &Database, with_tags: bool) -> Fold {
        Fold::of(db, groups(db), with_tags)
    }

    /// Reads what is needed to fold these groups.
    pub fn of(db: &Database, groups: Vec<Group>, with_tags: bool) -> Fold {
        if groups.is_empty() {
            return Fold { facts: Facts::default(), stacks: Stacks::default(), groups };
        }
        Fold { facts: Facts::read(db, with_tags), stacks: Stacks::read(db), groups }
    }

    /// Number of the driver that a sample with this stack is charged to ([`Facts::charged`]), or [`NONE`].
    pub fn owner(&self, part: &Stack<'_>) -> u32 {
        self.facts.charged(part).map_or(NONE, |(frame, _)| self.facts.module_of(frame))
    }

    /// The part of a stack that its class is about.
    ///
    /// The stack of a DPC or ISR goes on with the thread that it interrupted by chance. Only what lies inside of the
    /// kernel's dispatcher is its own.
    pub fn part(&self, class: Class, stack: impl Into<Option<i64>>) -> Stack<'_> {
        let part = self.stacks.get(stack);
        if class == Class::Thread {
            return part;
        }
        let dispatch = |frame: &u32| self.facts.is_dispatch(*frame);
        match part.kernel.iter().position(dispatch).and_then(|at| part.kernel.get(..=at)) {
            Some(own) => Stack { kernel: own, user: &[] },
            None => Stack { kernel: part.kernel, user: &[] },
        }
    }
}

/// A stack with its time, as the tables see it.
pub(crate) struct Seen<'s> {
    /// Class of the samples.
    pub class: Class,
    /// Its own part.
    pub part: Stack<'s>,
    /// Number of the driver that it is charged to, or [`NONE`].
    pub owner: u32,
    /// Samples and time.
    pub row: Row,
}

/// Inclusive and exclusive sums of things with dense numbers, for one group at a time.
#[derive(Default)]
pub(crate) struct Sums {
    cells: Vec<Cell>,
    touched: Vec<u32>,
    mark: u32,
}

impl Cell {
    /// It stands on the stack with the number `mark`, which counts once.
    pub fn on_stack(&mut self, mark: u32, samples: i64, weight: i64) {
        if self.last.is_new(mark) {
            add(&mut self.inclusive, weight);
            add(&mut self.samples, samples);
        }
    }
}

/// Sums of one thing.
#[derive(Clone, Copy, Default)]
pub(crate) struct Cell {
    /// Time with it on the stack.
    pub inclusive: i64,
    /// Time in itself.
    pub exclusive: i64,
    /// A third sum, which the table gives its meaning.
    pub charged: i64,
    /// Samples with it on the stack.
    pub samples: i64,
    last: LastStack,
}

impl Sums {
    /// Sums for `n` things.
    pub fn new(n: usize) -> Sums {
        Sums { cells: vec![Cell::default(); n], touched: Vec::new(), mark: 0 }
    }

    /// A new stack begins.
    pub fn next(&mut self) {
        self.mark += 1;
    }

    /// `number` stands on the stack: counts once.
    pub fn on_stack(&mut self, number: u32, samples: i64, weight: i64) {
        let mark = self.mark;
        if let Some(cell) = self.cell(number) {
            cell.on_stack(mark, samples, weight);
        }
    }

    /// The sums of `number`.
    pub fn cell(&mut self, number: u32) -> Option<&mut Cell> {
        let cell = self.cells.get_mut(number as usize)?;
        if cell.last == LastStack::default() {
            self.touched.push(number);
            cell.last = LastStack::OTHER;
        }
        Some(cell)
    }

    /// The sums of the group, the largest first, and makes room for the next group.
    pub fn take(&mut self) -> Vec<(u32, Cell)> {
        let cells = &mut self.cells;
        let mut out: Vec<(u32, Cell)> = std::mem::take(&mut self.touched)
            .into_iter()
            .filter_map(|number| Some((number, std::mem::take(cells.get_mut(number as usize)?))))
            .collect();
        out.sort_unstable_by(|a, b| b.1.inclusive.cmp(&a.1.inclusive).then(a.0.cmp(&b.0)));
        out
    }
}

/// A text that is there if it is not empty.
pub(crate) fn text(strings: &mut Strings, text: &str) -> Option<Sym> {
    (!text.is_empty()).then(|| strings.intern(text))
}

/// An id as the tables hold it.
pub(crate) fn id(number: i64) -> Option<i32> {
    i32::try_from(number).ok().filter(|&n| n >= 0)
}

/// The texts of a table whose rows name processes: with their labels, which are shown beside `upid`.
pub(crate) fn freeze(mut strings: Strings, db: &Database) -> etwhy_table::Result<Texts> {
    for (name, pid) in process_names(db) {
        strings.intern(&format!("{name} ({pid})"));
    }
    freeze_plain(strings)
}

/// The texts of a table whose rows name no processes.
pub(crate) fn freeze_plain(strings: Strings) -> etwhy_table::Result<Texts> {
    strings.freeze().map_err(TableError::texts)
}

#[cfg(test)]
pub(crate) mod tests;
