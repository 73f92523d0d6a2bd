//! Threads: every instance that the trace names.
//!
//! # How it is computed
//! Threads come from `Thread` events of the kernel or of Microsoft-Windows-Kernel-Process, and from every event
//! that names one. The start routine is the `Win32StartAddr` of start or rundown, looked up like a frame of a
//! stack. The service is that of the thread's `SubProcessTag` (start, rundown, `SubProcessTagChanged`).
//!
//! # What fools it
//! Pools reuse threads: the start routine of a pool's thread is the pool's, and it may work for several services
//! after each other; then all are named, in that order, and the thread counts for each of them.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::THREADS_WITHOUT_PROCESS;
use crate::event::{Context, Event, Select, What};
use crate::model::place::PlaceId;
use etwhy_base::Guid;
use etwhy_decode::kernel::events::Thread;
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
        /// Service that it works for, by its `SubProcessTag`; several in order, separated by commas.
        service: Option<Sym> [None, Name],
        /// Start address given by the program.
        start_address: i64 [Address, Address],
        /// Start routine, `module!function`.
        start_function: Option<Sym> [None, Name],
        /// Module of the start routine.
        start_module: Option<Sym> [None, Name],
        /// Base priority, where recorded.
        base_priority: Option<i32> [None, Other],
        /// Start, if the thread started within the trace.
        start_ns: Option<i64> [Ns, Time],
        /// End, if the thread ended within the trace.
        end_ns: Option<i64> [Ns, Time],
        /// Lifetime, if start and end lie in the trace.
        dur_ns: Option<i64> [Ns, Duration],
        /// First event that names it.
        first_ns: i64 [Ns, Time],
        /// Last event that names it.
        last_ns: i64 [Ns, Time],
    }
}

/// `Microsoft-Windows-Kernel-Process`.
const KERNEL_PROCESS: Guid = Guid::from_text("22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716");
const FIELDS: &[&str] = &["TThreadId|ThreadId|ThreadID", "Win32StartAddr|StartAddr"];

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&THREAD],
    selects: &[
        Select::with(What::Kernel(Thread::Start), 0, FIELDS),
        Select::with(What::Kernel(Thread::End), 0, FIELDS),
        Select::with(What::Kernel(Thread::DCStart), 0, FIELDS),
        Select::with(What::Kernel(Thread::DCEnd), 0, FIELDS),
        Select::with(What::Manifest(KERNEL_PROCESS, 3), 0, FIELDS),
        Select::with(What::Manifest(KERNEL_PROCESS, 4), 0, FIELDS),
    ],
    stacks: false,
    on_demand: false,
    new: |memory| Box::new(Threads { rows: TableBuilder::new(memory), start: Vec::new() }),
};

struct Threads {
    rows: TableBuilder<ThreadRow>,
    /// Place of the start routine of each thread, by its number.
    start: Vec<Option<PlaceId>>,
}

impl Analysis for Threads {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let model = &mut *cx.model;
        let known = (&model.threads, &model.images);
        let start = model.places.thread_start(event.u64(1), event.u64(0), event.pointer_size, known);
        let Some((utid, place)) = start else { return };
        if self.start.len() <= utid as usize {
            self.start.resize(utid as usize + 1, None);
        }
        if let Some(slot) = self.start.get_mut(utid as usize) {
            slot.get_or_insert(place);
        }
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let mut orphans = 0;
        for (utid, thread) in end.model.threads.all().iter().enumerate() {
            orphans += u64::from(thread.upid.is_none());
            let pid = thread.upid.and_then(|u| end.model.processes.get(u)).map_or(0, |p| p.pid);
            let services: Vec<&str> = thread
                .service_tags
                .iter()
                .filter_map(|&tag| Some(end.strings.get(end.model.services.by_tag(pid, tag)?.name)))
                .collect();
            let service = (!services.is_empty()).then(|| services.join(", "));
            let place = self.start.get(utid).copied().flatten().map(PlaceId::name_later);
            self.rows.push(ThreadRow {
                utid: utid as i32,
                tid: thread.tid as i32,
                upid: thread.upid.map(|u| u as i32),
                name: thread.name,
                service: service.map(|s| end.strings.intern(&s)),
                start_address: thread.start_address as i64,
                start_function: place,
                start_module: place,
                base_priority: thread.base_priority,
                start_ns: thread.start_ns,
                end_ns: thread.end_ns,
                dur_ns: thread.start_ns.zip(thread.end_ns).map(|(s, e)| e.saturating_sub(s).max(0)),
                first_ns: thread.first_ns,
                last_ns: thread.last_ns,
            });
        }
        end.routines_of(&mut self.rows, "start_function")?;
        end.modules_of(&mut self.rows, "start_module")?;
        end.ledger.count(&THREADS_WITHOUT_PROCESS, orphans);
        Ok(vec![self.rows.into()])
    }
}
