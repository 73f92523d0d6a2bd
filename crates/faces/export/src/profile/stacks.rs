//! Stacks and what their frames are called.

use super::At;
use super::column::row;
use etwhy_table::{Database, Rows};
use etwhy_trace::catalog::stack::FrameRow;

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
    stacks: etwhy_trace::stacks::Stacks,
    frames: Rows<'a, FrameRow>,
}

impl<'a> Stacks<'a> {
    /// Those of tables `stack`, `stack_frame` and `frame`.
    pub fn read(db: &'a Database) -> Stacks<'a> {
        Stacks { stacks: etwhy_trace::stacks::Stacks::read(db), frames: db.read_or_empty() }
    }

    /// Number of frames.
    pub fn frames(&self) -> u32 {
        self.frames.len() as u32
    }

    /// Frames (rows of table `frame`) of a stack, innermost first. A stack that is not there has none.
    pub fn frames_of(&self, stack: Option<u32>) -> &[u32] {
        self.stacks.frames(stack.map(i64::from))
    }

    /// Frames of the place of a weight, innermost first.
    pub fn at(&self, at: At) -> impl DoubleEndedIterator<Item = u32> {
        let all = self.frames_of(at.stack);
        let own = all.get(..at.own.map_or(all.len(), |own| own as usize)).unwrap_or(all);
        own.iter().copied().chain(at.frame.filter(|_| own.is_empty()))
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
