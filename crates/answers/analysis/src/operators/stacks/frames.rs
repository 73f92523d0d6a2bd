//! Frames of weights, and what they are called.

use super::{Class, WeightedStack};
use crate::fold::{Facts, Fold, Kind, NONE, Stacks};
use etwhy_knowledge::{FrameTag, is_thread_start};
use etwhy_table::Database;
use etwhy_trace::catalog::stack::{FrameRow, StackRow};

pub use crate::fold::Kind as FrameKind;

/// What a frame is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameName {
    /// `module!function`; `module!?` where no symbol named the function, so that it does not fall apart into addresses.
    pub label: String,
    /// File name of the image.
    pub module: String,
    /// The function, if it has a name.
    pub function: Option<String>,
    /// Kernel, user, managed or unknown.
    pub kind: Kind,
    /// Category of the module, from the knowledge base; empty if unknown.
    pub category: String,
    /// Stack tag, one of the user's if there is one; empty if it has none.
    pub tag: String,
}

/// Frames of all stacks.
pub struct Frames {
    fold: Fold,
    /// Number of the name of each frame.
    name_of: Vec<u32>,
    names: Vec<FrameName>,
    /// For each name whether it is code of Windows.
    windows: Vec<bool>,
    /// For each stack whether it begins in its middle.
    cut: Vec<bool>,
}

impl Frames {
    /// Reads tables `stack`, `stack_frame`, `frame` and `image`.
    pub fn read(db: &Database) -> Frames {
        let fold = Fold { facts: Facts::read(db, false), stacks: Stacks::read(db), groups: Vec::new() };
        let mut names: Vec<FrameName> = Vec::new();
        let (mut name_of, mut windows) = (Vec::new(), Vec::new());
        // Frames of one function, with the addresses in it, share the number that `Facts` gave the function.
        let mut seen: Vec<u32> = vec![NONE; fold.facts.functions.len()];
        for row in &db.read_or_empty::<FrameRow>() {
            let number = fold.facts.function_of(name_of.len() as u32);
            let Some(place) = seen.get_mut(number as usize) else {
                name_of.push(NONE);
                continue;
            };
            if *place == NONE {
                *place = names.len() as u32;
                let own = fold.facts.module(fold.facts.module_of(name_of.len() as u32));
                windows.push(own.is_some_and(|m| m.os || m.system_library));
                let label = fold.facts.functions.get(number as usize).map(|(label, _)| label.clone());
                let named = (row.module(), row.function());
                names.push(FrameName {
                    label: label.unwrap_or_default(),
                    module: named.0.to_owned(),
                    function: named.1.map(str::to_owned),
                    kind: Kind::from_name(row.kind()),
                    category: row.category().unwrap_or("").to_owned(),
                    tag: match FrameTag::for_frame(named.0, named.1.unwrap_or("")) {
                        Some(FrameTag::File(own)) if !own.path.is_empty() => own.path.clone(),
                        _ => row.tag().unwrap_or("").to_owned(),
                    },
                });
            }
            name_of.push(*place);
        }
        let mut frames = Frames { fold, name_of, names, windows, cut: Vec::new() };
        frames.cut = frames.cut_stacks(db);
        frames
    }

    /// Frames of a weight as rows of table `frame`, innermost first: of a DPC or ISR those inside of the kernel's
    /// dispatcher and the dispatcher itself, of others all.
    pub fn frames_of<'a>(&'a self, weight: &WeightedStack) -> impl Iterator<Item = u32> + use<'a> {
        let part = self.fold.part(weight.class, weight.stack);
        let alone = weight.frame.filter(|_| part.leaf().is_none()).and_then(|f| u32::try_from(f).ok());
        part.frames().chain(alone)
    }

    /// All stacks.
    pub fn stacks(&self) -> &Stacks {
        &self.fold.stacks
    }

    /// Number of a frame's name: the same for all addresses in a function.
    pub fn name_of(&self, frame: u32) -> Option<u32> {
        self.name_of.get(frame as usize).copied().filter(|&n| n != NONE)
    }

    /// The name with this number.
    pub fn name(&self, number: u32) -> Option<&FrameName> {
        self.names.get(number as usize)
    }

    /// All names.
    pub fn names(&self) -> &[FrameName] {
        &self.names
    }

    /// Whether the name with this number is code of Windows: the kernel, drivers that come with it, libraries that programs call.
    pub fn is_windows(&self, number: u32) -> bool {
        self.windows.get(number as usize).copied().unwrap_or(false)
    }

    /// Whether the stack of a weight begins in its middle: it was too deep to be recorded, could not be walked, or its user half
    /// never came.
    pub fn is_cut(&self, weight: &WeightedStack) -> bool {
        let cut = || self.cut.get(usize::try_from(weight.stack?).ok()?).copied();
        weight.class == Class::Thread && cut().unwrap_or(false)
    }

    /// A whole stack begins where a thread begins. A frame without a name is believed if its module is one in which threads begin.
    fn cut_stacks(&self, db: &Database) -> Vec<bool> {
        // System (4) and the idle process have no user half; neither have processes that are only the kernel's.
        let kernel_only: Vec<bool> = crate::operators::process_names(db)
            .iter()
            .map(|(name, pid)| {
                let minimal = ["Registry", "MemCompression", "Memory Compression", "Secure System", "vmmem"];
                *pid == 0 || *pid == 4 || minimal.iter().any(|m| name.eq_ignore_ascii_case(m))
            })
            .collect();
        let mut out = Vec::new();
        for row in &db.read_or_empty::<StackRow>() {
            let of_system = super::marked(&kernel_only, row.upid());
            let only_kernel = row.depth() == row.kernel_depth();
            let root = row.root_frame_id().and_then(|f| u32::try_from(f).ok());
            let begins = root.and_then(|f| self.name(self.name_of(f)?)).is_none_or(begins_threads);
            // A thread of a program in kernel code was called by user code, unless it began there.
            let half = only_kernel && !of_system && !begins;
            out.push(row.leaf_only() || half || (!of_system && !begins));
        }
        out
    }
}

/// Whether threads begin in this frame.
fn begins_threads(name: &FrameName) -> bool {
    match &name.function {
        Some(function) => {
            let kernel =
                ["KiStartSystemThread", "KxStartSystemThread", "PspSystemThreadStartup", "KiStartUserThread"];
            is_thread_start(function)
                || function == "LdrInitializeThunk"
                || name.kind == Kind::Kernel && kernel.iter().any(|k| function.starts_with(k))
        }
        None => ["ntdll.dll", "ntoskrnl.exe"].iter().any(|m| name.module.eq_ignore_ascii_case(m)),
    }
}
