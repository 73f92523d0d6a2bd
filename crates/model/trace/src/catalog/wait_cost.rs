//! Waiting and ready time by stack: where threads stood when they were off the processors.
//!
//! # How it is computed
//! Every wait of table `cswitch` is charged to the stack with which the thread came back, which is where it had waited. It
//! is summed in two ways that answer different questions. `wait_sum_ns` adds up: ten threads that wait one second
//! side by side give ten. `wait_union_ns` counts each moment once: they give one, which is what somebody who
//! waits for the program would measure. The same for ready time. In a trace without any `ReadyThread` (flag DISPATCHER) nothing
//! tells the end of a wait from the switch: waits then hold the time in the queue, and ready times are those of preempted
//! threads only.
//!
//! # What fools it
//! Most waits are harmless: a thread without work waits. Which waits cost somebody time is said by `critical_path`, not
//! by size. The union of several rows cannot be had by adding.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::PAYLOAD_TOO_SHORT;
use crate::event::{Context, Event, Select, What};
use crate::model::stack::NO_STACK;
use crate::model::switch::WAITING;
use etwhy_decode::kernel::events::Thread;
use etwhy_decode::kernel::names::wait_reason;
use etwhy_table::{Sym, TableBuilder, define_table};
use std::collections::BTreeMap;

define_table! {
    /// Waiting and ready time by process, stack and wait reason.
    pub table WAIT_COST: WaitCostRow = "wait_cost" {
        version: 1,
        /// Process.
        upid: Option<i32> [None, Process],
        /// Stack with which the threads came back (table `stack`).
        stack_id: Option<i32> [None, Stack],
        /// Why they waited (`KWAIT_REASON`); empty for threads that were preempted, and where the wait began before the
        /// trace.
        wait_reason: Option<Sym> [None, Kind],
        /// Switches to threads with this stack.
        count: i64 [Count, Count],
        /// Threads that came back here.
        threads: i32 [Count, Count],
        /// Sum of all waits.
        wait_sum_ns: i64 [Ns, Duration],
        /// Time in which at least one of the threads waited.
        wait_union_ns: i64 [Ns, Duration],
        /// Sum of all times in the queue for a processor.
        ready_sum_ns: i64 [Ns, Duration],
        /// Time in which at least one of the threads was in the queue.
        ready_union_ns: i64 [Ns, Duration],
        /// Longest wait.
        wait_max_ns: i64 [Ns, Duration],
        /// Longest time in the queue.
        ready_max_ns: i64 [Ns, Duration],
    }
}

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&WAIT_COST],
    selects: &[Select::with(What::Kernel(Thread::CSwitch), 0, &["NewThreadId", "OldThreadId"])],
    stacks: true,
    on_demand: true,
    new: |memory| Box::new(Waits { rows: TableBuilder::new(memory), waits: Vec::new() }),
};

/// A time off the processors, before its stack is known.
#[derive(Clone, Copy)]
struct Wait {
    ticket: i32,
    utid: u32,
    reason: u8,
    end_ns: i64,
    wait_ns: i64,
    ready_ns: i64,
    /// `wait_ns` is all the time off the processors.
    whole: bool,
}

/// Reason of a thread that did not wait.
const PREEMPTED: u8 = u8::MAX;

struct Waits {
    rows: TableBuilder<WaitCostRow>,
    waits: Vec<Wait>,
}

impl Analysis for Waits {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let (Some(_), Some(_)) = (event.u64(0), event.u64(1)) else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        let switch = cx.model.switches.current;
        let waited = switch.prev.filter(|prev| prev.state == WAITING);
        // Counts if no ReadyThread comes in the whole trace: then nothing tells the wait from the queue.
        let whole_ns = switch.since_last_ns.filter(|_| waited.is_some() && switch.wait_ns.is_none());
        let known = switch.wait_ns.is_some() || switch.ready_ns.is_some();
        if switch.new_tid == 0 || !(known || (whole_ns.is_some() && !cx.model.switches.readies)) {
            return;
        }
        self.waits.push(Wait {
            ticket: cx.stack_ticket(event, Some(switch.new_tid), Some(switch.new_utid)),
            utid: switch.new_utid,
            reason: waited.map_or(PREEMPTED, |prev| prev.reason),
            end_ns: event.ns,
            whole: !known,
            wait_ns: switch.wait_ns.or(whole_ns).unwrap_or(0),
            ready_ns: switch.ready_ns.unwrap_or(0),
        });
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        type Key = (Option<u32>, i32, u8);
        let mut groups: BTreeMap<Key, Vec<Wait>> = BTreeMap::new();
        for wait in std::mem::take(&mut self.waits) {
            if wait.whole && end.model.switches.readies {
                continue;
            }
            let upid = end.model.upid_of(wait.utid);
            let stack = end.resolved.stack_of_ticket(wait.ticket).unwrap_or(NO_STACK);
            groups.entry((upid, stack, wait.reason)).or_default().push(wait);
        }
        for ((upid, stack, reason), waits) in groups {
            let mut threads: Vec<u32> = waits.iter().map(|w| w.utid).collect();
            threads.sort_unstable();
            threads.dedup();
            let ready_from = |w: &Wait| w.end_ns.saturating_sub(w.ready_ns);
            let waiting = waits.iter().map(|w| (ready_from(w).saturating_sub(w.wait_ns), ready_from(w)));
            let ready = waits.iter().map(|w| (ready_from(w), w.end_ns));
            let sum = |ns: fn(&Wait) -> i64| waits.iter().map(ns).fold(0i64, i64::saturating_add);
            let name = wait_reason(u32::from(reason)).map(|name| end.strings.intern(name));
            self.rows.push(WaitCostRow {
                upid: upid.map(|u| u as i32),
                stack_id: Some(stack).filter(|&s| s != NO_STACK),
                wait_reason: name.filter(|_| reason != PREEMPTED),
                count: waits.len() as i64,
                threads: threads.len() as i32,
                wait_sum_ns: sum(|w| w.wait_ns),
                wait_union_ns: union(waiting.collect()),
                ready_sum_ns: sum(|w| w.ready_ns),
                ready_union_ns: union(ready.collect()),
                wait_max_ns: waits.iter().map(|w| w.wait_ns).max().unwrap_or(0),
                ready_max_ns: waits.iter().map(|w| w.ready_ns).max().unwrap_or(0),
            });
        }
        Ok(vec![self.rows.into()])
    }
}

/// Length of the union of intervals.
fn union(mut intervals: Vec<(i64, i64)>) -> i64 {
    intervals.sort_unstable();
    let (mut sum, mut until) = (0i64, i64::MIN);
    for (from, to) in intervals {
        sum = sum.saturating_add(to.saturating_sub(from.max(until)).max(0));
        until = until.max(to);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlaps_count_once() {
        assert_eq!(union(vec![(0, 10), (5, 15), (20, 21), (6, 7)]), 16);
        assert_eq!(union(vec![(i64::MIN, 0)]), i64::MAX);
        assert_eq!(union(Vec::new()), 0);
    }
}
