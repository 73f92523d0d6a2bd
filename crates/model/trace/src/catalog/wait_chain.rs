//! Who made whom wait: waits by the process that waited and by who ended the wait.
//!
//! # How it is computed
//! Each wait of table `cswitch` that a `ReadyThread` ended is charged to the process of the thread that ended it, and to the
//! service that this thread worked for. If a DPC ended it, to the module of that DPC's routine: the DPC whose `DPC` event
//! says that it was running on the processor of the `ReadyThread`. If a thread of the System process ended it, whose routine it ran
//! tells the stack of the `ReadyThread` (as in `system_work`): a driver's work there is that driver's. `wait_sum_ns` adds up; `wait_union_ns` counts each moment
//! once, which is what somebody who waits for the program would measure. `inverted_*` are waits that a thread
//! of lower priority ended: its priority when it ran last, against that of the waiting thread when it began to wait.
//! `inverted_queued_ns` is the part of these in which that thread was itself ready and had no processor (its last eight times
//! in the queue): what a priority inversion looks like.
//!
//! `wait_class` says what the wait was for. The reason decides where it can. Where several kinds of waits share one (critical sections,
//! slim locks and condition variables wait with `WrAlertByThreadId`; a .NET Monitor and an idle worker with `UserRequest`), the
//! innermost function on the stack that is known for waiting decides, for waits of at least 100 µs that a thread ended. A mutex of the kernel
//! looks like any other object to whoever waits for it: that it is one, and so a lock, tells the stack of the thread that released it.
//!
//! # What fools it
//! A wait ends when somebody signals, which does not make him its cause: a thread without work waits for the next request, and
//! whoever sends it ends the wait. `wait_reason` tells some: `WrQueue` and `WrLpcReceive` are threads without work,
//! `DelayExecution` is sleep; `WrLpcReply` is a caller that waits for an answer; `WrResource`, `WrPushLock`, `WrFastMutex`
//! and `WrRundown` are locks. Threads also hand on: the one that ended a wait may have waited itself (`critical_path`
//! follows that). Priorities hold for the moment; Windows boosts threads that wait and owners of locks.
//! Without `ReadyThread` events (flag DISPATCHER) the table is empty.

mod union;

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::PAYLOAD_TOO_SHORT;
use crate::event::{Context, Event, Select};
use crate::model::place::PlaceId;
use crate::model::stack::{NO_STACK, Unsettled};
use crate::model::switch::WAITING;
use crate::wait_class::{self, WaitClasses};
use crate::work_owner::driver_of;
use etwhy_decode::kernel::events;
use etwhy_decode::kernel::names::wait_reason;
use etwhy_knowledge::WaitClass;
use etwhy_table::{Sym, TableBuilder, define_table};
use foldhash::HashMap;
use std::collections::BTreeMap;
use union::Union;

define_table! {
    /// Waits by the process that waited, and by the process, service or driver that ended the wait.
    pub table WAIT_CHAIN: WaitChainRow = "wait_chain" {
        version: 2,
        /// Process that waited.
        waiting_upid: Option<i32> [None, Process],
        /// Who ended the wait: thread, dpc, or unknown (nothing tells who ran).
        readied_by: Sym [None, Kind],
        /// Process of the thread that ended it; null for DPCs.
        readying_upid: Option<i32> [None, Process],
        /// Service that this thread worked for, by its `SubProcessTag`.
        readying_service: Option<Sym> [None, Name],
        /// Module of the DPC's routine, or driver whose routine a thread of the System process ran; null for other threads, and where
        /// no `DPC` event or no stack tells.
        readying_driver: Option<Sym> [None, Name],
        /// Why it waited (`KWAIT_REASON`).
        wait_reason: Option<Sym> [None, Kind],
        /// What the wait was for, by stack or else by reason: lock, condition (condition variable, address, barrier), queue (work, messages,
        /// requests), sleep, call (the answer of another process), page_fault, io, throttled, suspended, lock_or_condition (no stack tells
        /// which), object (a kernel object; mutexes are locks if the stack of the `ReadyThread` was recorded), other.
        wait_class: Sym [None, Kind],
        /// Waits.
        count: i64 [Count, Count],
        /// Sum of the waits.
        wait_sum_ns: i64 [Ns, Duration],
        /// Time in which at least one of the threads waited.
        wait_union_ns: i64 [Ns, Duration],
        /// Longest wait.
        wait_max_ns: i64 [Ns, Duration],
        /// Time in the queue for a processor after these waits, summed.
        ready_ns: i64 [Ns, Duration],
        /// Highest priority with which a thread began one of these waits.
        waiting_priority: i32 [None, Other],
        /// Lowest priority of a thread that ended one; null for DPCs.
        readying_priority: Option<i32> [None, Other],
        /// Waits that a thread of lower priority ended.
        inverted_count: i64 [Count, Count],
        /// Sum of these.
        inverted_wait_ns: i64 [Ns, Duration],
        /// Part of these in which the thread that ended them was itself ready without a processor.
        inverted_queued_ns: i64 [Ns, Duration],
    }
}

