//! Places in code that events name by themselves: routines of DPCs and filters, system calls, start addresses.
//!
//! Rows keep the number of a place until the end of the pass, when images and symbols are known.

use super::image::{Images, is_kernel};
use super::thread::Threads;
use crate::event::fields::Event;
use crate::event::select::{Select, What};
use etwhy_decode::kernel::KernelEvent;
use etwhy_decode::kernel::events::{FileIo, PerfInfo, Thread};
use etwhy_table::Sym;
use foldhash::{HashMap, HashSet};

/// Threads name the address where they begin.
const THREAD: u8 = 1;
const THREAD_FIELDS: &[&str] = &["Win32StartAddr|StartAddr", "TThreadId|ThreadId|ThreadID"];

const fn routine(event: KernelEvent, field: &'static [&'static str]) -> Select {
    Select::with(What::Kernel(event), 0, field)
}

const fn thread(event: KernelEvent) -> Select {
    Select::with(What::Kernel(event), THREAD, THREAD_FIELDS)
}

const ROUTINE: &[&str] = &["Routine"];
const FILTER: &[&str] = &["RoutineAddr"];

/// Service routines of system calls, DPCs and ISRs, callbacks of minifilters, start addresses of threads: tables show their names, and
/// symbols that come later find them among the frames.
pub(crate) const SELECTS: &[Select] = &[
    routine(PerfInfo::SysClEnter, &["SysCallAddress"]),
    routine(PerfInfo::ISR_MSI, ROUTINE),
    routine(PerfInfo::ThreadedDPC, ROUTINE),
    routine(PerfInfo::ISR, ROUTINE),
    routine(PerfInfo::DPC, ROUTINE),
    routine(PerfInfo::TimerDPC, ROUTINE),
    routine(PerfInfo::IOTimer, ROUTINE),
    routine(PerfInfo::ISR_PASS, ROUTINE),
    routine(FileIo::PreOpInit, FILTER),
    routine(FileIo::PostOpInit, FILTER),
    routine(FileIo::PreOpCompletion, FILTER),
    routine(FileIo::PostOpCompletion, FILTER),
    routine(FileIo::PreOpFailure, FILTER),
    routine(FileIo::PostOpFailure, FILTER),
    thread(Thread::Start),
    thread(Thread::End),
    thread(Thread::DCStart),
    thread(Thread::DCEnd),
];

/// An address in an address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CodeAddress {
    /// Process, if the address may be one of user mode.
    pub upid: Option<u32>,
    /// Epoch of its address space, see [`super::image::Images::epoch`].
    pub epoch: u32,
    /// The address.
    pub address: u64,
}

/// Number of a [`CodeAddress`]. What is there is known at the end of the pass: columns that name it hold the number until
/// [`Finish`](crate::finish::Finish) exchanges it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlaceId(u32);

impl PlaceId {
    /// The number that a column held.
    pub(crate) fn of_cell(cell: u32) -> PlaceId {
        PlaceId(cell)
    }

    /// For a text column that will have the place's function (`routines_of`) or module (`modules_of`).
    pub(crate) fn name_later(self) -> Sym {
        Sym::provisional(self.0)
    }

    /// For a frame column that will have the place's frame (`frames_of`).
    pub(crate) fn frame_later(self) -> i32 {
        self.0 as i32
    }

    /// Its place in lists of all.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// All distinct places; the number is the index.
#[derive(Debug, Default)]
pub struct Places {
    all: Vec<CodeAddress>,
    known: HashMap<CodeAddress, PlaceId>,
    /// Numbers of the routines that have a frame in the table of frames.
    routines: HashSet<PlaceId>,
}

impl Places {
    /// The number of a place.
    #[inline]
    fn number(&mut self, place: CodeAddress) -> PlaceId {
        let all = &mut self.all;
        *self.known.entry(place).or_insert_with(|| {
            all.push(place);
            PlaceId((all.len() - 1) as u32)
        })
    }

    /// The number of a routine's address. `upid` matters for addresses of user mode only.
    #[inline]
    pub(crate) fn at(&mut self, upid: Option<u32>, address: u64, images: &Images) -> PlaceId {
        let upid = upid.filter(|_| !is_kernel(address, 8));
        let epoch = upid.map_or(0, |u| images.epoch(Some(u)));
        self.number(CodeAddress { upid, epoch, address })
    }

    /// The thread that an event names and the place where it begins. The tracker of threads has seen the event: its thread is the
    /// current one of that id.
    pub(crate) fn thread_start(
        &mut self,
        address: Option<u64>,
        tid: Option<u64>,
        pointer_size: usize,
        (threads, images): (&Threads, &Images),
    ) -> Option<(u32, PlaceId)> {
        let address = address.filter(|&address| address != 0)?;
        let utid = threads.current(tid? as u32)?;
        let upid = threads.upid_of(utid).filter(|_| !is_kernel(address, pointer_size));
        Some((utid, self.at(upid, address, images)))
    }

    /// Numbers of the routines that have a frame in the table of frames, whatever is asked, by address.
    pub(crate) fn routines(&self) -> Vec<PlaceId> {
        let key = |number: &PlaceId| self.all.get(number.index()).map(|p| (p.address, p.upid, p.epoch));
        let mut routines: Vec<PlaceId> = self.routines.iter().copied().collect();
        routines.sort_unstable_by_key(key);
        routines
    }

    /// All, in the order of their numbers.
    pub fn all(&self) -> &[CodeAddress] {
        &self.all
    }
}

pub(crate) fn event(event: &Event<'_>, places: &mut Places, threads: &Threads, images: &Images) {
    let number = match event.tag {
        THREAD => {
            let known = (threads, images);
            places.thread_start(event.u64(0), event.u64(1), event.pointer_size, known).map(|(_, place)| place)
        }
        _ => event.u64(0).filter(|&address| address != 0).map(|address| places.at(None, address, images)),
    };
    places.routines.extend(number);
}
