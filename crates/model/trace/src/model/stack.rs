//! Stacks: from frames in records, or from keys that are defined later, to one number per distinct stack.
//!
//! Stack records name their event by its timestamp and thread; the kernel half comes at once, the user half up to
//! hundreds of milliseconds later and on another CPU. Halves of one time and thread make a stack whether or not a
//! table wants it, so that the stacks of a trace, and their numbers, do not depend on what is asked. A row that wants
//! a stack takes a *ticket*, which waits for the stack of its time and thread.

mod kinds;
mod open;

use super::halves::{Halves, KEYED, NO_PART};
use super::image::{Images, is_kernel};
use super::thread::Threads;
use crate::anomalies::{STACK_KEYS_UNDEFINED, STACKS_LATE};
use crate::event::{Context, Event, Select, What};
use etwhy_base::Bytes;
use etwhy_decode::kernel::events::{PerfInfo, StackWalk};
use etwhy_etl::abi::{ext, guids::KERNEL_EVENT_TRACING};
use etwhy_etl::{ExtItem, Ledger, Record};
use foldhash::HashMap;
use kinds::Kinds;
use open::Open;
use std::collections::VecDeque;
use std::collections::hash_map::Entry;

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
pub(crate) const WINDOW_NS: i64 = 10_000_000_000;
/// Ticket of a row without a stack.
pub const NO_STACK: i32 = -1;
/// Set in the slot of a ticket that still waits; the rest is the next ticket that waits for the same stack.
const WAITS: u32 = 1 << 31;

/// A distinct stack: process, epoch of its address space, halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Provisional {
    who: u32,
    epoch: u32,
    kernel: u32,
    user: u32,
    leaf_only: bool,
}

/// Time (ticks) and thread of an event, by which stack records name it.
type Key = (i64, u32);

/// Stacks of the trace.
#[derive(Debug, Default)]
pub struct Stacks {
    halves: Halves,
    /// Stacks by the time and thread of their event, the latest; [`ANY_TID`] for tickets whose thread is not known.
    open: HashMap<Key, Open>,
    /// Those of the same time and thread before it.
    before: HashMap<Key, Vec<Open>>,
    queue: VecDeque<(i64, Key)>,
    /// Events that carry their kernel half themselves, by match id.
    by_match: HashMap<u64, Key>,
    provisional: Vec<Provisional>,
    /// First event that has the stack, ns.
    first_ns: Vec<i64>,
    known: HashMap<Provisional, u32>,
    /// Provisional stack of each ticket, or what it waits for ([`WAITS`]).
    tickets: Vec<u32>,
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

/// Whose a stack is, as [`Open::who`] says it.
fn who(utid: Option<u32>, threads: &Threads) -> u32 {
    let Some(utid) = utid else { return NO_PART };
    threads.get(utid).and_then(|t| t.upid).unwrap_or(KEYED | utid)
}

impl Stacks {
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
        let ticket = self.tickets.len() as u32;
        if ticket >= i32::MAX as u32 || is_stack(record) {
            return NO_STACK;
        }
        self.asked = Some((address, record.ticks, tid, ticket as i32));
        self.tickets.push(NO_PART);
        let key = (record.ticks, tid);
        let kind = Kinds::number(event.type_index);
        let user_mode = ip != 0 && !is_kernel(ip, event.pointer_size);
        let mut new = Open { ip, user_mode, kind, ..Open::new(ns, who(utid, threads)) };
        for item in record.ext_items() {
            self.item(&item, record, key, &mut new);
        }
        if new.has_half() {
            self.kinds.came(kind);
        }
        let fits = |open: &Open| match (new.has_half(), new.user_mode) {
            (true, _) => false,
            (_, true) => open.ip == ip && open.user == NO_PART,
            (..) => open.awaits_kernel(),
        };
        let link = |tickets: &mut Vec<u32>, first: &mut u32| {
            if let Some(slot) = tickets.get_mut(ticket as usize) {
                *slot = if *first == NO_PART { NO_PART } else { WAITS | *first };
            }
            *first = ticket;
        };
        let tickets = &mut self.tickets;
        let waiting = self.open.get_mut(&key);
        let waiting = match waiting {
            Some(open) if fits(open) => Some(open),
            _ => self.before.get_mut(&key).and_then(|before| before.iter_mut().find(|open| fits(open))),
        };
        if let Some(open) = waiting {
            let first = if ip == 0 { &mut open.tickets } else { &mut open.samples };
            link(tickets, first);
            open.kind = kind;
            if open.ip == 0 {
                (open.ip, open.user_mode) = (ip, user_mode);
            }
            return ticket as i32;
        }
        link(tickets, if ip == 0 { &mut new.tickets } else { &mut new.samples });
        self.push(key, new);
        self.close_complete(key, images);
        ticket as i32
    }

