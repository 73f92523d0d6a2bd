//! Threads that DPCs wake: on which NUMA node the DPC ran, and on which the thread went on.
//!
//! # How it is computed
//! A `ReadyThread` in a DPC ends the wait of a thread, and the next `CSwitch` to that thread says on which processor it goes on. The `DPC`
//! event of the same processor that follows names the routine. The rundown has the processors of each NUMA node. What a
//! network DPC received lies in the memory and caches near its processor; a thread on another node fetches it from there.
//!
//! # What fools it
//! One wake-up may be for many packets, and a packet that finds its thread running wakes nobody: rows count wake-ups, not packets. Who
//! runs elsewhere later, after the first switch, is not followed. What a fetch from another node costs no event tells; `near_ready_ns` and
//! `far_ready_ns` are only the times until the thread had a processor. Pairs with missing buffers in between are left out.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event, Select};
use crate::model::place::PlaceId;
use crate::owner::Owner;
use etwhy_decode::kernel::events;
use etwhy_table::{Sym, TableBuilder, define_table};
use foldhash::HashMap;
use std::collections::BTreeMap;

define_table! {
    /// Wake-ups of threads in DPCs, by driver and process, and whether they crossed NUMA nodes.
    pub table DPC_WAKEUP: DpcWakeupRow = "dpc_wakeup" {
        version: 1,
        /// Module of the DPC's routine; null where no event of the DPC tells.
        driver: Option<Sym> [None, Name],
        /// Process of the threads that were woken.
        upid: Option<i32> [None, Process],
        /// Wake-ups.
        count: i64 [Count, Count],
        /// Of these, the thread went on on the node of the DPC.
        near: i64 [Count, Count],
        /// It went on on another node.
        far: i64 [Count, Count],
        /// The node of one of the processors is not known.
        unplaced: i64 [Count, Count],
        /// Time until the thread had a processor, of those that stayed on the node.
        near_ready_ns: i64 [Ns, Duration],
        /// The same of those that crossed.
        far_ready_ns: i64 [Ns, Duration],
        /// Processors on which the DPCs ran, in order, at most sixteen.
        dpc_cpus: Sym [None, Message],
        /// Nodes of these.
        dpc_nodes: Sym [None, Message],
        /// Nodes on which the threads went on.
        thread_nodes: Sym [None, Message],
    }
}

const SWITCH: u8 = events::Thread::CSwitch.opcode;
const READY: u8 = events::Thread::ReadyThread.opcode;
const IN_DPC: u64 = 1;
const ROUTINE: &[&str] = &["Routine"];

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&DPC_WAKEUP],
    selects: &[
        Select::kernel(events::Thread::CSwitch, &["NewThreadId"]),
        Select::kernel(events::Thread::ReadyThread, &["TThreadId", "Flag"]),
        Select::kernel(events::PerfInfo::ThreadedDPC, ROUTINE),
        Select::kernel(events::PerfInfo::DPC, ROUTINE),
        Select::kernel(events::PerfInfo::TimerDPC, ROUTINE),
        Select::kernel(events::PerfInfo::IOTimer, ROUTINE),
    ],
    stacks: false,
    on_demand: false,
    new: |memory| {
        Box::new(Wakeups {
            rows: TableBuilder::new(memory),
            cpus: Vec::new(),
            on: HashMap::default(),
            threads: HashMap::default(),
            sums: HashMap::default(),
        })
    },
};

/// Wake-ups of one processor whose `DPC` event has not come yet; without these events they would pile up.
const MAX_OPEN: usize = 256;
/// Processors that a row names.
const MAX_NAMED: usize = 16;

/// A thread that a DPC has readied.
#[derive(Clone, Copy)]
struct Woken {
    ns: i64,
    cpu: u16,
    utid: u32,
    routine: Option<PlaceId>,
    /// Where it went on, and how long it was ready before.
    ran: Option<(u16, i64)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    routine: Option<PlaceId>,
    owner: Owner,
    from: u16,
    to: u16,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    count: i64,
    ready_ns: i64,
}

struct Wakeups {
    rows: TableBuilder<DpcWakeupRow>,
    /// By processor, before the event of the DPC has come.
    cpus: Vec<Vec<Woken>>,
    /// On which of these a thread stands.
    on: HashMap<u32, u16>,
    /// Threads that have not run since, after it has come.
    threads: HashMap<u32, Woken>,
    sums: HashMap<Key, Sum>,
}

