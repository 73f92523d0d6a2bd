//! Stacks: from frames in records, or from keys that are defined later, to one number per distinct stack.
//!
//! A row that wants a stack takes a *ticket*. Stack records name their event by its timestamp and thread;
//! the kernel half comes at once, the user half up to hundreds of milliseconds later and on another CPU. A
//! ticket stays open for ten seconds of trace time, then its halves become a provisional stack number. Keys
//! are bound to frames whenever their definition comes: *the definition of a key at time T is the first one
//! written at or after T*, because the kernel writes it when the cache slot is given up.

use super::image::{Images, is_kernel};
use super::thread::Threads;
use crate::anomalies::{STACK_KEYS_UNDEFINED, STACKS_LATE};
use crate::event::{Context, Event, Select, What};
use etwhy_etl::abi::{ext, guids::KERNEL_EVENT_TRACING};
use etwhy_etl::{Bytes, ExtItem, Ledger, Record};
use foldhash::HashMap;
use hashbrown::HashTable;
use std::collections::VecDeque;
use std::hash::BuildHasher;

const STACK: u8 = 32;
const KEY_CREATE: u8 = 34;
const KEY_DELETE: u8 = 35;
const KEY_RUNDOWN: u8 = 36;
const KEY_KERNEL: u8 = 37;
const KEY_USER: u8 = 38;
const USER_HALF: u8 = 118;

pub(crate) const SELECTS: &[Select] = &[
    Select::with(What::Kernel(0x18, STACK), STACK, &["EventTimeStamp", "StackProcess", "StackThread"]),
    Select::with(What::Kernel(0x18, KEY_CREATE), KEY_CREATE, &["Key"]),
    Select::with(What::Kernel(0x18, KEY_DELETE), KEY_DELETE, &["Key"]),
    Select::with(What::Kernel(0x18, KEY_RUNDOWN), KEY_RUNDOWN, &["Key"]),
    Select::with(
        What::Kernel(0x18, KEY_KERNEL),
        KEY_KERNEL,
        &["EventTimeStamp", "StackProcess", "StackThread", "StackKey"],
    ),
    Select::with(
        What::Kernel(0x18, KEY_USER),
        KEY_USER,
        &["EventTimeStamp", "StackProcess", "StackThread", "StackKey"],
    ),
    Select::new(What::Manifest(KERNEL_EVENT_TRACING, 18), USER_HALF),
];

/// How long a ticket waits for the halves of its stack. The latest user half seen in real traces came
/// 405 ms after its event; a thread can be held longer in the kernel.
pub(crate) const WINDOW_NS: i64 = 10_000_000_000;
/// Most frames of one stack (kernel and user): the kernel records 192 at most.
const MAX_FRAMES: usize = 1024;
/// No half.
const NO_PART: u32 = u32::MAX;
/// Set in numbers of halves that are keys without a definition yet.
const KEYED: u32 = 1 << 31;
/// Ticket of a row without a stack.
pub const NO_STACK: i32 = -1;

/// A stack that waits for its halves.
#[derive(Clone, Copy, Debug)]
struct Open {
    ticket: u32,
    /// Thread instance; its process may be named later.
    utid: u32,
    /// Epoch of the process's address space, if the process was known at the event.
    epoch: Option<u32>,
    kernel: u32,
    user: u32,
    /// Instruction pointer, for a stack of one frame if no half comes; 0 if unknown.
    ip: u64,
    /// Another ticket with the same time and thread, the latest.
    twin: Option<u32>,
}

impl Open {
    fn has_half(&self) -> bool {
        self.kernel != NO_PART || self.user != NO_PART
    }

    /// A sample that was taken in user mode has no kernel half.
    fn is_user_mode(&self) -> bool {
        self.ip != 0 && !is_kernel(self.ip, 8)
    }

    /// Both halves are there; the kernel's comes first.
    fn is_complete(&self) -> bool {
        self.user != NO_PART && (self.kernel != NO_PART || self.is_user_mode())
    }
}