    /// Another stack of that time and thread.
    fn push(&mut self, key: Key, new: Open) {
        match self.open.insert(key, new) {
            Some(before) => self.before.entry(key).or_default().push(before),
            None => self.queue.push_back((new.ns, key)),
        }
    }

    /// Whether an event can be expected to have a stack.
    pub(crate) fn expects(&mut self, event: &Event<'_>) -> bool {
        let record = (event.record.bytes.as_ptr() as usize, event.record.ticks);
        self.kinds.expects(Kinds::number(event.type_index), record)
    }

    /// A number that tickets of the same stack share, once a ticket is closed and has one. Sums over stacks are
    /// made by it, with a ticket to tell the final number at the end; equal stacks may have several.
    pub(crate) fn shared_by(&self, ticket: i32) -> Option<u32> {
        let ticket = usize::try_from(ticket).ok()?;
        self.tickets.get(ticket).copied().filter(|&number| number & WAITS == 0)
    }

    /// A stack inside the event itself.
    fn item(&mut self, item: &ExtItem<'_>, record: &Record<'_>, key: Key, open: &mut Open) {
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
            let (kernel, user) = self.halves.split(rest, width);
            if kernel != NO_PART {
                open.kernel = kernel;
            }
            if user != NO_PART {
                open.user = user;
            }
        } else if let Some(stack_key) = rest.ptr_at(0, width) {
            let part = self.halves.key(stack_key);
            // The first key of a record is the kernel's, unless the record has none.
            if open.kernel == NO_PART && open.user == NO_PART && width == record.pointer_size() {
                open.kernel = part;
            } else {
                open.user = part;
            }
        }
        open.whole |= match_id == 0 && open.has_half();
    }

    /// Gives the halves of a record to the stack of the event at `key`, whose time is `ns`. A stack that is complete is
    /// closed at once: most user halves come within microseconds, and what is closed needs no place in the window.
    fn attach(&mut self, key: Key, ns: i64, whose: u32, (kernel, user): (u32, u32), images: &Images) {
        if kernel != NO_PART {
            let open = self.awaiting(key, ns, whose, Open::awaits_kernel);
            open.kernel = kernel;
        }
        if user != NO_PART {
            let mut taken = false;
            let before = self.before.get_mut(&key).into_iter().flatten();
            for open in before.chain(self.open.get_mut(&key)).filter(|open| open.awaits_user()) {
                // At one moment a thread has one user half.
                open.user = user;
                if open.kernel == NO_PART {
                    open.who = whose;
                }
                taken = true;
            }
            if !taken {
                self.awaiting(key, ns, whose, Open::awaits_kernel).user = user;
            }
        }
        self.close_complete(key, images);
    }

    /// The stack of that time and thread that waits for its first half, made if there is none.
    fn awaiting(&mut self, key: Key, ns: i64, whose: u32, waits: fn(&Open) -> bool) -> &mut Open {
        let any = self.open.remove(&(key.0, ANY_TID)).map_or(NO_PART, |open| open.tickets);
        let in_front = self.open.get(&key).is_some_and(waits);
        let behind = || self.before.get(&key).and_then(|before| before.iter().position(waits));
        let at = if in_front { None } else { behind() };
        if !in_front && at.is_none() {
            self.push(key, Open::new(ns, whose));
        }
        let (tickets, before, open) = (&mut self.tickets, &mut self.before, &mut self.open);
        let found = at.and_then(|at| before.get_mut(&key)?.get_mut(at));
        let found = match found {
            Some(found) => found,
            None => open.entry(key).or_insert_with(|| Open::new(ns, whose)),
        };
        (found.ns, found.who) = (ns, whose);
        self.kinds.came(found.kind);
        // Tickets without a thread join those that have one.
        let mut last = any;
        while let Some(&next) = tickets.get(last as usize).filter(|&&next| next != NO_PART) {
            last = next & !WAITS;
        }
        if let Some(slot) = tickets.get_mut(last as usize) {
            *slot = if found.tickets == NO_PART { NO_PART } else { WAITS | found.tickets };
            found.tickets = any;
        }
        found
    }

    /// Closes the stacks of a time and thread if none of them lacks anything.
    fn close_complete(&mut self, key: Key, images: &Images) {
        let mut all = self.before.get(&key).into_iter().flatten().chain(self.open.get(&key));
        if all.all(Open::is_complete) {
            self.close_all(key, images);
        }
    }

    /// Closes the stacks of a time and thread.
    fn close_all(&mut self, key: Key, images: &Images) {
        let open = self.open.remove(&key);
        self.close_before(key, images);
        if let Some(open) = open {
            self.close_one(open, images);
        }
        // Most stacks come right behind their event: nothing of them is left to wait.
        if self.queue.back().is_some_and(|&(_, last)| last == key) {
            self.queue.pop_back();
        }
    }

    /// Closes all but the latest stack of a time and thread.
    fn close_before(&mut self, key: Key, images: &Images) {
        if !self.before.is_empty() {
            for open in self.before.remove(&key).into_iter().flatten() {
                self.close_one(open, images);
            }
        }
    }

    /// The user half of an event that carried the kernel half itself.
    fn attach_match(&mut self, id: u64, user: u32, images: &Images) {
        let Some(key) = self.by_match.remove(&id) else { return };
        let before = self.before.get_mut(&key).into_iter().flatten();
        for open in before.chain(self.open.get_mut(&key)).filter(|open| open.kernel != NO_PART) {
            open.user = user;
        }
        self.close_complete(key, images);
    }

    /// Closes stacks that have waited long enough.
    pub(crate) fn close(&mut self, before: i64, images: &Images) {
        while let Some(&(ns, key)) = self.queue.front() {
            if ns >= before {
                break;
            }
            self.queue.pop_front();
            let Entry::Occupied(open) = self.open.entry(key) else { continue };
            // Of another stack at the same time, which came after this one was complete.
            if open.get().ns < before {
                let open = open.remove();
                self.close_before(key, images);
                self.close_one(open, images);
            }
        }
    }

    /// Makes a provisional stack of what has waited for halves.
    fn close_one(&mut self, open: Open, images: &Images) {
        if open.has_half() {
            let number = self.stack(&open, false, images);
            self.give(open.tickets, number);
            self.give(open.samples, number);
        } else {
            self.give(open.tickets, NO_PART);
            let ip = if open.ip == 0 { NO_PART } else { self.halves.number(&[open.ip]) };
            let number = match ip {
                NO_PART => NO_PART,
                user => self.stack(&Open { user, ..open }, true, images),
            };
            self.give(open.samples, number);
        }
    }

    /// The number of a stack.
    fn stack(&mut self, open: &Open, leaf_only: bool, images: &Images) -> u32 {
        let epoch = match open.who {
            upid if upid & KEYED == 0 => images.epoch_at(upid, open.ns),
            _ => 0,
        };
        let stack = Provisional { who: open.who, epoch, kernel: open.kernel, user: open.user, leaf_only };
        let next = self.provisional.len() as u32;
        let number = *self.known.entry(stack).or_insert(next);
        if number == next {
            self.provisional.push(stack);
            self.first_ns.push(open.ns);
        } else if let Some(first) = self.first_ns.get_mut(number as usize) {
            *first = (*first).min(open.ns);
        }
        number
    }

    /// Gives a stack to the tickets that wait for it.
    fn give(&mut self, first: u32, number: u32) {
        let mut ticket = first;
        while let Some(slot) = self.tickets.get_mut(ticket as usize) {
            let next = std::mem::replace(slot, number);
            if next == NO_PART {
                break;
            }
            ticket = next & !WAITS;
        }
    }

    /// Ends the pass: closes all tickets, merges stacks that turned out to be equal, and numbers them in the order of
    /// the first events that have them.
    pub(crate) fn finish(
        &mut self,
        threads: &Threads,
        images: &Images,
        ledger: &mut Ledger,
    ) -> FinishedStacks {
        self.close(i64::MAX, images);
        (self.open, self.before) = (HashMap::default(), HashMap::default());
        (self.queue, self.known) = (VecDeque::new(), HashMap::default());
        ledger.count(&STACKS_LATE, self.late);
        ledger.count(&STACK_KEYS_UNDEFINED, self.halves.undefined());
        let provisional = std::mem::take(&mut self.provisional);
        let first_ns = std::mem::take(&mut self.first_ns);
        let mut known: HashMap<DistinctStack, u32> = HashMap::default();
        let mut stacks: Vec<(i64, DistinctStack)> = Vec::new();
        let mut merged: Vec<u32> = Vec::with_capacity(provisional.len());
        for (stack, ns) in provisional.into_iter().zip(first_ns) {
            let (kernel, user) = (self.halves.defined(stack.kernel), self.halves.defined(stack.user));
            if kernel == NO_PART && user == NO_PART {
                merged.push(NO_PART);
                continue;
            }
            let (upid, epoch) = match stack.who {
                NO_PART => (None, 0),
                utid if utid & KEYED != 0 => {
                    let upid = threads.get(utid & !KEYED).and_then(|t| t.upid);
                    (upid, upid.map_or(0, |upid| images.epoch_at(upid, ns)))
                }
                upid => (Some(upid), stack.epoch),
            };
            let distinct = DistinctStack { upid, epoch, leaf_only: stack.leaf_only, kernel, user };
            let next = stacks.len() as u32;
            let number = *known.entry(distinct).or_insert(next);
            match stacks.get_mut(number as usize) {
                Some((first, _)) => *first = (*first).min(ns),
                None => stacks.push((ns, distinct)),
            }
            merged.push(number);
        }
        drop(known);
        let numbers = self.sort(&mut stacks);
        // In place: there may be a hundred million of them.
        let number = |ticket: u32| {
            let stack = merged.get(ticket as usize)?;
            numbers.get(*stack as usize).map(|&number| number as i32)
        };
        let of_ticket: Vec<i32> = std::mem::take(&mut self.tickets)
            .into_iter()
            .map(|ticket| number(ticket).unwrap_or(NO_STACK))
            .collect();
        FinishedStacks { stacks: stacks.into_iter().map(|(_, stack)| stack).collect(), of_ticket }
    }

    /// Sorts stacks by their first event, those of one moment by what they are. Returns the new number of each.
    fn sort(&self, stacks: &mut Vec<(i64, DistinctStack)>) -> Vec<u32> {
        let mut order: Vec<u32> = (0..stacks.len() as u32).collect();
        let content = |stack: &DistinctStack| {
            let frames = (self.halves.frames_of(stack.kernel), self.halves.frames_of(stack.user));
            (frames, stack.upid, stack.epoch, stack.leaf_only)
        };
        order.sort_unstable_by(|&a, &b| {
            let (Some(a), Some(b)) = (stacks.get(a as usize), stacks.get(b as usize)) else {
                return a.cmp(&b);
            };
            a.0.cmp(&b.0).then_with(|| content(&a.1).cmp(&content(&b.1)))
        });
        let mut numbers = vec![0; stacks.len()];
        for (new, &old) in order.iter().enumerate() {
            if let Some(number) = numbers.get_mut(old as usize) {
                *number = new as u32;
            }
        }
        *stacks = order.iter().filter_map(|&old| stacks.get(old as usize).copied()).collect();
        numbers
    }

    /// Frames of a half, innermost first.
    pub(crate) fn frames_of(&self, part: u32) -> &[u64] {
        self.halves.frames_of(part)
    }
}

