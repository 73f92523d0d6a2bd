//! .NET thread pool: how many worker threads it decided to have, and why.
//!
//! # How it is computed
//! One row for each `ThreadPoolWorkerThreadAdjustmentAdjustment` (55) of Microsoft-Windows-DotNETRuntime. The pool measures its
//! throughput and adds or removes threads; where no work item was taken for half a second although some are queued, it adds one for
//! starvation.
//!
//! Layout and reasons: `ClrEtwAll.man` of dotnet/runtime.
//!
//! # What fools it
//! The count is the pool's goal, not the number of threads that work. Threads that wait for `Task.Result` or a lock count as working: the
//! pool does not know that they wait. `CooperativeBlocking` (.NET 6 and later) is the same shortage, noticed early.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event, Select, What};
use crate::model::clr::RUNTIME;
use etwhy_table::{Sym, TableBuilder, define_table};

define_table! {
    /// Decisions of .NET thread pools about their number of worker threads.
    pub table CLR_THREAD_POOL: ClrThreadPoolRow = "clr_thread_pool" {
        title: "Decisions of .NET thread pools", sorted_by: "ts_ns", version: 1, evidence: Documented,
        /// When.
        ts_ns: i64 [Ns, Time],
        /// Process.
        upid: Option<i32> [None, Process],
        /// Worker threads that it wants from now on.
        threads: i64 [Count, Count],
        /// Why: Warmup, Initializing, RandomMove, ClimbingMove, ChangePoint, Stabilizing, Starvation, ThreadTimedOut,
        /// CooperativeBlocking, or the number of another reason.
        reason: Sym [None, Kind],
    }
}

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&CLR_THREAD_POOL],
    selects: &[Select::new(What::Manifest(RUNTIME, 55), 0)],
    stacks: false,
    on_demand: false,
    new: |memory| Box::new(Decisions { rows: TableBuilder::new(memory) }),
};

struct Decisions {
    rows: TableBuilder<ClrThreadPoolRow>,
}

/// `ThreadAdjustmentReasonMap`.
fn name(reason: u32) -> Option<&'static str> {
    const NAMES: [&str; 9] = [
        "Warmup",
        "Initializing",
        "RandomMove",
        "ClimbingMove",
        "ChangePoint",
        "Stabilizing",
        "Starvation",
        "ThreadTimedOut",
        "CooperativeBlocking",
    ];
    NAMES.get(reason as usize).copied()
}

impl Analysis for Decisions {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let fields = event.fields();
        let (Some(threads), Some(reason)) = (fields.u32("NewWorkerThreadCount"), fields.u32("Reason")) else {
            cx.ledger.count(&crate::anomalies::PAYLOAD_TOO_SHORT, 1);
            return;
        };
        let reason = match name(reason) {
            Some(name) => cx.sym(name),
            None => cx.sym(reason.to_string()),
        };
        let upid = cx.upid(event).map(|u| u as i32);
        self.rows.push(ClrThreadPoolRow { ts_ns: event.ns, upid, threads: i64::from(threads), reason });
    }

    fn finish(self: Box<Self>, _: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        Ok(vec![self.rows.into()])
    }
}