const SWITCH: u8 = events::Thread::CSwitch.opcode;
const READY: u8 = events::Thread::ReadyThread.opcode;
const IN_DPC: u64 = 1;
const ROUTINE: &[&str] = &["Routine"];

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&WAIT_CHAIN],
    selects: &[
        Select::kernel(
            events::Thread::CSwitch,
            &["NewThreadId", "OldThreadId", "NewThreadPriority", "OldThreadPriority"],
        ),
        Select::kernel(events::Thread::ReadyThread, &["TThreadId", "Flag"]),
        Select::kernel(events::PerfInfo::ThreadedDPC, ROUTINE),
        Select::kernel(events::PerfInfo::DPC, ROUTINE),
        Select::kernel(events::PerfInfo::TimerDPC, ROUTINE),
        Select::kernel(events::PerfInfo::IOTimer, ROUTINE),
    ],
    stacks: true,
    on_demand: false,
    new: |memory| Box::new(Chains { rows: TableBuilder::new(memory), ..Chains::default() }),
};

/// `ReadyThread` in DPCs of one processor whose `DPC` event has not come yet. A DPC readies few threads; without `DPC`
/// events they would pile up.
const MAX_OPEN: usize = 256;

/// Shorter waits keep the class of their reason: the stack costs more to find than it says.
const MIN_STACK_WAIT_NS: i64 = 100_000;
/// Times in the queue that are remembered of a thread, and how long one is at least: a thread that is preempted again and again is
/// in the queue several times while somebody waits for it.
const MAX_QUEUED: usize = 8;
const MIN_QUEUED_NS: i64 = 10_000;
/// A wait without a stack, or whose class the reason decides.
const NO_NUMBER: u32 = u32::MAX;
/// Process id of the System process.
const SYSTEM: u32 = 4;
/// Set in the final number of a stack.
const FINAL: u32 = 1 << 31;

