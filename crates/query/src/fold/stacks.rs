//! Stacks and the time that was sampled on them.

use crate::operators::for_each_batch;
use etwhy_table::Database;

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
    let columns = ["class", "upid", "stack_id", "samples", "weight_ns"];
    for_each_batch(db, "stack_cost", columns, |n, [class, upid, stack, samples, weight]| {
        for row in 0..n {
            let class = match class.text(row) {
                Some("dpc") => Classes::Dpc,
                Some("isr") => Classes::Isr,
                _ => Classes::Thread,
            };
            let (samples, weight) = (samples.i64(row).unwrap_or(0), weight.i64(row).unwrap_or(0));
            let stack = stack.i64(row).unwrap_or(-1);
            all.push((class, upid.i64(row).unwrap_or(-1), Row { stack, samples, weight }));
        }
    });
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
        let count = |n: Option<i64>| n.and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
        let mut total = 0u32;
        for_each_batch(db, "stack", ["depth", "kernel_depth"], |rows, [depth, kernel]| {
            for row in 0..rows {
                let depth = count(depth.i64(row));
                total = total.saturating_add(depth);
                out.starts.push(total);
                out.kernel.push(count(kernel.i64(row)).min(depth));
            }
        });
        for_each_batch(db, "stack_frame", ["frame_id"], |rows, [frame]| {
            out.frames.extend(
                (0..rows)
                    .map(|row| frame.i64(row).and_then(|f| u32::try_from(f).ok()).unwrap_or(super::NONE)),
            );
        });
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
