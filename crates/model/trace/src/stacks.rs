//! Stacks as their tables hold them: the one reader for all that follow frames from callee to caller.
//!
//! Ids come from files. A stack or frame that has no row gives nothing, and a table that ends too early gives what is
//! there.

use crate::catalog::stack::{StackFrameRow, StackRow};
use etwhy_table::Database;

/// In place of a frame whose id no row can have.
pub const NO_FRAME: u32 = u32::MAX;

/// What ran when time was sampled. The process and thread of a DPC or ISR are those that it interrupted, by chance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A thread.
    #[default]
    Thread,
    /// A DPC.
    Dpc,
    /// An ISR.
    Isr,
}

impl Class {
    /// All of them, in their order.
    pub const ALL: [Class; 3] = [Class::Thread, Class::Dpc, Class::Isr];

    /// The word in tables.
    pub fn name(self) -> &'static str {
        match self {
            Class::Thread => "thread",
            Class::Dpc => "dpc",
            Class::Isr => "isr",
        }
    }

    /// The class with this name in tables; a thread if none has it.
    pub fn named(name: &str) -> Class {
        Class::ALL.into_iter().find(|class| class.name() == name).unwrap_or_default()
    }

    /// The class of a sample. An ISR may have interrupted a DPC: what runs last counts.
    pub fn of_sample(in_dpc: bool, in_isr: bool) -> Class {
        match (in_dpc, in_isr) {
            (_, true) => Class::Isr,
            (true, _) => Class::Dpc,
            _ => Class::Thread,
        }
    }
}

/// Frames of a stack (rows of table `frame`), innermost first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stack<'s> {
    /// Frames of the kernel, which come first.
    pub kernel: &'s [u32],
    /// Frames of the process.
    pub user: &'s [u32],
}

impl<'s> Stack<'s> {
    /// All frames.
    pub fn frames(&self) -> impl Iterator<Item = u32> + use<'s> {
        self.kernel.iter().chain(self.user).copied()
    }

    /// The innermost frame.
    pub fn leaf(&self) -> Option<u32> {
        self.frames().next()
    }
}

/// What [`Stacks`] are read from.
pub type StacksRows = (StackRow, StackFrameRow);

/// All stacks with their frames, by number.
#[derive(Debug, Default)]
pub struct Stacks {
    /// Where the frames of each stack begin; one more for the end.
    starts: Vec<u32>,
    kernel: Vec<u32>,
    leaf_only: Vec<bool>,
    frames: Vec<u32>,
}

impl Stacks {
    /// Reads tables `stack` and `stack_frame`; none if they are not there.
    pub fn read(db: &Database) -> Stacks {
        let (stacks, on_stack) = (db.read_or_empty::<StackRow>(), db.read_or_empty::<StackFrameRow>());
        let mut out = Stacks {
            starts: Vec::with_capacity(stacks.len().saturating_add(1)),
            kernel: Vec::with_capacity(stacks.len()),
            leaf_only: Vec::with_capacity(stacks.len()),
            frames: Vec::with_capacity(on_stack.len()),
        };
        let count = |n: i64| u32::try_from(n).unwrap_or(0);
        let mut end = 0u32;
        out.starts.push(end);
        for row in &stacks {
            end = end.saturating_add(count(row.depth()));
            out.starts.push(end);
            out.kernel.push(count(row.kernel_depth()));
            out.leaf_only.push(row.leaf_only());
        }
        out.frames.extend(on_stack.iter().map(|row| u32::try_from(row.frame_id()).unwrap_or(NO_FRAME)));
        out
    }

    /// Number of stacks.
    pub fn len(&self) -> usize {
        self.kernel.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.kernel.is_empty()
    }

    /// The frames of a stack, innermost first; none if no row has that number.
    #[inline]
    pub fn frames(&self, stack: impl Into<Option<i64>>) -> &[u32] {
        let find = |stack: Option<i64>| {
            let stack = usize::try_from(stack?).ok()?;
            let to = *self.starts.get(stack.checked_add(1)?)? as usize;
            self.frames.get(*self.starts.get(stack)? as usize..to.min(self.frames.len()))
        };
        find(stack.into()).unwrap_or_default()
    }

