//! Context switches: who ran when, what he waited for before, who woke him, and how long he stood in the queue.
//!
//! # How it is computed
//! A row is a `CSwitch` event, seen from the thread that is switched in: what it did since it left a processor last
//! (`prev_*`, `wait_ns`, `ready_ns`), and how long it then ran. `ReadyThread` divides the time off the processor: before
//! it the thread waited, after it the thread was ready and waited for a processor. A thread that was preempted has
//! been ready all the time. The readying thread is the one that ran on the processor of the `ReadyThread` event, unless that
//! happened in a DPC: then it was a timer or the end of a transfer, and nobody in particular.
//!
//! # What fools it
//! The stack is that of the thread that comes back, taken where it waited. `run_ns` holds the DPCs and ISRs that
//! interrupted the run; `cpu_ns` does not. Where buffers are missing, waits across the gap are left open (see the ledger),
//! and a run whose end is not recorded has no length.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::PAYLOAD_TOO_SHORT;
use crate::event::{Context, Event, Select};
use crate::finish::process_later;
use crate::model::stack::NO_STACK;
use etwhy_decode::kernel::events::Thread;
use etwhy_decode::kernel::names::{thread_state, wait_reason};
use etwhy_table::{Sym, TableBuilder, define_table};
use foldhash::HashMap;
use std::collections::BTreeMap;

define_table! {
    /// Context switches, seen from the thread that is switched in.
    ///
    /// The rows stand in the order in which runs end, which is nearly that in which they begin.
    pub table CSWITCH: CSwitchRow = "cswitch" {
        version: 1,
        /// When the thread was switched in.
        ts_ns: i64 [Ns, Time],
        /// Logical processor.
        cpu: i32 [None, Cpu],
        /// Process of the thread that is switched in.
        new_upid: Option<i32> [None, Process],
        /// Thread that is switched in; the idle thread of the processor has id 0.
        new_utid: i32 [None, Thread],
        /// Process of the thread that it replaces.
        old_upid: Option<i32> [None, Process],
        /// Thread that it replaces.
        old_utid: i32 [None, Thread],
        /// How long it then ran, DPCs and ISRs included; empty if the end is not recorded.
        run_ns: Option<i64> [Ns, Duration],
        /// How long it then ran, without the DPCs and ISRs that were recorded.
        cpu_ns: Option<i64> [Ns, Weight],
        /// Time since it left a processor (WPA's TimeSinceLast); empty for its first run in the trace.
        since_last_ns: Option<i64> [Ns, Duration],
        /// How long it waited until it was readied; 0 if it had been preempted.
        wait_ns: Option<i64> [Ns, Duration],
        /// How long it was ready and had no processor.
        ready_ns: Option<i64> [Ns, Duration],
        /// When it was readied.
        ready_ts_ns: Option<i64> [Ns, Time],
        /// Process of the thread that readied it.
        readying_upid: Option<i32> [None, Process],
        /// Thread that readied it; empty if a DPC did.
        readying_utid: Option<i32> [None, Thread],
        /// It was readied in a DPC; empty if no `ReadyThread` event tells.
        readied_in_dpc: Option<bool> [None, Flag],
        /// State into which it had left the processor before (`KTHREAD_STATE`).
        prev_state: Option<Sym> [None, Kind],
        /// Why it had waited (`KWAIT_REASON`).
        prev_wait_reason: Option<Sym> [None, Kind],
        /// UserMode or KernelMode, where recorded.
        prev_wait_mode: Option<Sym> [None, Kind],
        /// State into which the replaced thread goes.
        old_state: Option<Sym> [None, Kind],
        /// Why the replaced thread waits, or how it was preempted.
        old_wait_reason: Option<Sym> [None, Kind],
        /// Priority of the thread that is switched in.
        new_priority: i32 [None, Other],
        /// Priority of the replaced thread.
        old_priority: i32 [None, Other],
        /// C-state that the processor used last, as recorded: higher is deeper (Microsoft's pages do not agree on what 0 is).
        previous_c_state: Option<i32> [None, Other],
        /// Stack of the thread that is switched in (table `stack`).
        stack_id: Option<i32> [None, Stack],
        /// Stack of the thread that readied it.
        ready_stack_id: Option<i32> [None, Stack],
    }
}

const READY: u8 = Thread::ReadyThread.opcode;

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&CSWITCH],
    selects: &[
        Select::kernel(
            Thread::CSwitch,
            &[
                "NewThreadId",
                "OldThreadId",
                "NewThreadPriority",
                "OldThreadPriority",
                "PreviousCState",
                "OldThreadState",
                "OldThreadWaitReason",
            ],
        ),
        Select::kernel(Thread::ReadyThread, &["TThreadId"]),
    ],
    stacks: true,
    on_demand: true,
    new: |memory| {
        Box::new(CSwitches {
            rows: TableBuilder::new(memory),
            states: Names::new(thread_state),
            reasons: Names::new(wait_reason),
            running: BTreeMap::new(),
            readied: HashMap::default(),
        })
    },
};

