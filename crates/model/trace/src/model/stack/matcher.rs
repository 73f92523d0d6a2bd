//! Finds the stack of each event: brings halves and tickets of one time and thread together.

use super::open::Open;
use super::step::{Batch, Step, What};
use super::{ANY_TID, Key, NO_PART, WINDOW_NS};
use crate::model::halves::{Halves, KEYED};
use etwhy_base::Bytes;
use foldhash::HashMap;
use std::collections::VecDeque;
use std::collections::hash_map::Entry;

/// Set in the slot of a ticket that still waits; the rest is the next ticket that waits for the same stack.
const WAITS: u32 = 1 << 31;
/// Slot of a ticket that waits as the last one.
const LAST: u32 = u32::MAX;
/// Slot of a ticket whose event has no stack.
pub(super) const WITHOUT: u32 = WAITS - 1;

/// Stack records close the tickets that have waited long enough. In traces without any, this does: a mask of the
/// tickets in between.
const TICKETS_BETWEEN_CLOSING: u32 = 0xFFFF;

/// A distinct stack: process, epoch of its address space, halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Provisional {
    pub who: u32,
    pub epoch: u32,
    pub kernel: u32,
    pub user: u32,
    pub leaf_only: bool,
}

#[derive(Debug, Default)]
pub(super) struct Matcher {
    pub halves: Halves,
    /// Stacks by the time and thread of their event, the latest; [`ANY_TID`] for tickets whose thread is not known.
    open: HashMap<Key, Open>,
    /// A ticket or a record came whose thread is not known.
    any_tid: bool,
    /// Those of the same time and thread before it.
    before: HashMap<Key, Vec<Open>>,
    queue: VecDeque<(i64, Key)>,
    /// Events that carry their kernel half themselves, by match id.
    by_match: HashMap<u64, Key>,
    pub provisional: Vec<Provisional>,
    /// First event that has the stack, ns.
    pub first_ns: Vec<i64>,
    known: HashMap<Provisional, u32>,
    /// Provisional stack of each ticket, or what it waits for ([`WAITS`]).
    pub tickets: Vec<u32>,
    /// Halves that the event of the next ticket holds itself.
    own: Own,
}

/// Halves that an event holds itself.
#[derive(Clone, Copy, Debug)]
struct Own {
    kernel: u32,
    user: u32,
    whole: bool,
}

impl Default for Own {
    fn default() -> Own {
        Own { kernel: NO_PART, user: NO_PART, whole: false }
    }
}

impl Own {
    fn has_half(self) -> bool {
        self.kernel != NO_PART || self.user != NO_PART
    }
}

impl Matcher {
    /// Does the steps of a batch and empties it.
    pub fn steps(&mut self, batch: &mut Batch) {
        let mut start = 0;
        for step in &batch.steps {
            let end = step.end as usize;
            let bytes = batch.bytes.sub(start, end.saturating_sub(start)).unwrap_or(&[]);
            start = end;
            self.step(step, bytes);
        }
        batch.steps.clear();
        batch.bytes.clear();
    }

    fn step(&mut self, step: &Step, bytes: &[u8]) {
        let key = (step.ticks, step.tid);
        let halves = match step.what {
            What::Ticket { user_mode } => return self.ticket(step, key, user_mode),
            What::OwnFrames { .. } | What::OwnKey { .. } => return self.own(step, key, bytes),
            What::Define { width } => return self.halves.define(step.value, bytes, usize::from(width)),
            What::UserHalf { width } => {
                let (_, user) = self.halves.split(bytes, usize::from(width));
                return self.attach_match(step.value, user);
            }
            What::Frames { width } => self.halves.split(bytes, usize::from(width)),
            What::KernelKey => (self.halves.key(step.value), NO_PART),
            What::UserKey => (NO_PART, self.halves.key(step.value)),
        };
        self.attach(key, step, halves);
        self.close(step.now.saturating_sub(WINDOW_NS));
    }

    /// A row waits for the stack of an event.
    fn ticket(&mut self, step: &Step, key: Key, user_mode: bool) {
        let own = std::mem::take(&mut self.own);
        let ticket = self.tickets.len() as u32;
        self.tickets.push(LAST);
        let ip = step.value;
        let mut new = Open { ip, user_mode, ..Open::new(step) };
        (new.kernel, new.user, new.whole) = (own.kernel, own.user, own.whole);
        self.any_tid |= key.1 == ANY_TID;
        let alone = self.before.is_empty() || !self.before.contains_key(&key);
        if alone && let Entry::Vacant(place) = self.open.entry(key) {
            *(if ip == 0 { &mut new.tickets } else { &mut new.samples }) = ticket;
            if new.is_complete() {
                self.close_one(new);
            } else {
                self.queue.push_back((new.ns, key));
                place.insert(new);
            }
        } else {
            self.join(key, new, ticket, own);
        }
        if ticket & TICKETS_BETWEEN_CLOSING == 0 {
            self.close(step.now.saturating_sub(WINDOW_NS));
        }
    }