/// A distinct stack: process, epoch of its address space, halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Provisional {
    upid: u32,
    epoch: u32,
    kernel: u32,
    user: u32,
    leaf_only: bool,
}

/// Stacks of the trace.
#[derive(Debug, Default)]
pub struct Stacks {
    /// Frames of all halves, one after the other.
    frames: Vec<u64>,
    /// Where each half starts in `frames`; one more for the end.
    starts: Vec<u64>,
    known_parts: HashTable<u32>,
    hasher: foldhash::fast::FixedState,
    /// Keys in use without a definition: key to number in `bound`.
    open_keys: HashMap<u64, u32>,
    /// Halves of keys, once defined.
    bound: Vec<u32>,
    open: HashMap<(i64, u32), Open>,
    queue: VecDeque<(i64, i64, u32)>,
    /// Events that carry their kernel half themselves, by match id.
    by_match: HashMap<u64, (i64, u32)>,
    provisional: Vec<Provisional>,
    known: HashMap<Provisional, u32>,
    /// Provisional stack of each ticket, `NO_PART` if it has none.
    tickets: Vec<u32>,
    /// For a ticket that is a twin, the twin before it: any number of events may have the same time and thread.
    twins: HashMap<u32, u32>,
    /// Tickets of the same time and thread as one in `open` that have a stack of their own.
    before: HashMap<(i64, u32), Vec<Open>>,
    /// A bit for each ticket that a table wants which is not only made on demand.
    wanted: Vec<u64>,
    late: u64,
    /// The record that asked last, with its ticket: several analyses may want the stack of one event.
    asked: Option<(usize, i64, u32, i32)>,
    /// Time of the latest ticket that was closed because it had waited long enough, in ticks.
    closed_until: Option<i64>,
    scratch: Vec<u64>,
}

/// Thread of a ticket whose event does not say: the stack record's word is taken.
const ANY_TID: u32 = u32::MAX;

/// The thread as stacks are looked up by. Every processor has an idle thread 0, and two may be hit at one moment: the kernel
/// writes what was called there on the same processor. Thread ids have no highest bit.
fn thread_key(tid: u32, cpu: u16) -> u32 {
    if tid == 0 { 1 << 31 | u32::from(cpu) } else { tid }
}

impl Stacks {
    /// A ticket for the stack of `record`. `tid`: the thread that the stack record will name; for context
    /// switches that is the new thread. `utid` is its instance, `epoch` that of its process.
    /// `ip` makes a stack of one frame where none was recorded.
    pub(crate) fn ticket(
        &mut self,
        record: &Record<'_>,
        tid: Option<u32>,
        utid: Option<u32>,
        epoch: Option<u32>,
        ip: u64,
        ns: i64,
    ) -> i32 {
        let tid = thread_key(tid.unwrap_or(ANY_TID), record.cpu);
        let address = record.bytes.as_ptr() as usize;
        if let Some((of, ticks, thread, ticket)) = self.asked
            && (of, ticks, thread) == (address, record.ticks, tid)
        {
            return ticket;
        }
        let ticket = self.tickets.len() as u32;
        if ticket >= i32::MAX as u32 {
            return NO_STACK;
        }
        self.asked = Some((address, record.ticks, tid, ticket as i32));
        self.tickets.push(NO_PART);
        let utid = utid.unwrap_or(NO_PART);
        let mut open = Open { ticket, utid, epoch, kernel: NO_PART, user: NO_PART, ip, twin: None };
        let key = (record.ticks, tid);
        for item in record.ext_items() {
            self.item(&item, record, key, &mut open);
        }
        match self.open.get_mut(&key) {
            // The kernel writes a stack right behind its event: what comes behind a stack has another one. So has what is
            // known to be elsewhere.
            Some(first) if first.has_half() || open.has_half() || first.ip != open.ip => {
                let first = std::mem::replace(first, open);
                self.before.entry(key).or_default().push(first);
            }
            Some(first) => {
                if let Some(before) = first.twin.replace(ticket) {
                    self.twins.insert(ticket, before);
                }
            }
            None => {
                self.open.insert(key, open);
                self.queue.push_back((ns, key.0, key.1));
            }
        }
        ticket as i32
    }