    /// The frames of a stack, those of the kernel apart.
    #[inline]
    pub fn get(&self, stack: impl Into<Option<i64>>) -> Stack<'_> {
        let stack = stack.into();
        let frames = self.frames(stack);
        let kernel =
            stack.and_then(|stack| self.kernel.get(usize::try_from(stack).ok()?)).copied().unwrap_or(0);
        let (kernel, user) = frames.split_at(frames.len().min(kernel as usize));
        Stack { kernel, user }
    }

    /// The frames of each stack, in order of numbers.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.len() as i64).map(|stack| self.frames(stack))
    }

    /// No stack was recorded: its only frame is the instruction pointer of the event. True of stacks that are not there.
    pub fn is_leaf_only(&self, stack: i64) -> bool {
        usize::try_from(stack).ok().and_then(|stack| self.leaf_only.get(stack)).copied().unwrap_or(true)
    }
}

/// The stack on which a thing was last seen, so that one that is on a stack more than once counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastStack(u32);

impl LastStack {
    /// Seen, but on none of the stacks that are numbered from 1.
    pub const OTHER: LastStack = LastStack(u32::MAX);

    /// True the first time that the thing is seen on a stack. Whoever counts numbers the stacks from 1 as they come.
    #[inline]
    pub fn is_new(&mut self, stack: u32) -> bool {
        std::mem::replace(&mut self.0, stack) != stack
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_table::{Memory, Strings, TableBuilder};

    /// Stacks of these depths, kernel depths, and all frames.
    fn stacks(depths: &[(i32, i32)], frames: &[i32]) -> Stacks {
        let memory = Memory::unlimited();
        let (mut stacks, mut on_stack) =
            (TableBuilder::<StackRow>::new(&memory), TableBuilder::<StackFrameRow>::new(&memory));
        for (stack_id, &(depth, kernel_depth)) in depths.iter().enumerate() {
            stacks.push(StackRow {
                stack_id: stack_id as i32,
                upid: None,
                depth,
                kernel_depth,
                leaf_only: stack_id == 1,
                leaf_frame_id: None,
                root_frame_id: None,
                leaf: None,
                root: None,
                tag: None,
            });
        }
        for &frame_id in frames {
            on_stack.push(StackFrameRow { stack_id: 0, position: 0, frame_id });
        }
        let texts = Strings::new().freeze().unwrap();
        let mut db = Database::new();
        db.insert(stacks.finish(&texts).unwrap());
        db.insert(on_stack.finish(&texts).unwrap());
        Stacks::read(&db)
    }

    #[test]
    fn frames_are_those_of_their_stack() {
        let stacks = stacks(&[(3, 1), (0, 0), (2, 2)], &[7, 8, 9, 5, 6]);
        assert_eq!((stacks.get(0).kernel, stacks.get(0).user), (&[7][..], &[8, 9][..]));
        assert_eq!((stacks.frames(1), stacks.get(1).leaf()), (&[][..], None));
        assert_eq!((stacks.frames(Some(2)), stacks.get(2).leaf()), (&[5, 6][..], Some(5)));
        assert!(stacks.is_leaf_only(1) && !stacks.is_leaf_only(2) && stacks.is_leaf_only(3));
        assert_eq!(stacks.iter().collect::<Vec<_>>(), [&[7, 8, 9][..], &[], &[5, 6]]);
        assert!(stacks.get(0).frames().eq([7, 8, 9]));
    }

    #[test]
    fn damaged_ids_give_what_is_there() {
        let stacks = stacks(&[(2, 9), (-1, -1), (i32::MAX, 1)], &[1, -2, 3]);
        assert_eq!((stacks.get(0).kernel, stacks.get(0).user), (&[1, NO_FRAME][..], &[][..]));
        assert!(stacks.frames(1).is_empty());
        assert_eq!((stacks.get(2).kernel, stacks.get(2).user), (&[3][..], &[][..]));
        for none in [None, Some(-1), Some(3), Some(i64::MAX)] {
            assert!(stacks.frames(none).is_empty() && stacks.get(none).leaf().is_none());
        }
        assert!(Stacks::read(&Database::new()).is_empty());
        assert!(Stacks::default().frames(0).is_empty());
    }

    #[test]
    fn a_thing_counts_once_per_stack() {
        let mut last = LastStack::default();
        assert_eq!([1, 1, 2, 2, 3].map(|stack| last.is_new(stack)), [true, false, true, false, true]);
    }

    #[test]
    fn classes_have_names() {
        assert!(Class::ALL.into_iter().all(|class| Class::named(class.name()) == class));
        assert_eq!(Class::named("idle"), Class::Thread);
        assert_eq!(Class::of_sample(true, true), Class::Isr);
        assert_eq!(Class::of_sample(true, false), Class::Dpc);
        assert_eq!(Class::of_sample(false, false), Class::Thread);
    }
}