    /// A row waits for a stack, and other stacks of that time and thread wait already.
    fn join(&mut self, key: Key, mut new: Open, ticket: u32, own: Own) {
        let (ip, user_mode) = (new.ip, new.user_mode);
        let fits = |open: &Open| match (own.has_half(), user_mode) {
            (true, _) => false,
            (_, true) => open.ip == ip && open.user == NO_PART,
            (..) => open.awaits_kernel(),
        };
        let link = |tickets: &mut Vec<u32>, first: &mut u32| {
            if let Some(slot) = tickets.get_mut(ticket as usize) {
                *slot = if *first == NO_PART { LAST } else { WAITS | *first };
            }
            *first = ticket;
        };
        let waiting = match self.open.get_mut(&key) {
            Some(open) if fits(open) => Some(open),
            _ => self.before.get_mut(&key).and_then(|before| before.iter_mut().find(|open| fits(open))),
        };
        if let Some(open) = waiting {
            let first = if ip == 0 { &mut open.tickets } else { &mut open.samples };
            link(&mut self.tickets, first);
            if open.ip == 0 {
                (open.ip, open.user_mode) = (ip, user_mode);
            }
        } else {
            link(&mut self.tickets, if ip == 0 { &mut new.tickets } else { &mut new.samples });
            self.push(key, new);
            self.close_complete(key);
        }
    }

    /// Another stack of that time and thread.
    fn push(&mut self, key: Key, new: Open) {
        match self.open.insert(key, new) {
            Some(before) => self.before.entry(key).or_default().push(before),
            None => self.queue.push_back((new.ns, key)),
        }
    }

    /// A number that tickets of the same stack share, `None` while the ticket still waits.
    pub fn shared_by(&self, ticket: u32) -> Option<u32> {
        self.tickets.get(ticket as usize).copied().filter(|&number| number & WAITS == 0)
    }

    /// A stack inside the event itself.
    fn own(&mut self, step: &Step, key: Key, bytes: &[u8]) {
        let match_id = step.value;
        if match_id != 0 && self.by_match.len() < 1 << 20 {
            self.by_match.insert(match_id, key);
        }
        match step.what {
            What::OwnFrames { width } => {
                let (kernel, user) = self.halves.split(bytes, usize::from(width));
                if kernel != NO_PART {
                    self.own.kernel = kernel;
                }
                if user != NO_PART {
                    self.own.user = user;
                }
            }
            What::OwnKey { native } => {
                let Some(stack_key) = bytes.ptr_at(0, bytes.len()) else { return };
                let part = self.halves.key(stack_key);
                // The first key of a record is the kernel's, unless the record has none.
                if !self.own.has_half() && native {
                    self.own.kernel = part;
                } else {
                    self.own.user = part;
                }
            }
            _ => {}
        }
        self.own.whole |= match_id == 0 && self.own.has_half();
    }

    /// Gives the halves of a record to the stack of the event at `key`. A stack that is complete is closed at once:
    /// most user halves come within microseconds, and what is closed needs no place in the window.
    fn attach(&mut self, key: Key, step: &Step, (kernel, user): (u32, u32)) {
        if self.attach_alone(key, step, (kernel, user)) {
            return;
        }
        if kernel != NO_PART {
            self.awaiting(key, step).kernel = kernel;
        }
        if user != NO_PART {
            let mut taken = false;
            let before = self.before.get_mut(&key).into_iter().flatten();
            for open in before.chain(self.open.get_mut(&key)).filter(|open| open.awaits_user()) {
                // At one moment a thread has one user half.
                open.user = user;
                if open.kernel == NO_PART {
                    (open.who, open.epoch) = (step.who, step.epoch);
                }
                taken = true;
            }
            if !taken {
                self.awaiting(key, step).user = user;
            }
        }
        self.close_complete(key);
    }

    /// Does what [`Matcher::attach`] does where at most one stack of that time and thread waits, which is nearly always, and takes the
    /// halves: the tables are asked once. False, with nothing done, elsewhere.
    fn attach_alone(&mut self, key: Key, step: &Step, (kernel, user): (u32, u32)) -> bool {
        // A record without a thread is one that others may join.
        self.any_tid |= key.1 == ANY_TID;
        let shared = !self.before.is_empty() && self.before.contains_key(&key)
            || self.any_tid && self.open.contains_key(&(key.0, ANY_TID));
        if shared || key.1 == ANY_TID || (kernel, user) == (NO_PART, NO_PART) {
            return false;
        }
        match self.open.entry(key) {
            Entry::Vacant(place) => {
                let open = Open { kernel, user, ..Open::new(step) };
                if open.is_complete() {
                    self.close_one(open);
                } else {
                    self.queue.push_back((open.ns, key));
                    place.insert(open);
                }
            }
            Entry::Occupied(mut place) => {
                let open = place.get_mut();
                if open.awaits_kernel() {
                    (open.ns, open.who, open.epoch) = (step.ns, step.who, step.epoch);
                } else if kernel != NO_PART || !open.awaits_user() {
                    return false;
                } else if open.kernel == NO_PART {
                    (open.who, open.epoch) = (step.who, step.epoch);
                }
                if kernel != NO_PART {
                    open.kernel = kernel;
                }
                if user != NO_PART {
                    open.user = user;
                }
                if open.is_complete() {
                    let open = place.remove();
                    self.close_one(open);
                    if self.queue.back().is_some_and(|&(_, last)| last == key) {
                        self.queue.pop_back();
                    }
                }
            }
        }
        true
    }