    /// The ticket is for a table that is not only made on demand.
    #[inline]
    pub(crate) fn wanted(&mut self, ticket: i32) {
        let Ok(ticket) = usize::try_from(ticket) else { return };
        if self.wanted.len() <= ticket / 64 {
            self.wanted.resize(ticket / 64 + 1, 0);
        }
        if let Some(bits) = self.wanted.get_mut(ticket / 64) {
            *bits |= 1 << (ticket % 64);
        }
    }

    fn is_wanted(&self, ticket: usize) -> bool {
        self.wanted.get(ticket / 64).is_some_and(|bits| bits >> (ticket % 64) & 1 == 1)
    }

    /// A number that tickets of the same stack share, once a ticket is closed and has one. Sums over stacks are
    /// made by it, with a ticket to tell the final number at the end; equal stacks may have several.
    pub(crate) fn shared_by(&self, ticket: i32) -> Option<u32> {
        let ticket = usize::try_from(ticket).ok()?;
        self.tickets.get(ticket).copied().filter(|&number| number != NO_PART)
    }

    /// A stack inside the event itself.
    fn item(&mut self, item: &ExtItem<'_>, record: &Record<'_>, key: (i64, u32), open: &mut Open) {
        let width = match item.kind {
            ext::STACK_TRACE32 | ext::STACK_KEY32 => 4,
            ext::STACK_TRACE64 | ext::STACK_KEY64 => 8,
            _ => return,
        };
        let match_id = item.data.u64_at(0).unwrap_or(0);
        if match_id != 0 && self.by_match.len() < 1 << 20 {
            self.by_match.insert(match_id, key);
        }
        let rest = item.data.get(8..).unwrap_or(&[]);
        if matches!(item.kind, ext::STACK_TRACE32 | ext::STACK_TRACE64) {
            let (kernel, user) = self.halves(rest, width);
            if kernel != NO_PART {
                open.kernel = kernel;
            }
            if user != NO_PART {
                open.user = user;
            }
        } else if let Some(stack_key) = rest.ptr_at(0, width) {
            let part = self.key(stack_key);
            // The first key of a record is the kernel's, unless the record has none.
            if open.kernel == NO_PART && open.user == NO_PART && width == record.pointer_size() {
                open.kernel = part;
            } else {
                open.user = part;
            }
        }
    }

    /// Numbers of the kernel and the user half of frames in a record.
    fn halves(&mut self, bytes: &[u8], width: usize) -> (u32, u32) {
        let mut frames = std::mem::take(&mut self.scratch);
        frames.clear();
        frames.extend(bytes.chunks_exact(width).take(MAX_FRAMES).filter_map(|b| b.ptr_at(0, width)));
        let split = frames.iter().position(|&f| !is_kernel(f, width)).unwrap_or(frames.len());
        let (kernel, user) = frames.split_at(split);
        let parts = (self.part(kernel), self.part(user));
        self.scratch = frames;
        parts
    }

    /// The number of these frames; equal frames have equal numbers.
    fn part(&mut self, frames: &[u64]) -> u32 {
        if frames.is_empty() {
            return NO_PART;
        }
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        let hash = self.hasher.hash_one(frames);
        let Stacks { frames: all, starts, known_parts, hasher, .. } = self;
        let get = |part: u32| {
            let from = starts.get(part as usize).copied().unwrap_or(0) as usize;
            let to = starts.get(part as usize + 1).copied().unwrap_or(0) as usize;
            all.get(from..to).unwrap_or(&[])
        };
        if let Some(&part) = known_parts.find(hash, |&part| get(part) == frames) {
            return part;
        }
        let part = (starts.len() - 1) as u32;
        if part >= KEYED - 1 {
            return NO_PART;
        }
        all.extend_from_slice(frames);
        starts.push(all.len() as u64);
        let get = |part: u32| {
            let from = starts.get(part as usize).copied().unwrap_or(0) as usize;
            let to = starts.get(part as usize + 1).copied().unwrap_or(0) as usize;
            all.get(from..to).unwrap_or(&[])
        };
        known_parts.insert_unique(hash, part, |&part| hasher.hash_one(get(part)));
        part
    }