/// Who waited: his process if it is known at that moment, else his thread; by whom, why.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    waiting: Owner,
    readied: Readied,
    reason: u8,
    /// Number that waits with the same stack share.
    stack: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Owner {
    Process(u32),
    Thread(u32),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Readied {
    /// Owner, and the tag of its service.
    Thread(Owner, u32),
    /// The same, and the number that its stacks of one kind share.
    Work(Owner, u32, u32),
    /// Place of the routine.
    Dpc(Option<PlaceId>),
    Unknown,
}

/// A wait that is over.
#[derive(Clone, Copy)]
struct Wait {
    utid: u32,
    waiting: Owner,
    reason: u8,
    from_ns: i64,
    to_ns: i64,
    ready_ns: i64,
    priority: i8,
    by_priority: Option<i8>,
    queued_ns: i64,
}

#[derive(Default)]
struct Sum {
    /// Ticket of the stack of all of them.
    ticket: Option<i32>,
    count: i64,
    wait_ns: i64,
    wait_max_ns: i64,
    ready_ns: i64,
    priority: i8,
    by_priority: Option<i8>,
    inverted: i64,
    inverted_ns: i64,
    inverted_queued_ns: i64,
    union: Union,
}

impl Sum {
    fn add(&mut self, wait: &Wait) {
        let ns = wait.to_ns.saturating_sub(wait.from_ns).max(0);
        self.count += 1;
        self.wait_ns = self.wait_ns.saturating_add(ns);
        self.wait_max_ns = self.wait_max_ns.max(ns);
        self.ready_ns = self.ready_ns.saturating_add(wait.ready_ns);
        self.priority = self.priority.max(wait.priority);
        self.by_priority = [self.by_priority, wait.by_priority].into_iter().flatten().min();
        if wait.by_priority.is_some_and(|by| by < wait.priority) {
            self.inverted += 1;
            self.inverted_ns = self.inverted_ns.saturating_add(ns);
            self.inverted_queued_ns = self.inverted_queued_ns.saturating_add(wait.queued_ns);
        }
        self.union.add(wait.from_ns, wait.to_ns);
    }

    fn merge(&mut self, other: Sum) {
        self.count += other.count;
        self.wait_ns = self.wait_ns.saturating_add(other.wait_ns);
        self.wait_max_ns = self.wait_max_ns.max(other.wait_max_ns);
        self.ready_ns = self.ready_ns.saturating_add(other.ready_ns);
        self.priority = self.priority.max(other.priority);
        self.by_priority = [self.by_priority, other.by_priority].into_iter().flatten().min();
        self.inverted += other.inverted;
        self.inverted_ns = self.inverted_ns.saturating_add(other.inverted_ns);
        self.inverted_queued_ns = self.inverted_queued_ns.saturating_add(other.inverted_queued_ns);
        self.union.merge(other.union);
    }
}

/// What a thread did last.
#[derive(Clone, Copy, Default)]
struct Thread {
    /// Priority with which it left a processor.
    priority: i8,
    /// Priority of the thread that readied it.
    by_priority: Option<i8>,
    /// It was readied in a DPC: when and where.
    dpc: Option<(i64, u16)>,
    /// The routine of that DPC.
    routine: Option<PlaceId>,
    /// Ticket of the stack of the thread that readied it, if that says more.
    work: Option<i32>,
    /// Its last wait was added to this sum: the next one often is, too.
    last: Option<(Key, u32)>,
}

/// A wait that is charged once the stack of its ticket is known.
#[derive(Clone, Copy)]
struct Pending {
    wait: Wait,
    readied: Readied,
}

/// A wait that a thread ended whose stack says more, before that is known.
#[derive(Clone, Copy)]
struct Worked {
    wait: Wait,
    by: Owner,
    tag: u32,
    /// Ticket of the wait's own stack.
    ticket: i32,
}

/// A thread that a DPC readied, before the DPC's event has come.
struct Open {
    ns: i64,
    utid: u32,
    wait: Option<Wait>,
}

#[derive(Default)]
struct Cpu {
    /// Priority of whoever runs.
    priority: Option<i8>,
    open: Vec<Open>,
}

struct Chains {
    rows: TableBuilder<WaitChainRow>,
    sums: Vec<Sum>,
    numbers: HashMap<Key, u32>,
    threads: Vec<Thread>,
    /// The last times of each thread in the queue for a processor.
    queues: Vec<Vec<(i64, i64)>>,
    cpus: Vec<Cpu>,
    /// Waits whose stack says more.
    pending: Unsettled<Pending>,
    /// Waits that a thread ended whose stack says more.
    worked: Unsettled<Worked>,
    /// A ticket of each number of [`Readied::Work`].
    works: HashMap<u32, i32>,
    /// What each wait reason alone says.
    classes: Vec<WaitClass>,
}

impl Default for Chains {
    fn default() -> Chains {
        Chains {
            rows: TableBuilder::new(&etwhy_table::Memory::default()),
            sums: Vec::new(),
            numbers: HashMap::default(),
            threads: Vec::new(),
            queues: Vec::new(),
            cpus: Vec::new(),
            pending: Unsettled::default(),
            worked: Unsettled::default(),
            works: HashMap::default(),
            classes: (0..=u8::MAX).map(wait_class::of_reason).collect(),
        }
    }
}

/// The element with this number, which is made if need be.
fn slot<T: Default>(list: &mut Vec<T>, index: usize) -> Option<&mut T> {
    if list.len() <= index {
        list.resize_with(index + 1, T::default);
    }
    list.get_mut(index)
}

fn owner(cx: &Context<'_>, utid: u32) -> Owner {
    cx.model.upid_of(utid).map_or(Owner::Thread(utid), Owner::Process)
}

impl Analysis for Chains {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let Some(first) = event.u64(0) else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        match event.tag {
            READY => self.ready(event, cx),
            SWITCH => self.switch(event, cx),
            _ => self.dpc(first, event, cx),
        }
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        for cpu in std::mem::take(&mut self.cpus) {
            for wait in cpu.open.into_iter().filter_map(|open| open.wait) {
                self.charge(&wait, Readied::Dpc(None), None);
            }
        }
        // Numbers of the end, apart from those of the pass.
        let last = |ticket: i32| {
            let stack = end.resolved.stack_of_ticket(ticket)?;
            u32::try_from(stack).ok().map(|stack| (stack | FINAL, ticket))
        };
        for (ticket, worked) in std::mem::take(&mut self.worked).into_items() {
            let unknown = Readied::Thread(worked.by, worked.tag);
            let readied = last(ticket).map_or(unknown, |(number, ticket)| self.work(&worked, number, ticket));
            self.charge(&worked.wait, readied, last(worked.ticket));
        }
        for (ticket, pending) in std::mem::take(&mut self.pending).into_items() {
            self.charge(&pending.wait, pending.readied, last(ticket));
        }
        let works = std::mem::take(&mut self.works);
        let drivers: HashMap<u32, Option<Sym>> =
            works.iter().map(|(number, ticket)| (*number, driver_of(end, *ticket))).collect();
        let mut classes = WaitClasses::default();
        /// Names that rows are told apart by.
        type Group = (Option<u32>, u8, Option<u32>, Option<Sym>, Option<Sym>, u8, WaitClass);
        let mut groups: BTreeMap<Group, Sum> = BTreeMap::new();
        let upid = |owner: Owner| match owner {
            Owner::Process(upid) => Some(upid),
            Owner::Thread(utid) => end.model.upid_of(utid),
        };
        let mut numbers: Vec<(Key, u32)> = std::mem::take(&mut self.numbers).into_iter().collect();
        numbers.sort_unstable();
        for (key, number) in numbers {
            let Some(sum) = self.sums.get_mut(number as usize).map(std::mem::take) else { continue };
            let work = if let Readied::Work(_, _, number) = key.readied { Some(number) } else { None };
            let by = match key.readied {
                Readied::Thread(owner, tag) | Readied::Work(owner, tag, _) => {
                    let upid = upid(owner);
                    let pid = upid.and_then(|u| end.model.processes.get(u)).map(|p| p.pid);
                    let service = pid.and_then(|pid| end.model.services.by_tag(pid, tag)).map(|s| s.name);
                    let work = work.filter(|_| pid == Some(SYSTEM));
                    let driver = work.and_then(|work| drivers.get(&work).copied().flatten());
                    (0, upid, service.filter(|_| tag != 0), driver)
                }
                Readied::Dpc(place) => {
                    let frame = place.and_then(|place| end.resolved.frame_of_place(place));
                    (1, None, None, frame.map(|(_, frame)| frame.module))
                }
                Readied::Unknown => (2, None, None, None),
            };
            let waker = work.and_then(|work| works.get(&work).copied()).unwrap_or(NO_STACK);
            let class = classes.class(end, key.reason, sum.ticket.unwrap_or(NO_STACK), waker);
            let group = (upid(key.waiting), by.0, by.1, by.2, by.3, key.reason, class);
            groups.entry(group).or_default().merge(sum);
        }
        let kinds = ["thread", "dpc", "unknown"].map(|name| end.strings.intern(name));
        let mut groups: Vec<(Group, Sum)> = groups.into_iter().collect();
        groups.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.wait_ns));
        for ((waiting, kind, readying, service, driver, reason, class), sum) in groups {
            let name = wait_reason(u32::from(reason)).map(|name| end.strings.intern(name));
            self.rows.push(WaitChainRow {
                waiting_upid: waiting.map(|u| u as i32),
                readied_by: kinds.get(usize::from(kind)).copied().unwrap_or(Sym::EMPTY),
                readying_upid: readying.map(|u| u as i32),
                readying_service: service,
                readying_driver: driver,
                wait_reason: name,
                wait_class: end.strings.intern(class.name()),
                count: sum.count,
                wait_sum_ns: sum.wait_ns,
                wait_union_ns: sum.union.length(),
                wait_max_ns: sum.wait_max_ns,
                ready_ns: sum.ready_ns,
                waiting_priority: i32::from(sum.priority),
                readying_priority: sum.by_priority.map(i32::from),
                inverted_count: sum.inverted,
                inverted_wait_ns: sum.inverted_ns,
                inverted_queued_ns: sum.inverted_queued_ns,
            });
        }
        Ok(vec![self.rows.into()])
    }
}

