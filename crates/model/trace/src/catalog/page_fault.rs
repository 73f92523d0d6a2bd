//! Page faults: each moment at which a thread touched memory that was not in its working set.
//!
//! # How it is computed
//! One row for each fault of the types TransitionFault (the page was still in memory), DemandZeroFault (a fresh page),
//! CopyOnWrite, GuardPageFault, HardPageFault (read from disk; table `hard_fault` says how long) and AccessViolation.
//! The thread is that of the header or, where the header names none, the one that the context switches put on the
//! processor; the process is that of the thread, or else of the stack.
//!
//! A fault brings one page of 4 KiB, the page size of x86, x64 and ARM64 (`GetSystemInfo`, `dwPageSize`); guard page
//! faults and access violations bring none. A trace may hold millions of faults, so this table is made on demand, and
//! `page_fault_cost` has the sums.
//!
//! # What fools it
//! Large pages do not fault. One fault may bring more pages than one (clusters of a hard fault, the fault-around of
//! newer builds): bytes are then too few. In a trace without context switches and without stacks nobody is named.
//!
//! The layouts rest on documentation (wmicore.mof, ntwmi.h); no real trace with these events was at hand.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::PAYLOAD_TOO_SHORT;
use crate::event::{Context, Event, Select};
use crate::finish::process_later;
use crate::model::address_space::PAGE;
use etwhy_decode::kernel::KernelEvent;
use etwhy_decode::kernel::events::PageFault;
use etwhy_table::{Sym, TableBuilder, define_table};

define_table! {
    /// Page faults, soft and hard.
    pub table PAGE_FAULT: PageFaultRow = "page_fault" {
        title: "Page faults", sorted_by: "ts_ns", version: 1,
        /// When the thread faulted.
        ts_ns: i64 [Ns, Time],
        /// TransitionFault, DemandZeroFault, CopyOnWrite, GuardPageFault, HardPageFault, AccessViolation.
        kind: Sym [None, Kind],
        /// Address that was touched.
        address: i64 [Address, Address],
        /// Code that touched it, as `module!function`.
        routine: Option<Sym> [None, Name],
        /// Bytes that the fault brought.
        size_bytes: i64 [Bytes, Bytes],
        /// Process of the thread.
        upid: Option<i32> [None, Process],
        /// Thread that faulted.
        utid: Option<i32> [None, Thread],
        /// Stack (table `stack`), if one was recorded.
        stack_id: Option<i32> [None, Stack],
        /// Logical processor.
        cpu: i32 [None, Cpu],
    }
}

pub(super) const FIELDS: &[&str] = &["VirtualAddress", "ProgramCounter"];

pub(super) fn kind_bytes(kind: u8) -> i64 {
    const OF_PAGES: [KernelEvent; 4] = [
        PageFault::TransitionFault,
        PageFault::DemandZeroFault,
        PageFault::CopyOnWrite,
        PageFault::HardPageFault,
    ];
    if OF_PAGES.iter().any(|event| event.opcode == kind) { PAGE as i64 } else { 0 }
}

pub(super) const SELECTS: &[Select] = &[
    Select::kernel(PageFault::TransitionFault, FIELDS),
    Select::kernel(PageFault::DemandZeroFault, FIELDS),
    Select::kernel(PageFault::CopyOnWrite, FIELDS),
    Select::kernel(PageFault::GuardPageFault, FIELDS),
    Select::kernel(PageFault::HardPageFault, FIELDS),
    Select::kernel(PageFault::AccessViolation, FIELDS),
];

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&PAGE_FAULT],
    selects: SELECTS,
    stacks: true,
    on_demand: true,
    new: |memory| Box::new(PageFaults { rows: TableBuilder::new(memory) }),
};

struct PageFaults {
    rows: TableBuilder<PageFaultRow>,
}

impl Analysis for PageFaults {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let (Some(address), Some(counter)) = (event.u64(0), event.u64(1)) else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        let actor = cx.actor(event);
        let upid = actor.and_then(|a| cx.model.upid_of(a.utid));
        self.rows.push(PageFaultRow {
            ts_ns: event.ns,
            kind: cx.sym(PageFault::name(event.tag)),
            address: address as i64,
            routine: (counter != 0).then(|| cx.place(upid, counter).name_later()),
            size_bytes: kind_bytes(event.tag),
            upid: actor.map(|a| process_later(a.utid)),
            utid: actor.map(|a| a.utid as i32),
            stack_id: Some(cx.actor_stack(event, actor)),
            cpu: i32::from(event.record.cpu),
        });
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        end.stacks_and_processes_of(&mut self.rows, "stack_id", "upid")?;
        end.routines_of(&mut self.rows, "routine")?;
        Ok(vec![self.rows.into()])
    }
}