    /// The half that a key stands for now.
    fn key(&mut self, key: u64) -> u32 {
        let bound = &mut self.bound;
        let number = *self.open_keys.entry(key).or_insert_with(|| {
            bound.push(NO_PART);
            (bound.len() - 1) as u32
        });
        KEYED | number
    }

    /// A key's definition: whoever used it since its last definition meant these frames.
    fn define(&mut self, key: u64, bytes: &[u8], width: usize) {
        let Some(number) = self.open_keys.remove(&key) else { return };
        let mut frames = std::mem::take(&mut self.scratch);
        frames.clear();
        frames.extend(bytes.chunks_exact(width).take(MAX_FRAMES).filter_map(|b| b.ptr_at(0, width)));
        let part = self.part(&frames);
        self.scratch = frames;
        if let Some(slot) = self.bound.get_mut(number as usize) {
            *slot = part;
        }
    }

    /// Gives the halves to the ticket of the event at `ticks`. A stack that is complete is closed at once:
    /// most user halves come within microseconds, and what is closed needs no place in the window.
    fn attach(
        &mut self,
        ticks: i64,
        tid: u32,
        utid: u32,
        halves: (u32, u32),
        threads: &Threads,
        images: &Images,
    ) {
        // An event that does not say its thread may be asked about beside one that does, or be the same.
        let keys = [(ticks, tid), (ticks, ANY_TID)];
        let found = keys.map(|key| self.attach_to(key, utid, halves, threads, images));
        // Else nobody asked for this event's stack, or it came after tickets of its time were closed.
        if found == [false, false] && self.closed_until.is_some_and(|closed| ticks <= closed) {
            self.late += 1;
        }
    }

    fn attach_to(
        &mut self,
        key: (i64, u32),
        utid: u32,
        (kernel, user): (u32, u32),
        threads: &Threads,
        images: &Images,
    ) -> bool {
        let Some(open) = self.open.get_mut(&key) else { return false };
        if open.utid == NO_PART {
            open.utid = utid;
        }
        let mut left = kernel;
        if open.kernel == NO_PART && !open.is_user_mode() {
            open.kernel = std::mem::replace(&mut left, NO_PART);
        }
        if user != NO_PART && open.user == NO_PART {
            open.user = user;
        }
        // At one moment a thread has one user half.
        let mut complete = open.is_complete() && open.twin.is_none();
        for earlier in self.before.get_mut(&key).into_iter().flatten() {
            if earlier.kernel == NO_PART && !earlier.is_user_mode() {
                earlier.kernel = std::mem::replace(&mut left, NO_PART);
            }
            if earlier.user == NO_PART {
                earlier.user = user;
            }
            complete &= earlier.is_complete();
        }
        if complete {
            self.close_all(key, threads, images);
        }
        true
    }

    /// Closes the tickets of a time and thread.
    fn close_all(&mut self, key: (i64, u32), threads: &Threads, images: &Images) {
        for open in self.before.remove(&key).into_iter().flatten() {
            self.close_one(open, threads, images);
        }
        if let Some(open) = self.open.remove(&key) {
            self.close_one(open, threads, images);
        }
    }

    /// The user half of an event that carried the kernel half itself.
    fn attach_match(&mut self, id: u64, user: u32) {
        if let Some(open) = self.by_match.remove(&id).and_then(|key| self.open.get_mut(&key)) {
            open.user = user;
        }
    }