struct CSwitches {
    rows: TableBuilder<CSwitchRow>,
    states: Names,
    reasons: Names,
    /// The row of whoever runs on a processor, which lacks its end.
    running: BTreeMap<u16, CSwitchRow>,
    /// Stack tickets of the `ReadyThread` that ended the wait of threads that have not run since.
    readied: HashMap<u32, (i64, i32)>,
}

/// Names of small numbers in the text pool: looking them up for every switch costs more than all the rest.
struct Names {
    name: fn(u32) -> Option<&'static str>,
    known: Vec<Option<Option<Sym>>>,
}

impl Names {
    fn new(name: fn(u32) -> Option<&'static str>) -> Names {
        Names { name, known: vec![None; 256] }
    }

    fn get(&mut self, number: u8, cx: &mut Context<'_>) -> Option<Sym> {
        let slot = self.known.get_mut(usize::from(number))?;
        *slot.get_or_insert_with(|| (self.name)(u32::from(number)).map(|name| cx.sym(name)))
    }
}

impl Analysis for CSwitches {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let Some(first) = event.u64(0) else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        if event.tag == READY {
            // The stack is that of the thread that runs here, whose id its record tells.
            let ticket = cx.stack_ticket(event, None, None);
            let utid = cx.model.thread(first as u32, None, event.ns);
            // A thread that is readied again before it runs was woken by the first one.
            if cx.model.switches.ready_ns(utid) == Some(event.ns) {
                self.readied.insert(utid, (event.ns, ticket));
            }
            return;
        }
        let Some(_) = event.u64(1) else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        let switch = cx.model.switches.current;
        let cpu = event.record.cpu;
        if let Some(mut row) = self.running.remove(&cpu) {
            if let Some(run) = switch.old_run.filter(|run| run.since_ns == row.ts_ns) {
                row.run_ns = Some(run.run_ns);
                row.cpu_ns = Some(run.run_ns.saturating_sub(run.interrupted_ns).max(0));
            }
            self.rows.push(row);
        }
        let idle = switch.new_tid == 0;
        let readied = self.readied.remove(&switch.new_utid);
        let (prev, ready) = (switch.prev, switch.ready);
        let ready_stack = match (readied, ready) {
            (Some((ns, ticket)), Some(ready)) if ns == ready.ns => ticket,
            _ => NO_STACK,
        };
        let stack = match idle {
            true => NO_STACK,
            false => cx.stack_ticket(event, Some(switch.new_tid), Some(switch.new_utid)),
        };
        let small = |field: usize| event.u64(field).map(|v| v as u8);
        let mode = prev.and_then(|p| p.mode).map(|m| if m == 0 { "KernelMode" } else { "UserMode" });
        let readying = ready.and_then(|r| r.by);
        let row = CSwitchRow {
            ts_ns: event.ns,
            cpu: i32::from(cpu),
            new_upid: Some(process_later(switch.new_utid)),
            new_utid: switch.new_utid as i32,
            old_upid: Some(process_later(switch.old_utid)),
            old_utid: switch.old_utid as i32,
            run_ns: None,
            cpu_ns: None,
            since_last_ns: switch.since_last_ns,
            wait_ns: switch.wait_ns,
            ready_ns: switch.ready_ns,
            ready_ts_ns: ready.map(|r| r.ns),
            readying_upid: readying.map(process_later),
            readying_utid: readying.map(|utid| utid as i32),
            readied_in_dpc: ready.map(|r| r.in_dpc),
            prev_state: prev.and_then(|p| self.states.get(p.state, cx)),
            prev_wait_reason: prev.and_then(|p| self.reasons.get(p.reason, cx)),
            prev_wait_mode: mode.map(|m| cx.sym(m)),
            old_state: small(5).and_then(|s| self.states.get(s, cx)),
            old_wait_reason: small(6).and_then(|r| self.reasons.get(r, cx)),
            new_priority: event.i64(2).unwrap_or(0) as i32,
            old_priority: event.i64(3).unwrap_or(0) as i32,
            previous_c_state: small(4).map(i32::from),
            stack_id: Some(stack),
            ready_stack_id: Some(ready_stack),
        };
        self.running.insert(cpu, row);
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let mut last: Vec<CSwitchRow> = std::mem::take(&mut self.running).into_values().collect();
        last.sort_by_key(|row| (row.ts_ns, row.cpu));
        for row in last {
            self.rows.push(row);
        }
        for column in ["stack_id", "ready_stack_id"] {
            end.stacks_of(&mut self.rows, column)?;
        }
        for column in ["new_upid", "old_upid", "readying_upid"] {
            end.processes_of(&mut self.rows, column)?;
        }
        Ok(vec![self.rows.into()])
    }
}
