//! Deferred procedure calls: what drivers do right after an interrupt, before any thread goes on.
//!
//! # How it is computed
//! `DPC`, `TimerDPC`, `IOTimer` and `ThreadedDPC` are logged when the routine returns; it ran from `InitialTime` to
//! the timestamp. What interrupted it on its processor ended before it did and began after it did; its time is taken
//! off for `exclusive_ns`, once per level. The interrupted thread is the one that the last context switch put on the
//! processor.
//!
//! # What fools it
//! A threaded DPC runs in a thread of its own and can be preempted: its duration may hold other threads. The
//! module is that of the routine; what it calls (a network filter below NDIS) shows in stacks of samples only.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::PAYLOAD_TOO_SHORT;
use crate::event::{Context, Event, Select};
use crate::finish::process_later;
use etwhy_decode::kernel::events::PerfInfo;
use etwhy_table::{Sym, TableBuilder, define_table};

define_table! {
    /// DPCs, one row each.
    ///
    /// A DPC should end within 100 µs (Microsoft, WDK, "Example 15: Measuring DPC/ISR Time"). The rows stand in the
    /// order in which the DPCs ended.
    pub table DPC: DpcRow = "dpc" {
        sorted_by: "ts_ns", version: 1,
        /// When it began.
        start_ns: i64 [Ns, Time],
        /// When it ended.
        ts_ns: i64 [Ns, Time],
        /// From begin to end, with what interrupted it.
        dur_ns: i64 [Ns, Duration],
        /// Without the ISRs and DPCs that interrupted it.
        exclusive_ns: i64 [Ns, Duration],
        /// Interrupts that it was directly interrupted by.
        nested: i32 [Count, Count],
        /// DPC, TimerDPC, IOTimer or ThreadedDPC.
        kind: Sym [None, Kind],
        /// Logical processor.
        cpu: i32 [None, Cpu],
        /// Module of the routine, most often a driver.
        module: Sym [None, Name],
        /// The routine, `module!function`.
        routine: Sym [None, Name],
        /// Frame of the routine (table `frame`).
        frame_id: Option<i32> [None, Frame],
        /// Process of the interrupted thread; empty if nothing tells who ran.
        upid: Option<i32> [None, Process],
        /// Thread that it interrupted (for a ThreadedDPC: in which it ran).
        utid: Option<i32> [None, Thread],
    }
}

const FIELDS: &[&str] = &["InitialTime", "Routine"];

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&DPC],
    selects: &[
        Select::kernel(PerfInfo::ThreadedDPC, FIELDS),
        Select::kernel(PerfInfo::DPC, FIELDS),
        Select::kernel(PerfInfo::TimerDPC, FIELDS),
        Select::kernel(PerfInfo::IOTimer, FIELDS),
    ],
    stacks: false,
    on_demand: true,
    new: |memory| Box::new(Dpcs { rows: TableBuilder::new(memory) }),
};

struct Dpcs {
    rows: TableBuilder<DpcRow>,
}

impl Analysis for Dpcs {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let (Some(_), Some(routine)) = (event.u64(0), event.u64(1)) else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        let cpu = event.record.cpu;
        let interrupt = cx.model.cpus.last_interrupt(cpu);
        let utid = cx.model.cpus.running(cpu, event.ns).map(|running| running.utid);
        let place = cx.place(None, routine);
        self.rows.push(DpcRow {
            start_ns: interrupt.start_ns,
            ts_ns: event.ns,
            dur_ns: interrupt.inclusive_ns(),
            exclusive_ns: interrupt.exclusive_ns(),
            nested: interrupt.nested as i32,
            kind: cx.sym(PerfInfo::name(event.tag)),
            cpu: i32::from(cpu),
            module: place.name_later(),
            routine: place.name_later(),
            frame_id: Some(place.frame_later()),
            upid: utid.map(process_later),
            utid: utid.map(|utid| utid as i32),
        });
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        end.modules_of(&mut self.rows, "module")?;
        end.routines_of(&mut self.rows, "routine")?;
        end.frames_of(&mut self.rows, "frame_id")?;
        end.processes_of(&mut self.rows, "upid")?;
        Ok(vec![self.rows.into()])
    }
}