impl Analysis for Wakeups {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let Some(first) = event.u64(0) else { return };
        match event.tag {
            READY => self.ready(event, cx),
            SWITCH => self.switch(event, cx),
            _ => self.dpc(first, event, cx),
        }
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        for woken in std::mem::take(&mut self.cpus).into_iter().flatten() {
            self.count(woken, end.model);
        }
        let mut groups: BTreeMap<(Option<Sym>, Option<u32>), Group> = BTreeMap::new();
        let mut sums: Vec<(Key, Sum)> = std::mem::take(&mut self.sums).into_iter().collect();
        sums.sort_unstable_by_key(|(key, _)| *key);
        for (key, sum) in sums {
            let frame = key.routine.and_then(|place| end.resolved.frame_of_place(place));
            let driver = frame.map(|(_, frame)| frame.module);
            let group = groups.entry((driver, key.owner.upid(end.model))).or_default();
            let node = |cpu: u16| end.model.system.processor_place(usize::from(cpu)).numa_node;
            group.add(key, sum, node(key.from), node(key.to));
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.count));
        for ((driver, upid), group) in groups {
            self.rows.push(DpcWakeupRow {
                driver,
                upid: upid.map(|upid| upid as i32),
                count: group.count,
                near: group.near.count,
                far: group.far.count,
                unplaced: group.count - group.near.count - group.far.count,
                near_ready_ns: group.near.ready_ns,
                far_ready_ns: group.far.ready_ns,
                dpc_cpus: end.strings.intern(&list(&group.from)),
                dpc_nodes: end.strings.intern(&list(&group.from_nodes)),
                thread_nodes: end.strings.intern(&list(&group.to_nodes)),
            });
        }
        Ok(vec![self.rows.into()])
    }
}

/// A row on its way.
#[derive(Default)]
struct Group {
    count: i64,
    near: Sum,
    far: Sum,
    from: std::collections::BTreeSet<i32>,
    from_nodes: std::collections::BTreeSet<i32>,
    to_nodes: std::collections::BTreeSet<i32>,
}

impl Group {
    fn add(&mut self, key: Key, sum: Sum, from: Option<i32>, to: Option<i32>) {
        self.count = self.count.saturating_add(sum.count);
        self.from.insert(i32::from(key.from));
        self.from_nodes.extend(from);
        self.to_nodes.extend(to);
        let Some((from, to)) = from.zip(to) else { return };
        let side = if from == to { &mut self.near } else { &mut self.far };
        side.count = side.count.saturating_add(sum.count);
        side.ready_ns = side.ready_ns.saturating_add(sum.ready_ns);
    }
}

fn list(numbers: &std::collections::BTreeSet<i32>) -> String {
    let mut texts: Vec<String> = numbers.iter().take(MAX_NAMED).map(i32::to_string).collect();
    if numbers.len() > MAX_NAMED {
        texts.push("…".to_owned());
    }
    texts.join(", ")
}

impl Wakeups {
    fn ready(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        // A thread that is readied again before it runs was woken by the first one.
        let Some(utid) = cx.model.switches.readied else { return };
        self.threads.remove(&utid);
        self.on.remove(&utid);
        if event.u64(1).unwrap_or(0) & IN_DPC == 0 {
            return;
        }
        let cpu = event.record.cpu;
        let at = usize::from(cpu);
        if self.cpus.len() <= at {
            self.cpus.resize_with(at + 1, Vec::new);
        }
        let Some(open) = self.cpus.get_mut(at) else { return };
        let given_up = if open.len() >= MAX_OPEN { std::mem::take(open) } else { Vec::new() };
        self.on.insert(utid, cpu);
        open.push(Woken { ns: event.ns, cpu, utid, routine: None, ran: None });
        for woken in given_up {
            self.settle(woken, cx);
        }
    }

    fn dpc(&mut self, routine: u64, event: &Event<'_>, cx: &mut Context<'_>) {
        let Some(open) = self.cpus.get_mut(usize::from(event.record.cpu)) else { return };
        if open.is_empty() {
            return;
        }
        let began = cx.model.cpus.last_interrupt(event.record.cpu).start_ns;
        let place = cx.place(None, routine);
        for woken in std::mem::take(open) {
            // What was readied before this DPC began was readied in one whose event is missing.
            let routine = (woken.ns >= began).then_some(place);
            self.settle(Woken { routine, ..woken }, cx);
        }
    }

    /// The routine is as well known as it ever will be.
    fn settle(&mut self, woken: Woken, cx: &mut Context<'_>) {
        if woken.ran.is_some() {
            self.count(woken, cx.model);
        } else {
            self.threads.insert(woken.utid, woken);
        }
    }

    fn switch(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let switch = cx.model.switches.current;
        if switch.new_tid == 0 {
            return;
        }
        let utid = switch.new_utid;
        let (waiting, on) = (self.threads.remove(&utid), self.on.remove(&utid));
        let (Some(ready), Some(ready_ns)) = (switch.ready, switch.ready_ns) else { return };
        if !ready.in_dpc {
            return;
        }
        let ran = Some((event.record.cpu, ready_ns));
        if let Some(woken) = waiting.filter(|woken| woken.ns == ready.ns) {
            self.count(Woken { ran, ..woken }, cx.model);
            return;
        }
        // The DPC still runs, or its event is on its way.
        let open = on.and_then(|cpu| self.cpus.get_mut(usize::from(cpu)));
        let mut open = open.into_iter().flatten().rev();
        if let Some(woken) = open.find(|woken| woken.utid == utid && woken.ns == ready.ns) {
            woken.ran = ran;
        }
    }

    fn count(&mut self, woken: Woken, model: &crate::model::Model) {
        let Some((to, ready_ns)) = woken.ran else { return };
        let owner = Owner::for_thread(model, Some(woken.utid));
        let key = Key { routine: woken.routine, owner, from: woken.cpu, to };
        let sum = self.sums.entry(key).or_default();
        sum.count += 1;
        sum.ready_ns = sum.ready_ns.saturating_add(ready_ns);
    }
}
