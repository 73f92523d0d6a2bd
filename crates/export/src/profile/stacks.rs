//! Stacks and frames, read where they stand: nothing is copied but where each stack begins.

use super::column::{Column, row};
use etwhy_table::{Database, for_each_batch};

/// A place in code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    frame_id: Column<'a>,
    module: Column<'a>,
    function: Column<'a>,
    label: Column<'a>,
    kind: Column<'a>,
    file: Column<'a>,
    line: Column<'a>,
    image: Column<'a>,
    rva: Column<'a>,
    address: Column<'a>,
}

impl<'a> Stacks<'a> {
    /// Those of tables `stack`, `stack_frame` and `frame`.
    pub fn read(db: &'a Database) -> Stacks<'a> {
        let mut starts = vec![0];
        let mut total = 0u32;
        for_each_batch(db, "stack", ["depth"], |rows, [depth]| {
            for at in 0..rows {
                total = total.saturating_add(row(depth.i64(at)).unwrap_or(0));
                starts.push(total);
            }
        });
        let frame = |name| Column::of(db, "frame", name);
        Stacks {
            starts,
            frame_id: Column::of(db, "stack_frame", "frame_id"),
            module: frame("module"),
            function: frame("function"),
            label: frame("label"),
            kind: frame("kind"),
            file: frame("file"),
            line: frame("line"),
            image: frame("image_id"),
            rva: frame("rva"),
            address: frame("address"),
        }
    }

    /// Number of frames.
    pub fn frames(&self) -> u32 {
        self.label.rows()
    }

    /// Frames (rows of table `frame`) of a stack, innermost first. A stack that is not there has none.
    pub fn of(&self, stack: Option<u32>) -> impl DoubleEndedIterator<Item = u32> + ExactSizeIterator {
        let find = || {
            let stack = stack? as usize;
            Some((*self.starts.get(stack)?, *self.starts.get(stack + 1)?))
        };
        let (from, to) = find().unwrap_or((0, 0));
        // An extract may claim more frames than it has.
        let to = to.min(self.frame_id.rows()).max(from);
        let (from, to) = (from as usize, to as usize);
        // A damaged extract may name frames that are not there; they become the frame that has no row.
        (from..to).map(|at| row(self.frame_id.i64(at as u32)).unwrap_or(u32::MAX))
    }

    /// A frame.
    pub fn frame(&self, frame: u32) -> Frame<'a> {
        let module = self.module.text(frame).unwrap_or("[unknown]");
        Frame {
            module,
            function: self.function.text(frame),
            label: self.label.text(frame).unwrap_or(module),
            kind: self.kind.text(frame).unwrap_or("unknown"),
            file: self.file.text(frame),
            line: self.line.i64(frame).filter(|line| *line > 0),
            image: row(self.image.i64(frame)),
            rva: self.rva.i64(frame).map(|rva| rva as u64),
            address: self.address.i64(frame).unwrap_or(0) as u64,
        }
    }
}
