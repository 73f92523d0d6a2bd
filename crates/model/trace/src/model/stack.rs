//! Stacks: from frames in records, or from keys that are defined later, to one number per distinct stack.
//!
//! Stack records name their event by its timestamp and thread; the kernel half comes at once, the user half up to
//! hundreds of milliseconds later and on another CPU. Halves of one time and thread make a stack whether or not a
//! table wants it, so that the stacks of a trace, and their numbers, do not depend on what is asked. A row that wants
//! a stack takes a *ticket*, which waits for the stack of its time and thread.
//!
//! This side numbers tickets and says what it sees, `work` takes it to the other thread, `matcher` finds the stacks.

mod finish;
mod kinds;
mod matcher;
mod open;
mod settle;
mod step;
mod work;

use super::halves::{KEYED, NO_PART};
use super::image::{Images, is_kernel};
use super::process::Processes;
use super::thread::Threads;
use crate::event::fields::Event;
use crate::event::select::{Select, What};
use etwhy_base::Bytes;
use etwhy_decode::kernel::events::{PerfInfo, StackWalk};
use etwhy_etl::abi::{ext, guids::KERNEL_EVENT_TRACING};
use etwhy_etl::read::Timeline;
use etwhy_etl::{ExtItem, Ledger, Record};
pub use finish::{DistinctStack, FinishedStacks};
use kinds::Kinds;
pub(crate) use settle::Unsettled;
use step::{Step, What as Seen};
use work::Worker;

const STACK: u8 = StackWalk::Stack.opcode;
const KEY_CREATE: u8 = StackWalk::KeyCreate.opcode;
const KEY_DELETE: u8 = StackWalk::KeyDelete.opcode;
const KEY_RUNDOWN: u8 = StackWalk::KeyRundown.opcode;
const KEY_KERNEL: u8 = StackWalk::StackKeyKernel.opcode;
const USER_HALF: u8 = 118;
const SAMPLE: u8 = PerfInfo::SampledProfile.opcode;
const WITH_ITEMS: u8 = 0;
/// Id of the event that holds the user half of another event's stack.
const USER_HALF_ID: u16 = 18;

pub(crate) const SELECTS: &[Select] = &[
    Select::kernel(StackWalk::Stack, &["EventTimeStamp", "StackProcess", "StackThread"]),
    Select::kernel(StackWalk::KeyCreate, &["Key"]),
    Select::kernel(StackWalk::KeyDelete, &["Key"]),
    Select::kernel(StackWalk::KeyRundown, &["Key"]),
    Select::kernel(StackWalk::StackKeyKernel, &["EventTimeStamp", "StackProcess", "StackThread", "StackKey"]),
    Select::kernel(StackWalk::StackKeyUser, &["EventTimeStamp", "StackProcess", "StackThread", "StackKey"]),
    Select::new(What::Manifest(KERNEL_EVENT_TRACING, USER_HALF_ID), USER_HALF),
    Select::kernel(PerfInfo::SampledProfile, &["InstructionPointer", "ThreadId", "Count", "Flags"]),
    Select::new(What::AnyUser, WITH_ITEMS),
];

/// How long a ticket waits for the halves of its stack; what comes later is not used. The latest user half seen in
/// real traces came 405 ms after its event; a thread can be held longer in the kernel.
const WINDOW_NS: i64 = 10_000_000_000;
/// Ticket of a row without a stack.
pub const NO_STACK: i32 = -1;

/// Time (ticks) and thread of an event, by which stack records name it.
type Key = (i64, u32);

/// Stacks of the trace.
#[derive(Debug, Default)]
pub struct Stacks {
    worker: Worker,
    tickets: u32,
    late: u64,
    kinds: Kinds,
    /// The record that asked last, with its ticket: several analyses may want the stack of one event.
    asked: Option<(usize, i64, u32, i32)>,
}

/// Thread of a ticket whose event does not say: the stack record's word is taken.
const ANY_TID: u32 = u32::MAX;

/// The thread as stacks are looked up by. Every processor has an idle thread 0, and two may be hit at one moment: the kernel
/// writes what was called there on the same processor. Thread ids have no highest bit.
fn thread_key(tid: u32, cpu: u16) -> u32 {
    if tid == 0 { 1 << 31 | u32::from(cpu) } else { tid }
}

/// True for a record that is (half) the stack of another one. It has no stack of its own.
fn is_stack(record: &Record<'_>) -> bool {
    record.group() == StackWalk::GROUP
        || (record.kind.is_event()
            && record.id() == USER_HALF_ID
            && record.guid() == Some(KERNEL_EVENT_TRACING))
}

/// Width of the addresses of an item, and whether it holds a key instead of frames; `None` for items of other kinds.
fn stack_item(item: &ExtItem<'_>) -> Option<(u8, bool)> {
    match item.kind {
        ext::STACK_TRACE32 => Some((4, false)),
        ext::STACK_TRACE64 => Some((8, false)),
        ext::STACK_KEY32 => Some((4, true)),
        ext::STACK_KEY64 => Some((8, true)),
        _ => None,
    }
}

impl Stacks {
    /// Finds stacks on a thread of their own if `threads` allow it. What is found does not depend on it.
    pub(crate) fn set_threads(&mut self, threads: usize) {
        self.worker.set_threaded(threads > 1);
    }