    /// The stack of that time and thread that waits for its first half, made if there is none.
    fn awaiting(&mut self, key: Key, step: &Step) -> &mut Open {
        let any = self.open.remove(&(key.0, ANY_TID)).map_or(NO_PART, |open| open.tickets);
        let in_front = self.open.get(&key).is_some_and(Open::awaits_kernel);
        let behind = || self.before.get(&key).and_then(|before| before.iter().position(Open::awaits_kernel));
        let at = if in_front { None } else { behind() };
        if !in_front && at.is_none() {
            self.push(key, Open::new(step));
        }
        let (tickets, before, open) = (&mut self.tickets, &mut self.before, &mut self.open);
        let found = at.and_then(|at| before.get_mut(&key)?.get_mut(at));
        let found = match found {
            Some(found) => found,
            None => open.entry(key).or_insert_with(|| Open::new(step)),
        };
        (found.ns, found.who, found.epoch) = (step.ns, step.who, step.epoch);
        // Tickets without a thread join those that have one.
        let mut last = any;
        while let Some(&next) = tickets.get(last as usize).filter(|&&next| next != LAST) {
            last = next & !WAITS;
        }
        if let Some(slot) = tickets.get_mut(last as usize) {
            *slot = if found.tickets == NO_PART { LAST } else { WAITS | found.tickets };
            found.tickets = any;
        }
        found
    }

    /// Closes the stacks of a time and thread if none of them lacks anything.
    fn close_complete(&mut self, key: Key) {
        let mut all = self.before.get(&key).into_iter().flatten().chain(self.open.get(&key));
        if all.all(Open::is_complete) {
            self.close_all(key);
        }
    }

    /// Closes the stacks of a time and thread.
    fn close_all(&mut self, key: Key) {
        let open = self.open.remove(&key);
        self.close_before(key);
        if let Some(open) = open {
            self.close_one(open);
        }
        // Most stacks come right behind their event: nothing of them is left to wait.
        if self.queue.back().is_some_and(|&(_, last)| last == key) {
            self.queue.pop_back();
        }
    }

    /// Closes all but the latest stack of a time and thread.
    fn close_before(&mut self, key: Key) {
        if !self.before.is_empty() {
            for open in self.before.remove(&key).into_iter().flatten() {
                self.close_one(open);
            }
        }
    }

    /// The user half of an event that carried the kernel half itself.
    fn attach_match(&mut self, id: u64, user: u32) {
        let Some(key) = self.by_match.remove(&id) else { return };
        let before = self.before.get_mut(&key).into_iter().flatten();
        for open in before.chain(self.open.get_mut(&key)).filter(|open| open.kernel != NO_PART) {
            open.user = user;
        }
        self.close_complete(key);
    }

    /// Closes stacks that have waited long enough.
    fn close(&mut self, before: i64) {
        while let Some(&(ns, key)) = self.queue.front() {
            if ns >= before {
                break;
            }
            self.queue.pop_front();
            let Entry::Occupied(open) = self.open.entry(key) else { continue };
            // Of another stack at the same time, which came after this one was complete.
            if open.get().ns < before {
                let open = open.remove();
                self.close_before(key);
                self.close_one(open);
            }
        }
    }

    /// Closes all stacks and forgets what was needed to find more.
    pub fn end(&mut self) {
        self.close(i64::MAX);
        (self.open, self.before) = (HashMap::default(), HashMap::default());
        (self.queue, self.known) = (VecDeque::new(), HashMap::default());
    }

    /// Makes a provisional stack of what has waited for halves.
    fn close_one(&mut self, open: Open) {
        if open.has_half() {
            let number = self.stack(&open, false);
            self.give(open.tickets, number);
            self.give(open.samples, number);
        } else {
            self.give(open.tickets, WITHOUT);
            let ip = if open.ip == 0 { NO_PART } else { self.halves.number(&[open.ip]) };
            let number = match ip {
                NO_PART => WITHOUT,
                user => self.stack(&Open { user, ..open }, true),
            };
            self.give(open.samples, number);
        }
    }

    /// The number of a stack.
    fn stack(&mut self, open: &Open, leaf_only: bool) -> u32 {
        let epoch = if open.who & KEYED == 0 { open.epoch } else { 0 };
        let stack = Provisional { who: open.who, epoch, kernel: open.kernel, user: open.user, leaf_only };
        let next = self.provisional.len() as u32;
        if next >= WITHOUT {
            return WITHOUT;
        }
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
            if next == LAST {
                break;
            }
            ticket = next & !WAITS;
        }
    }
}
