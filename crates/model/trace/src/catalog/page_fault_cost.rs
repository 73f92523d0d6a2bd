//! Page faults added up: how many of which kind, by whom and where, and how much memory they brought.
//!
//! # How it is computed
//! The faults of table `page_fault`, which is made on demand only, by process, kind and stack. What is said there of
//! their owners and bytes holds here too. Nine bytes a fault are kept until the end of the pass, because stacks are
//! known only then.
//!
//! # What fools it
//! As in `page_fault`.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::PAYLOAD_TOO_SHORT;
use crate::catalog::page_fault::{SELECTS, kind_bytes};
use crate::event::{Context, Event};
use etwhy_decode::kernel::events::PageFault;
use etwhy_table::{Sym, TableBuilder, define_table};
use foldhash::HashMap;
use std::cmp::Reverse;

define_table! {
    /// Page faults by process, kind and stack.
    pub table PAGE_FAULT_COST: PageFaultCostRow = "page_fault_cost" {
        title: "Page faults by process, kind and stack", version: 1,
        /// Process whose thread faulted; null if nothing tells.
        upid: Option<i32> [None, Process],
        /// TransitionFault, DemandZeroFault, CopyOnWrite, GuardPageFault, HardPageFault, AccessViolation.
        kind: Sym [None, Kind],
        /// Stack (table `stack`); null for faults without one.
        stack_id: Option<i32> [None, Stack],
        /// Faults.
        count: i64 [Count, Count],
        /// Bytes that they brought.
        size_bytes: i64 [Bytes, Bytes],
    }
}

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&PAGE_FAULT_COST],
    selects: SELECTS,
    stacks: true,
    on_demand: false,
    new: |memory| {
        Box::new(Costs {
            rows: TableBuilder::new(memory),
            tickets: Vec::new(),
            utids: Vec::new(),
            kinds: Vec::new(),
        })
    },
};

/// The thread of a fault of which nobody knows whose it is.
const NOBODY: u32 = u32::MAX;

/// The faults, each by its stack ticket, thread and kind.
struct Costs {
    rows: TableBuilder<PageFaultCostRow>,
    tickets: Vec<i32>,
    utids: Vec<u32>,
    kinds: Vec<u8>,
}

impl Analysis for Costs {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        if event.u64(1).is_none() {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        }
        let actor = cx.actor(event);
        self.tickets.push(cx.actor_stack(event, actor));
        self.utids.push(actor.map_or(NOBODY, |a| a.utid));
        self.kinds.push(event.tag);
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let mut sums: HashMap<(Option<u32>, u8, Option<i32>), i64> = HashMap::default();
        for ((ticket, utid), kind) in self.tickets.into_iter().zip(self.utids).zip(self.kinds) {
            let stack = end.resolved.stack_of_ticket(ticket);
            let of_thread = end.model.threads.get(utid).and_then(|t| t.upid);
            let upid = of_thread.or_else(|| end.resolved.stacks.get(usize::try_from(stack?).ok()?)?.upid);
            *sums.entry((upid, kind, stack)).or_default() += 1;
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_unstable_by_key(|(key, count)| (Reverse(*count), *key));
        for ((upid, kind, stack_id), count) in sums {
            self.rows.push(PageFaultCostRow {
                upid: upid.map(|u| u as i32),
                kind: end.strings.intern(PageFault::name(kind)),
                stack_id,
                count,
                size_bytes: count.saturating_mul(kind_bytes(kind)),
            });
        }
        Ok(vec![self.rows.into()])
    }
}
