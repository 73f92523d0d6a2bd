//! Stacks and frames, read where they stand: nothing is copied but where each stack begins.

use super::At;
use super::column::row;
use etwhy_table::{Database, Rows};
use etwhy_trace::catalog::stack::{FrameRow, StackFrameRow, StackRow};

/// A place in code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    /// File name of the module.
    pub module: &'a str,
    /// Function, if symbols or the .NET runtime named it.
    pub function: Option<&'a str>,
    /// `module!function`, else `module!+0xrva`.
    pub label: &'a str,
    /// kernel, user, managed or unknown.
    pub kind: &'a str,
    /// Source file.
    pub file: Option<&'a str>,
    /// Source line.
    pub line: Option<i64>,
    /// Row of table `image`.
    pub image: Option<u32>,
    /// Offset in the image.
    pub rva: Option<u64>,
    /// An address at which it was seen.
    pub address: u64,
}

/// Stacks and frames of a trace.
pub(crate) struct Stacks<'a> {
    /// Row of `stack_frame` at which each stack begins; one more for the end.
    starts: Vec<u32>,
    on_stack: Rows<'a, StackFrameRow>,
    frames: Rows<'a, FrameRow>,
}

impl<'a> Stacks<'a> {
    /// Those of tables `stack`, `stack_frame` and `frame`.
    pub fn read(db: &'a Database) -> Stacks<'a> {
        let mut starts = vec![0];
        let mut total = 0u32;
        for stack in &db.read_or_empty::<StackRow>() {
            total = total.saturating_add(u32::try_from(stack.depth()).unwrap_or(0));
            starts.push(total);
        }
        Stacks { starts, on_stack: db.read_or_empty(), frames: db.read_or_empty() }
    }

    /// Number of frames.
    pub fn frames(&self) -> u32 {
        self.frames.len() as u32
    }

    /// Frames (rows of table `frame`) of a stack, innermost first. A stack that is not there has none.
    pub fn of(&self, stack: Option<u32>) -> impl DoubleEndedIterator<Item = u32> + ExactSizeIterator {
        let find = || {
            let stack = stack? as usize;
            Some((*self.starts.get(stack)?, *self.starts.get(stack + 1)?))
        };
        let (from, to) = find().unwrap_or((0, 0));
        // An extract may claim more frames than it has.
        let to = to.min(self.on_stack.len() as u32).max(from);
        let (from, to) = (from as usize, to as usize);
        // A damaged extract may name frames that are not there; they become the frame that has no row.
        (from..to).map(|at| self.on_stack.get(at).and_then(|at| row(at.frame_id())).unwrap_or(u32::MAX))
    }

    /// Frames of the place of a weight, innermost first.
    pub fn at(&self, at: At) -> impl DoubleEndedIterator<Item = u32> {
        let all = self.of(at.stack);
        let own = at.own.map_or(all.len(), |own| all.len().min(own as usize));
        all.take(own).chain(at.frame.filter(|_| own == 0))
    }

    /// A frame.
    pub fn frame(&self, frame: u32) -> Frame<'a> {
        let Some(frame) = self.frames.get(frame) else {
            let (module, label, kind) = ("[unknown]", "[unknown]", "unknown");
            return Frame { module, label, kind, ..Frame::default() };
        };
        Frame {
            module: frame.module(),
            function: frame.function(),
            label: frame.label(),
            kind: frame.kind(),
            file: frame.file(),
            line: frame.line().filter(|line| *line > 0),
            image: row(frame.image_id()),
            rva: frame.rva().map(|rva| rva as u64),
            address: frame.address() as u64,
        }
    }
}