impl Chains {
    /// `stack`: the number that its stack shares with others, and its ticket.
    fn charge(&mut self, wait: &Wait, readied: Readied, stack: Option<(u32, i32)>) {
        let (stack, ticket) = stack.map_or((NO_NUMBER, None), |(stack, ticket)| (stack, Some(ticket)));
        let key = Key { waiting: wait.waiting, readied, reason: wait.reason, stack };
        let mut thread = self.threads.get_mut(wait.utid as usize);
        let known = thread.as_ref().and_then(|t| t.last).filter(|(last, _)| *last == key);
        let number = known.map(|(_, number)| number).unwrap_or_else(|| {
            *self.numbers.entry(key).or_insert_with(|| {
                self.sums.push(Sum { ticket, ..Sum::default() });
                (self.sums.len() - 1) as u32
            })
        });
        if known.is_none()
            && let Some(thread) = &mut thread
        {
            thread.last = Some((key, number));
        }
        if let Some(sum) = self.sums.get_mut(number as usize) {
            sum.add(wait);
        }
    }

    /// Work with this number, of which a ticket is kept.
    fn work(&mut self, worked: &Worked, number: u32, ticket: i32) -> Readied {
        self.works.entry(number).or_insert(ticket);
        Readied::Work(worked.by, worked.tag, number)
    }