/// A distinct stack of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// Stack number of each ticket, [`NO_STACK`] without one.
    pub of_ticket: Vec<i32>,
}

pub(crate) fn event(event: &Event<'_>, cx: &mut Context<'_>) {
    let width = event.pointer_size;
    let payload = event.payload;
    let model = &mut *cx.model;
    match event.tag {
        WITH_ITEMS => {
            const KINDS: [u16; 4] =
                [ext::STACK_TRACE32, ext::STACK_TRACE64, ext::STACK_KEY32, ext::STACK_KEY64];
            if event.record.ext_items().any(|item| KINDS.contains(&item.kind)) {
                let utid = cx.utid(event);
                cx.stack_ticket(event, event.tid_pid().map(|(tid, _)| tid), utid);
            }
            return;
        }
        SAMPLE => {
            // What the idle thread does is nobody's, unless a DPC or ISR interrupted it.
            let (Some(ip), Some(tid)) = (event.u64(0), event.u64(1)) else { return };
            if tid != 0 || event.u64(3).unwrap_or(0) & 3 != 0 {
                let utid = model.threads.current(tid as u32);
                cx.stack_ticket_at(event, Some(tid as u32), utid, ip);
            }
            return;
        }
        KEY_CREATE | KEY_DELETE | KEY_RUNDOWN => {
            if let Some(key) = event.u64(0) {
                model.stacks.halves.define(key, payload.get(width..).unwrap_or(&[]), width);
            }
            return;
        }
        USER_HALF => {
            for item in event.record.ext_items() {
                let width = if item.kind == ext::STACK_TRACE32 { 4 } else { 8 };
                if matches!(item.kind, ext::STACK_TRACE32 | ext::STACK_TRACE64) {
                    let id = item.data.u64_at(0).unwrap_or(0);
                    let (_, user) = model.stacks.halves.split(item.data.get(8..).unwrap_or(&[]), width);
                    model.stacks.attach_match(id, user, &model.images);
                }
            }
            return;
        }
        _ => {}
    }
    let (Some(ticks), Some(tid)) = (event.i64(0), event.u64(2)) else {
        cx.ledger.count(&crate::anomalies::PAYLOAD_TOO_SHORT, 1);
        return;
    };
    let tid = tid as u32;
    let (kernel, user) = match event.tag {
        STACK => model.stacks.halves.split(payload.get(16..).unwrap_or(&[]), width),
        KEY_KERNEL => (event.u64(3).map_or(NO_PART, |key| model.stacks.halves.key(key)), NO_PART),
        _ => (NO_PART, event.u64(3).map_or(NO_PART, |key| model.stacks.halves.key(key))),
    };
    let ns = cx.timeline.ticks_to_ns(event.record.file, ticks);
    if event.ns.saturating_sub(ns) > WINDOW_NS {
        model.stacks.late += 1;
        return;
    }
    let whose = who(if tid == u32::MAX { None } else { model.threads.current(tid) }, &model.threads);
    let key = (ticks, thread_key(tid, event.record.cpu));
    model.stacks.attach(key, ns, whose, (kernel, user), &model.images);
    model.close_stacks(event.ns);
}