    /// Closes tickets that have waited long enough.
    pub(crate) fn close(&mut self, before: i64, threads: &Threads, images: &Images) {
        while let Some(&(ns, ticks, tid)) = self.queue.front() {
            if ns >= before {
                break;
            }
            self.queue.pop_front();
            self.closed_until = self.closed_until.max(Some(ticks));
            self.close_all((ticks, tid), threads, images);
        }
    }

    /// Makes a provisional stack of a ticket's halves.
    fn close_one(&mut self, mut open: Open, threads: &Threads, images: &Images) {
        let leaf_only = open.kernel == NO_PART && open.user == NO_PART;
        if leaf_only && open.ip != 0 {
            open.user = self.part(&[open.ip]);
        }
        if open.kernel == NO_PART && open.user == NO_PART {
            return;
        }
        let upid = threads.get(open.utid).and_then(|t| t.upid);
        let epoch = open.epoch.unwrap_or_else(|| upid.map_or(0, |u| images.epoch(Some(u))));
        let upid = upid.unwrap_or(NO_PART);
        let stack = Provisional { upid, epoch, kernel: open.kernel, user: open.user, leaf_only };
        let next = self.provisional.len() as u32;
        let number = *self.known.entry(stack).or_insert(next);
        if number == next {
            self.provisional.push(stack);
        }
        let mut next = Some(open.ticket);
        let mut twin = open.twin;
        while let Some(ticket) = next {
            if let Some(slot) = self.tickets.get_mut(ticket as usize) {
                *slot = number;
            }
            next = twin;
            twin = twin.and_then(|ticket| self.twins.remove(&ticket));
        }
    }

    /// Ends the pass: closes all tickets and merges stacks that turned out to be equal.
    pub(crate) fn finish(
        &mut self,
        threads: &Threads,
        images: &Images,
        ledger: &mut Ledger,
    ) -> FinishedStacks {
        self.close(i64::MAX, threads, images);
        self.open = HashMap::default();
        self.queue = VecDeque::new();
        ledger.count(&STACKS_LATE, self.late);
        ledger.count(&STACK_KEYS_UNDEFINED, self.bound.iter().filter(|&&b| b == NO_PART).count() as u64);
        let part_of = |part: u32| {
            if part != NO_PART && part & KEYED != 0 {
                self.bound.get((part & !KEYED) as usize).copied().unwrap_or(NO_PART)
            } else {
                part
            }
        };
        let mut stacks = Vec::new();
        let mut known: HashMap<Provisional, u32> = HashMap::default();
        let merged: Vec<Option<u32>> = self
            .provisional
            .iter()
            .map(|p| {
                let stack = Provisional { kernel: part_of(p.kernel), user: part_of(p.user), ..*p };
                if stack.kernel == NO_PART && stack.user == NO_PART {
                    return None;
                }
                Some(*known.entry(stack).or_insert_with(|| {
                    stacks.push(DistinctStack {
                        upid: Some(stack.upid).filter(|&u| u != NO_PART),
                        epoch: stack.epoch,
                        kernel: stack.kernel,
                        user: stack.user,
                        leaf_only: stack.leaf_only,
                    });
                    (stacks.len() - 1) as u32
                }))
            })
            .collect();
        // In place: there may be a hundred million of them.
        let mut of_ticket: Vec<i32> = std::mem::take(&mut self.tickets)
            .into_iter()
            .map(|p| merged.get(p as usize).copied().flatten().map_or(NO_STACK, |s| s as i32))
            .collect();
        // Numbers follow the first event that has the stack, and first come those that do not depend on whether a
        // large table is made too.
        let mut numbers = vec![NO_STACK; stacks.len()];
        let mut sorted = Vec::with_capacity(stacks.len());
        let mut wanted = 0;
        for pass in [true, false] {
            for (ticket, &stack) in of_ticket.iter().enumerate() {
                let Some(number) = usize::try_from(stack).ok().and_then(|s| numbers.get_mut(s)) else {
                    continue;
                };
                if *number == NO_STACK
                    && (!pass || self.is_wanted(ticket))
                    && let Some(stack) = stacks.get(stack as usize)
                {
                    *number = sorted.len() as i32;
                    sorted.push(*stack);
                }
            }
            if pass {
                wanted = sorted.len();
            }
        }
        for slot in &mut of_ticket {
            *slot = usize::try_from(*slot).ok().and_then(|s| numbers.get(s)).copied().unwrap_or(NO_STACK);
        }
        self.wanted = Vec::new();
        let stacks: Vec<DistinctStack> = sorted;
        self.known = HashMap::default();
        FinishedStacks { stacks, wanted, of_ticket }
    }