    /// Charges a wait, once the stack of its ticket is known if it has one.
    fn pend(&mut self, pending: Pending, ticket: i32, cx: &mut Context<'_>) {
        if ticket == NO_STACK {
            self.charge(&pending.wait, pending.readied, None);
            return;
        }
        let mut all = std::mem::take(&mut self.pending);
        all.push(ticket, pending, &mut cx.model.stacks, |number, ticket, pending| {
            self.charge(&pending.wait, pending.readied, Some((number, ticket)));
        });
        self.pending = all;
    }

    fn ready(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        // A thread that is readied again before it runs was woken by the first one.
        let Some(utid) = cx.model.switches.readied else { return };
        let in_dpc = event.u64(1).unwrap_or(0) & IN_DPC != 0;
        let cpu = event.record.cpu;
        let Some(here) = slot(&mut self.cpus, usize::from(cpu)) else { return };
        let by_priority = here.priority.filter(|_| !in_dpc);
        if in_dpc {
            if here.open.len() >= MAX_OPEN {
                let given_up: Vec<Open> = here.open.drain(..MAX_OPEN / 2).collect();
                for wait in given_up.into_iter().filter_map(|open| open.wait) {
                    self.charge(&wait, Readied::Dpc(None), None);
                }
            }
            if let Some(here) = self.cpus.get_mut(usize::from(cpu)) {
                here.open.push(Open { ns: event.ns, utid, wait: None });
            }
        }
        // The System process works for others: the stack tells for whom. And of any thread whether it released a mutex.
        let system = || {
            let upid = cx.model.upid_of(cx.model.cpus.running(cpu, event.ns)?.utid)?;
            cx.model.processes.get(upid).filter(|process| process.pid == SYSTEM)
        };
        let object = || {
            let out = cx.model.switches.out(utid).filter(|out| out.state == WAITING)?;
            let out = (event.ns.saturating_sub(out.ns) >= MIN_STACK_WAIT_NS).then_some(out)?;
            self.classes.get(usize::from(out.reason)).filter(|class| wait_class::of_object(**class))
        };
        let ticket = match !in_dpc && (system().is_some() || object().is_some()) {
            true => cx.stack_ticket_if_recorded(event, None, None),
            false => NO_STACK,
        };
        if let Some(thread) = slot(&mut self.threads, utid as usize) {
            thread.by_priority = by_priority;
            thread.dpc = in_dpc.then_some((event.ns, cpu));
            thread.routine = None;
            thread.work = (ticket != NO_STACK).then_some(ticket);
        }
    }

