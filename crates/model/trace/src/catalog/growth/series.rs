//! Series: the calls of one operation by one process.

use super::bins::{Bins, Sizes};
use super::samples::Within;
use crate::model::place::PlaceId;
use crate::owner::Owner;
use etwhy_table::Sym;
use foldhash::HashMap;

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Operation {
    /// A system call, by the number of its place.
    Syscall(PlaceId),
    /// A file operation, by event type.
    File(u8),
    /// A registry operation, by event type.
    Registry(u8),
    /// A call of the memory manager.
    Memory(Memory),
    /// Creation of a handle, by type of object.
    Handle(u16),
    /// Start of a process of that name.
    Start(Sym),
}

/// Calls of the memory manager that are kept apart: only those that reserve look for an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Memory {
    ReserveTopDown,
    Reserve,
    Commit,
    Free,
}

impl Operation {
    /// Group of operations, as the column `kind` has it.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Operation::Syscall(_) => "syscall",
            Operation::File(_) => "file",
            Operation::Registry(_) => "registry",
            Operation::Memory(_) => "virtual_alloc",
            Operation::Handle(_) => "handle",
            Operation::Start(_) => "process_start",
        }
    }

    /// How samples tell what a call costs; `None` where calls have durations.
    pub(super) fn within(self) -> Option<Within> {
        const ALLOCATE: &[&str] = &["NtAllocateVirtualMemory", "NtAllocateVirtualMemoryEx"];
        const FREE: &[&str] = &["NtFreeVirtualMemory"];
        // The part of many calls that makes a handle (public symbols of ntoskrnl.exe).
        const HANDLE: &[&str] =
            &["ObpCreateHandle", "ObInsertObject", "ObInsertObjectEx", "ExCreateHandle", "ExCreateHandleEx"];
        match self {
            Operation::Memory(Memory::Free) => Some(Within { functions: FREE, or_kernel: true }),
            Operation::Memory(_) => Some(Within { functions: ALLOCATE, or_kernel: true }),
            Operation::Handle(_) => Some(Within { functions: HANDLE, or_kernel: false }),
            _ => None,
        }
    }
}

/// Calls of one operation by one process.
pub(super) struct Series {
    pub(super) operation: Operation,
    pub(super) owner: Owner,
    /// By number of the call. Costs are durations; of system calls time on a processor; where calls have none, the time since the
    /// call before.
    pub(super) bins: Bins,
    /// Durations of system calls that wait for nobody but the kernel.
    pub(super) walls: Option<Bins>,
    /// By size.
    pub(super) sizes: Option<Sizes>,
    pub(super) last_ns: Option<i64>,
}

/// All series.
#[derive(Default)]
pub(super) struct AllSeries {
    pub(super) list: Vec<Series>,
    known: HashMap<(Operation, Owner), u32>,
    /// Calls of series beyond the limit.
    pub(super) beyond: u64,
}

/// Series that are followed. A busy machine has some ten thousand; each takes up to 5 KB.
const MOST_SERIES: usize = 1 << 16;

impl AllSeries {
    /// The series, with its number; `None` beyond the limit.
    #[inline]
    pub(super) fn get_or_add(&mut self, operation: Operation, owner: Owner) -> Option<(u32, &mut Series)> {
        let next = self.list.len();
        let full = next >= MOST_SERIES;
        let number = match self.known.get(&(operation, owner)) {
            Some(number) => *number,
            None if full => {
                self.beyond = self.beyond.saturating_add(1);
                return None;
            }
            None => {
                self.known.insert((operation, owner), next as u32);
                let sized = matches!(operation, Operation::File(super::READ | super::WRITE));
                self.list.push(Series {
                    operation,
                    owner,
                    bins: Bins::default(),
                    walls: None,
                    sizes: sized.then(Sizes::default),
                    last_ns: None,
                });
                next as u32
            }
        };
        Some((number, self.list.get_mut(number as usize)?))
    }
}
