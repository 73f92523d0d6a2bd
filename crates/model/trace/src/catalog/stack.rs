//! Stacks and frames: every distinct stack of the trace, and every distinct place in code on one.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event};
use etwhy_knowledge::{FrameTag, deciding_frame, tag_path};
use etwhy_table::{Sym, TableBuilder, define_table};

define_table! {
    /// Distinct stacks. Rows of other tables refer to them by `stack_id`.
    pub table STACK: StackRow = "stack" {
        version: 2, evidence: Verified("corpus traces with plain stacks and with stack keys"),
        /// Number of the stack.
        stack_id: i32 [None, Stack],
        /// Process in which it was taken.
        upid: Option<i32> [None, Process],
        /// Number of frames.
        depth: i32 [Count, Count],
        /// Frames of the kernel, at the inner end.
        kernel_depth: i32 [Count, Count],
        /// No stack was recorded: its only frame is the instruction pointer of the event.
        leaf_only: bool [None, Flag],
        /// Innermost frame (table `frame`).
        leaf_frame_id: Option<i32> [None, Frame],
        /// Outermost frame (table `frame`).
        root_frame_id: Option<i32> [None, Frame],
        /// Innermost frame in words.
        leaf: Option<Sym> [None, Name],
        /// Outermost frame in words.
        root: Option<Sym> [None, Name],
        /// What the stack is about, from the general to the special, joined by backslashes: its one stack tag, from `--tags` or
        /// from the knowledge base.
        tag: Option<Sym> [None, Name],
    }
}

define_table! {
    /// Distinct places in code that stand on stacks.
    pub table FRAME: FrameRow = "frame" {
        version: 1, evidence: Verified("corpus traces; .NET names against PerfView baselines"),
        /// Number of the frame.
        frame_id: i32 [None, Frame],
        /// An address at which it was seen (libraries may stand elsewhere in other processes).
        address: i64 [Address, Address],
        /// Image (table `image`), of one of the processes that have it.
        image_id: Option<i32> [None, Image],
        /// File name of the image; `[.NET]` for code compiled at run time, `[unknown]` if there is none.
        module: Sym [None, Name],
        /// Offset in the image.
        rva: Option<i64> [Address, Address],
        /// Function, if symbols or the .NET runtime named it.
        function: Option<Sym> [None, Name],
        /// Source file.
        file: Option<Sym> [None, Path],
        /// Source line.
        line: Option<i32> [None, Other],
        /// kernel, user, managed or unknown.
        kind: Sym [None, Kind],
        /// `module!function`, else `module!+0xrva`.
        label: Sym [None, Name],
        /// Where the name came from: pdb, breakpad, export (then it is that of the nearest export, with ~ in front, and
        /// may be wrong), clr, none.
        symbol_source: Sym [None, Kind],
        /// The function is inlined into that of the next frame outwards, which has the same address; that frame's file
        /// and line are those of the call.
        inlined: bool [None, Flag],
        /// The image was borrowed from other processes, because nothing is known of this one's.
        guessed: bool [None, Flag],
        /// Category of the module, from the knowledge base.
        category: Option<Sym> [None, Kind],
        /// Stack tag of module and function, from the knowledge base.
        tag: Option<Sym> [None, Kind],
    }
}

define_table! {
    /// Frames of stacks, one row per stack and position.
    pub table STACK_FRAME: StackFrameRow = "stack_frame" {
        version: 1, evidence: Verified("corpus traces with plain stacks and with stack keys"),
        /// Stack (table `stack`).
        stack_id: i32 [None, Stack],
        /// Position, 0 is the innermost.
        position: i32 [Count, Other],
        /// Frame (table `frame`).
        frame_id: i32 [None, Frame],
    }
}

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&STACK, &FRAME, &STACK_FRAME],
    selects: &[],
    stacks: true,
    on_demand: false,
    new: |memory| {
        Box::new(Stacks {
            stacks: TableBuilder::new(memory),
            frames: TableBuilder::new(memory),
            stack_frames: TableBuilder::new(memory),
        })
    },
};

struct Stacks {
    stacks: TableBuilder<StackRow>,
    frames: TableBuilder<FrameRow>,
    stack_frames: TableBuilder<StackFrameRow>,
}

impl Analysis for Stacks {
    fn event(&mut self, _: &Event<'_>, _: &mut Context<'_>) {}

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let resolved = end.resolved;
        let tags: Vec<Option<FrameTag>> = resolved
            .frames
            .iter()
            .map(|frame| {
                let function = frame.function.map_or("", |f| end.strings.get(f));
                FrameTag::for_frame(end.strings.get(frame.module), function)
            })
            .collect();
        for (number, stack) in resolved.stacks.iter().enumerate() {
            let frames = resolved.frames_of(number as u32);
            let label = |frame: Option<&u32>| resolved.frames.get(*frame? as usize).map(|f| f.label);
            let best = deciding_frame(frames.iter().map(|&f| tags.get(f as usize).copied().flatten()));
            let named = |at: usize| {
                let frame = resolved.frames.get(*frames.get(at)? as usize)?;
                Some((end.strings.get(frame.module), frame.function.map(|f| end.strings.get(f))))
            };
            let tag = best.map(|(at, tag)| tag_path(at, tag, named));
            self.stacks.push(StackRow {
                stack_id: number as i32,
                upid: stack.upid.map(|u| u as i32),
                depth: frames.len() as i32,
                kernel_depth: resolved.kernel_depth(number as u32) as i32,
                leaf_only: stack.leaf_only,
                leaf_frame_id: frames.first().map(|&f| f as i32),
                root_frame_id: frames.last().map(|&f| f as i32),
                leaf: label(frames.first()),
                root: label(frames.last()),
                tag: tag.map(|tag| end.strings.intern(&tag)),
            });
            for (position, &frame) in frames.iter().enumerate() {
                self.stack_frames.push(StackFrameRow {
                    stack_id: number as i32,
                    position: position as i32,
                    frame_id: frame as i32,
                });
            }
        }
        for (number, frame) in resolved.frames.iter().take(resolved.listed).enumerate() {
            let module = end.strings.get(frame.module).to_owned();
            let function = frame.function.map_or(String::new(), |f| end.strings.get(f).to_owned());
            let category = etwhy_knowledge::category_of(&module, company_of(end, frame.image));
            let category = category.map(|c| c.category).filter(|c| !c.is_empty());
            let tag = etwhy_knowledge::stack_tag(&module, &function).map(|t| t.category);
            self.frames.push(FrameRow {
                frame_id: number as i32,
                address: frame.address as i64,
                image_id: frame.image.map(|i| i as i32),
                module: frame.module,
                rva: frame.rva.map(|r| r as i64),
                function: frame.function,
                file: frame.file,
                line: frame.line,
                kind: end.strings.intern(frame.kind.name()),
                label: frame.label,
                symbol_source: end.strings.intern(frame.source),
                inlined: frame.inlined,
                guessed: frame.guessed,
                category: category.map(|c| end.strings.intern(c)),
                tag: tag.map(|t| end.strings.intern(t)),
            });
        }
        Ok(vec![self.stacks.into(), self.frames.into(), self.stack_frames.into()])
    }
}

/// Company of an image's version resource; empty if unknown.
pub(crate) fn company_of<'f>(end: &'f Finish<'_>, image: Option<u32>) -> &'f str {
    let image = image.and_then(|n| end.model.images.all().get(n as usize));
    let company = image.and_then(|i| end.model.images.version(i)).and_then(|v| v.company);
    company.map_or("", |c| end.strings.get(c))
}