    fn dpc(&mut self, routine: u64, event: &Event<'_>, cx: &mut Context<'_>) {
        let Some(here) = self.cpus.get_mut(usize::from(event.record.cpu)) else { return };
        if here.open.is_empty() {
            return;
        }
        let began = cx.model.cpus.last_interrupt(event.record.cpu).start_ns;
        let place = cx.place(None, routine);
        for open in std::mem::take(&mut here.open) {
            // What was readied before this DPC began was readied in one whose event is missing.
            let place = (open.ns >= began).then_some(place);
            if let Some(wait) = open.wait {
                self.charge(&wait, Readied::Dpc(place), None);
            } else if let Some(thread) = self.threads.get_mut(open.utid as usize)
                && thread.dpc.is_some_and(|(ns, _)| ns == open.ns)
            {
                (thread.dpc, thread.routine) = (None, place);
            }
        }
    }

    fn switch(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let switch = cx.model.switches.current;
        let priority = |field: usize| event.i64(field).unwrap_or(0).clamp(-1, 31) as i8;
        if let Some(here) = slot(&mut self.cpus, usize::from(event.record.cpu)) {
            here.priority = (switch.new_tid != 0).then(|| priority(2));
        }
        if switch.old_tid != 0
            && let Some(old) = slot(&mut self.threads, switch.old_utid as usize)
        {
            old.priority = priority(3);
        }
        if switch.new_tid == 0 {
            return;
        }
        let Some(new) = slot(&mut self.threads, switch.new_utid as usize) else { return };
        let was = *new;
        (new.dpc, new.routine, new.work) = (None, None, None);
        let Some(ready_ns) = switch.ready_ns else { return };
        let to_ns = event.ns.saturating_sub(ready_ns);
        if ready_ns >= MIN_QUEUED_NS
            && let Some(queue) = slot(&mut self.queues, switch.new_utid as usize)
        {
            if queue.len() >= MAX_QUEUED {
                queue.remove(0);
            }
            queue.push((to_ns, event.ns));
        }
        let (Some(wait_ns), Some(ready), Some(prev)) = (switch.wait_ns, switch.ready, switch.prev) else {
            return;
        };
        if prev.state != WAITING {
            return;
        }
        let from_ns = to_ns.saturating_sub(wait_ns);
        let queue = ready.by.and_then(|by| self.queues.get(by as usize)).map_or(&[][..], Vec::as_slice);
        let within = |&(begin, end): &(i64, i64)| end.min(to_ns).saturating_sub(begin.max(from_ns)).max(0);
        let queued_ns = queue.iter().map(within).sum();
        let wait = Wait {
            utid: switch.new_utid,
            waiting: owner(cx, switch.new_utid),
            reason: prev.reason,
            from_ns,
            to_ns,
            ready_ns,
            priority: was.priority,
            by_priority: was.by_priority,
            queued_ns,
        };
        let readied = match ready.by {
            Some(by) => {
                let tag = cx.model.threads.get(by).and_then(|t| t.service_tags.last().copied());
                Readied::Thread(owner(cx, by), tag.unwrap_or(0))
            }
            None if !ready.in_dpc => Readied::Unknown,
            None => {
                let open = was.dpc.and_then(|(ns, cpu)| {
                    let open = &mut self.cpus.get_mut(usize::from(cpu))?.open;
                    open.iter_mut().rev().find(|o| o.ns == ns && o.utid == switch.new_utid)
                });
                if let Some(open) = open {
                    // The DPC still runs, or its event is on its way.
                    open.wait = Some(wait);
                    return;
                }
                Readied::Dpc(was.routine)
            }
        };
        let open = self.classes.get(usize::from(wait.reason)).is_some_and(|class| class.is_open());
        let ticket = if open && wait_ns >= MIN_STACK_WAIT_NS && matches!(readied, Readied::Thread(..)) {
            cx.stack_ticket_if_recorded(event, Some(switch.new_tid), Some(switch.new_utid))
        } else {
            NO_STACK
        };
        let (Readied::Thread(by, tag), Some(work)) = (readied, was.work) else {
            self.pend(Pending { wait, readied }, ticket, cx);
            return;
        };
        let mut settled = Vec::new();
        let stacks = &mut cx.model.stacks;
        self.worked.push(work, Worked { wait, by, tag, ticket }, stacks, |number, ticket, worked| {
            settled.push((number, ticket, worked));
        });
        for (number, ticket, worked) in settled {
            let readied = self.work(&worked, number, ticket);
            self.pend(Pending { wait: worked.wait, readied }, worked.ticket, cx);
        }
    }
}