    /// A ticket for the stack of `record`. `tid`: the thread that the stack record will name; for context
    /// switches that is the new thread. `utid` is its instance. `ip` makes a stack of one frame where none was recorded.
    pub(crate) fn ticket(
        &mut self,
        event: &Event<'_>,
        tid: Option<u32>,
        utid: Option<u32>,
        ip: u64,
        (threads, images): (&Threads, &Images),
    ) -> i32 {
        let (record, ns) = (event.record, event.ns);
        let tid = tid.map_or(ANY_TID, |tid| thread_key(tid, record.cpu));
        let address = record.bytes.as_ptr() as usize;
        if let Some((of, ticks, thread, ticket)) = self.asked
            && (of, ticks, thread) == (address, record.ticks, tid)
        {
            return ticket;
        }
        let ticket = self.tickets;
        if ticket >= i32::MAX as u32 || is_stack(record) {
            return NO_STACK;
        }
        self.asked = Some((address, record.ticks, tid, ticket as i32));
        self.tickets += 1;
        let user_mode = ip != 0 && !is_kernel(ip, event.pointer_size);
        let (who, epoch) = who(utid, ns, threads, images);
        let ticks = record.ticks;
        let what = Seen::Ticket { user_mode };
        let step = Step { what, tid, who, epoch, ticks, ns, now: ns, value: ip, end: 0 };
        let kind = Kinds::number(event.type_index);
        self.kinds.asked((ticks, tid), kind);
        for item in record.ext_items() {
            let Some((width, is_key)) = stack_item(&item) else { continue };
            self.kinds.came((ticks, tid));
            let rest = item.data.get(8..).unwrap_or(&[]);
            let native = usize::from(width) == record.pointer_size();
            let (what, bytes) = match is_key {
                true => (Seen::OwnKey { native }, rest.get(..usize::from(width)).unwrap_or(&[])),
                false => (Seen::OwnFrames { width }, rest),
            };
            let match_id = item.data.u64_at(0).unwrap_or(0);
            self.worker.push(Step { what, value: match_id, ..step }, bytes);
        }
        self.worker.push(step, &[]);
        ticket as i32
    }

    /// Whether an event can be expected to have a stack.
    pub(crate) fn expects(&mut self, event: &Event<'_>) -> bool {
        let record = (event.record.bytes.as_ptr() as usize, event.record.ticks);
        self.kinds.expects(Kinds::number(event.type_index), record)
    }
}

/// Whose a stack is, as [`open::Open::who`] says it, and the epoch of the address space.
fn who(utid: Option<u32>, ns: i64, threads: &Threads, images: &Images) -> (u32, u32) {
    let Some(utid) = utid else { return (NO_PART, 0) };
    match threads.get(utid).and_then(|t| t.upid) {
        Some(upid) => (upid, images.epoch_at(upid, ns)),
        None => (KEYED | utid, 0),
    }
}

pub(crate) fn event(
    event: &Event<'_>,
    stacks: &mut Stacks,
    threads: &mut Threads,
    processes: &mut Processes,
    images: &Images,
    timeline: &Timeline,
    ledger: &mut Ledger,
) {
    let width = event.pointer_size;
    let payload = event.payload;
    let none = Step {
        what: Seen::KernelKey,
        tid: ANY_TID,
        who: NO_PART,
        epoch: 0,
        ticks: event.record.ticks,
        ns: event.ns,
        now: event.ns,
        value: 0,
        end: 0,
    };
    match event.tag {
        WITH_ITEMS => {
            if event.record.ext_items().any(|item| stack_item(&item).is_some()) {
                let utid = threads.of_header(event, processes);
                let tid = event.tid_pid().map(|(tid, _)| tid);
                stacks.ticket(event, tid, utid, 0, (threads, images));
            }
            return;
        }
        SAMPLE => {
            // What the idle thread does is nobody's, unless a DPC or ISR interrupted it.
            let (Some(ip), Some(tid)) = (event.u64(0), event.u64(1)) else { return };
            if tid != 0 || event.u64(3).unwrap_or(0) & 3 != 0 {
                let utid = threads.current(tid as u32);
                stacks.ticket(event, Some(tid as u32), utid, ip, (threads, images));
            }
            return;
        }
        KEY_CREATE | KEY_DELETE | KEY_RUNDOWN => {
            if let Some(key) = event.u64(0) {
                let step = Step { what: Seen::Define { width: width as u8 }, value: key, ..none };
                stacks.worker.push(step, payload.get(width..).unwrap_or(&[]));
            }
            return;
        }
        USER_HALF => {
            for item in event.record.ext_items() {
                if let Some((width, false)) = stack_item(&item) {
                    let id = item.data.u64_at(0).unwrap_or(0);
                    let step = Step { what: Seen::UserHalf { width }, value: id, ..none };
                    stacks.worker.push(step, item.data.get(8..).unwrap_or(&[]));
                }
            }
            return;
        }
        _ => {}
    }
    let (Some(ticks), Some(tid)) = (event.i64(0), event.u64(2)) else {
        ledger.count(&crate::anomalies::PAYLOAD_TOO_SHORT, 1);
        return;
    };
    let tid = tid as u32;
    let (what, value, frames) = match event.tag {
        STACK => (Seen::Frames { width: width as u8 }, 0, payload.get(16..).unwrap_or(&[])),
        KEY_KERNEL => (Seen::KernelKey, event.u64(3).unwrap_or(0), &[][..]),
        _ => (Seen::UserKey, event.u64(3).unwrap_or(0), &[][..]),
    };
    let ns = timeline.ticks_to_ns(event.record.file, ticks);
    if event.ns.saturating_sub(ns) > WINDOW_NS {
        stacks.late += 1;
        return;
    }
    let utid = if tid == u32::MAX { None } else { threads.current(tid) };
    let (who, epoch) = who(utid, ns, threads, images);
    let tid = thread_key(tid, event.record.cpu);
    stacks.kinds.came((ticks, tid));
    stacks.worker.push(Step { what, tid, who, epoch, ticks, ns, value, ..none }, frames);
}
