//! Stacks and the time that was sampled on them.

use etwhy_table::Database;
use etwhy_trace::catalog::{
    stack::{StackFrameRow, StackRow},
    stack_cost::StackCostRow,
};

/// Classes of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Classes {
    /// In a thread.
    Thread,
    /// In a DPC.
    Dpc,
    /// In an ISR.
    Isr,
}

impl Classes {
    /// The word in tables.
    pub fn name(self) -> &'static str {
        match self {
            Classes::Thread => "thread",
            Classes::Dpc => "dpc",
            Classes::Isr => "isr",
        }
    }
}

/// Sampled time of one class and process.
pub(crate) struct Group {
    /// The class.
    pub class: Classes,
    /// Process, -1 if it is not known.
    pub upid: i64,
    /// Its stacks.
    pub rows: Vec<Row>,
}

/// Sampled time of one stack.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    /// Stack, -1 if there is none.
    pub stack: i64,
    /// Samples.
    pub samples: i64,
    /// Time that they stand for.
    pub weight: i64,
}

/// The rows of `stack_cost` in groups.
pub(crate) fn groups(db: &Database) -> Vec<Group> {
    let mut all: Vec<(Classes, i64, Row)> = Vec::new();
    for row in &db.read_or_empty::<StackCostRow>() {
        let class = match row.class() {
            "dpc" => Classes::Dpc,
            "isr" => Classes::Isr,
            _ => Classes::Thread,
        };
        let (samples, weight) = (row.samples(), row.weight_ns());
        let stack = row.stack_id().unwrap_or(-1);
        all.push((class, row.upid().unwrap_or(-1), Row { stack, samples, weight }));
    }
    all.sort_by_key(|(class, upid, row)| (*class, *upid, row.stack));
    let mut out: Vec<Group> = Vec::new();
    for (class, upid, row) in all {
        match out.last_mut() {
            Some(group) if (group.class, group.upid) == (class, upid) => group.rows.push(row),
            _ => out.push(Group { class, upid, rows: vec![row] }),
        }
    }
    out
}

/// Frames of a stack, innermost first.
#[derive(Clone, Copy, Default)]
pub(crate) struct Part<'s> {
    /// Frames of the kernel.
    pub kernel: &'s [u32],
    /// Frames of the process.
    pub user: &'s [u32],
}

impl<'s> Part<'s> {
    /// All frames.
    pub fn frames(&self) -> impl Iterator<Item = u32> + 's {
        self.kernel.iter().chain(self.user).copied()
    }

    /// The innermost frame.
    pub fn leaf(&self) -> Option<u32> {
        self.frames().next()
    }
}

/// Frames of all stacks.
#[derive(Default)]
pub(crate) struct Stacks {
    /// Where each stack's frames begin; one more for the end.
    starts: Vec<u32>,
    kernel: Vec<u32>,
    frames: Vec<u32>,
}

impl Stacks {
    /// Reads `stack` and `stack_frame`.
    pub fn read(db: &Database) -> Stacks {
        let mut out = Stacks { starts: vec![0], kernel: Vec::new(), frames: Vec::new() };
        let count = |n: i64| u32::try_from(n).unwrap_or(0);
        let mut total = 0u32;
        for row in &db.read_or_empty::<StackRow>() {
            let depth = count(row.depth());
            total = total.saturating_add(depth);
            out.starts.push(total);
            out.kernel.push(count(row.kernel_depth()).min(depth));
        }
        let frames = db.read_or_empty::<StackFrameRow>();
        out.frames.extend(frames.iter().map(|row| u32::try_from(row.frame_id()).unwrap_or(super::NONE)));
        out
    }

    /// The frames of a stack.
    pub fn of(&self, stack: i64) -> Part<'_> {
        let find = || {
            let stack = usize::try_from(stack).ok()?;
            let (from, to) = (*self.starts.get(stack)? as usize, *self.starts.get(stack + 1)? as usize);
            self.frames.get(from..to)?.split_at_checked(*self.kernel.get(stack)? as usize)
        };
        let (kernel, user) = find().unwrap_or((&[], &[]));
        Part { kernel, user }
    }
}