    /// Frames of a half, innermost first.
    pub(crate) fn frames_of(&self, part: u32) -> &[u64] {
        if part == NO_PART {
            return &[];
        }
        let from = self.starts.get(part as usize).copied().unwrap_or(0) as usize;
        let to = self.starts.get(part as usize + 1).copied().unwrap_or(0) as usize;
        self.frames.get(from..to).unwrap_or(&[])
    }
}

/// A distinct stack of the trace.
#[derive(Clone, Copy, Debug)]
pub struct DistinctStack {
    /// Its process instance.
    pub upid: Option<u32>,
    /// Epoch of the process's address space, see [`super::image::Images::epoch`].
    pub epoch: u32,
    /// No stack was recorded: the only frame is the instruction pointer.
    pub leaf_only: bool,
    pub(crate) kernel: u32,
    pub(crate) user: u32,
}

/// What the pass knows of stacks at its end.
#[derive(Debug, Default)]
pub struct FinishedStacks {
    /// Distinct stacks; the stack number is the index.
    pub stacks: Vec<DistinctStack>,
    /// How many of them, at the front, do not depend on whether tables are made that are only made on demand.
    pub wanted: usize,
    /// Stack number of each ticket, [`NO_STACK`] without one.
    pub of_ticket: Vec<i32>,
}

pub(crate) fn event(event: &Event<'_>, cx: &mut Context<'_>) {
    let width = event.record.pointer_size();
    let payload = event.record.payload();
    match event.tag {
        KEY_CREATE | KEY_DELETE | KEY_RUNDOWN => {
            if let Some(key) = event.u64(0) {
                cx.model.stacks.define(key, payload.get(width..).unwrap_or(&[]), width);
            }
            return;
        }
        USER_HALF => {
            for item in event.record.ext_items() {
                let width = if item.kind == ext::STACK_TRACE32 { 4 } else { 8 };
                if matches!(item.kind, ext::STACK_TRACE32 | ext::STACK_TRACE64) {
                    let id = item.data.u64_at(0).unwrap_or(0);
                    let (_, user) = cx.model.stacks.halves(item.data.get(8..).unwrap_or(&[]), width);
                    cx.model.stacks.attach_match(id, user);
                }
            }
            return;
        }
        _ => {}
    }
    let (Some(ticks), Some(pid), Some(tid)) = (event.i64(0), event.u64(1), event.u64(2)) else {
        cx.ledger.count(&crate::anomalies::PAYLOAD_TOO_SHORT, 1);
        return;
    };
    let (pid, tid) = (pid as u32, tid as u32);
    // A stack record's ids are right where header ids are not: bind the thread to its process.
    let utid = if tid == u32::MAX {
        NO_PART
    } else {
        cx.model.thread(tid, Some(pid).filter(|&pid| pid != u32::MAX), event.ns)
    };
    let (kernel, user) = match event.tag {
        STACK => cx.model.stacks.halves(payload.get(16..).unwrap_or(&[]), width),
        KEY_KERNEL => (event.u64(3).map_or(NO_PART, |key| cx.model.stacks.key(key)), NO_PART),
        _ => (NO_PART, event.u64(3).map_or(NO_PART, |key| cx.model.stacks.key(key))),
    };
    let model = &mut *cx.model;
    model.stacks.attach(
        ticks,
        thread_key(tid, event.record.cpu),
        utid,
        (kernel, user),
        &model.threads,
        &model.images,
    );
    model.close_stacks(event.ns);
}
