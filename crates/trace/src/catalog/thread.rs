//! Threads: every instance that the trace names.

use crate::anomalies::THREADS_WITHOUT_PROCESS;
use crate::engine::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event};
use etwhy_table::{Sym, TableBuilder, define_table};

define_table! {
    /// Thread instances. Windows reuses thread ids: `utid` is unique over the trace, `tid` is not.
    ///
    /// Thread id 0 stands for the idle threads of all processors together.
    pub table THREAD: ThreadRow = "thread" {
        version: 1, evidence: Verified("PerfView baselines; corpus traces of Windows 7 to 11"),
        /// Number of the instance.
        utid: i32 [None, Thread],
        /// Thread id.
        tid: i32 [None, Tid],
        /// Process (table `process`); none if nobody named it.
        upid: Option<i32> [None, Process],
        /// Description set by the program.
        name: Option<Sym> [None, Name],
        /// Service that it works for, by its `SubProcessTag`.
        service: Option<Sym> [None, Name],
        /// Start address given by the program.
        start_address: i64 [Address, Address],
        /// Base priority, where recorded.
        base_priority: Option<i32> [None, Other],
        /// Start, if the thread started within the trace.
        start_ns: Option<i64> [Ns, Time],
        /// End, if the thread ended within the trace.
        end_ns: Option<i64> [Ns, Time],
        /// First event that names it.
        first_ns: i64 [Ns, Time],
        /// Last event that names it.
        last_ns: i64 [Ns, Time],
    }
}

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&THREAD],
    selects: &[],
    stacks: false,
    on_demand: false,
    new: |memory| Box::new(Threads { rows: TableBuilder::new(memory) }),
};

struct Threads {
    rows: TableBuilder<ThreadRow>,
}

impl Analysis for Threads {
    fn event(&mut self, _: &Event<'_>, _: &mut Context<'_>) {}

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let mut orphans = 0;
        for (utid, thread) in end.model.threads.all().iter().enumerate() {
            orphans += u64::from(thread.upid.is_none());
            let pid = thread.upid.and_then(|u| end.model.processes.get(u)).map_or(0, |p| p.pid);
            let service = end.model.system.services.get(&(pid, thread.service_tag));
            let service = service.filter(|_| thread.service_tag != 0);
            self.rows.push(ThreadRow {
                utid: utid as i32,
                tid: thread.tid as i32,
                upid: thread.upid.map(|u| u as i32),
                name: thread.name,
                service: service.map(|s| end.strings.intern(s)),
                start_address: thread.start_address as i64,
                base_priority: thread.base_priority,
                start_ns: thread.start_ns,
                end_ns: thread.end_ns,
                first_ns: thread.first_ns,
                last_ns: thread.last_ns,
            });
        }
        end.ledger.count(&THREADS_WITHOUT_PROCESS, orphans);
        Ok(vec![self.rows.into()])
    }
}
