//! Interrupt service routines: what a driver does at once when its device calls.
//!
//! # How it is computed
//! `ISR`, `ISR-PASS` (passive level) and `ISR-MSI` are logged when the routine returns; it ran from `InitialTime` to
//! the timestamp. An ISR of higher priority that interrupted it is taken off for `exclusive_ns`.
//! One at passive level runs in a thread of the system: `utid` is that thread, the time counts as the thread's, and it may hold
//! other threads if that was switched out.
//!
//! # What fools it
//! On a shared interrupt line every driver's routine is called until one says the interrupt is its own: `claimed` is
//! false for the others.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::PAYLOAD_TOO_SHORT;
use crate::event::{Context, Event, Select};
use crate::finish::process_later;
use etwhy_decode::kernel::events::PerfInfo;
use etwhy_table::{Sym, TableBuilder, define_table};

define_table! {
    /// ISRs, one row each.
    ///
    /// An ISR should end within 25 µs (Microsoft, WDK, "Example 15: Measuring DPC/ISR Time"). The rows stand in
    /// the order in which the ISRs ended.
    pub table ISR: IsrRow = "isr" {
        sorted_by: "ts_ns", version: 1,
        /// When it began.
        start_ns: i64 [Ns, Time],
        /// When it ended.
        ts_ns: i64 [Ns, Time],
        /// From begin to end, with what interrupted it.
        dur_ns: i64 [Ns, Duration],
        /// Without the ISRs that interrupted it.
        exclusive_ns: i64 [Ns, Duration],
        /// Interrupts that it was directly interrupted by.
        nested: i32 [Count, Count],
        /// ISR, ISR-PASS or ISR-MSI.
        kind: Sym [None, Kind],
        /// Logical processor.
        cpu: i32 [None, Cpu],
        /// Module of the routine, most often a driver.
        module: Sym [None, Name],
        /// The routine, `module!function`.
        routine: Sym [None, Name],
        /// Frame of the routine (table `frame`).
        frame_id: Option<i32> [None, Frame],
        /// Interrupt vector, where recorded.
        vector: Option<i32> [None, Other],
        /// Message number of a message-signalled interrupt.
        message: Option<i32> [None, Other],
        /// The routine said that the interrupt was its device's.
        claimed: Option<bool> [None, Flag],
        /// Process of the interrupted thread; empty if nothing tells who ran.
        upid: Option<i32> [None, Process],
        /// Thread that it interrupted (for ISR-PASS: in which it ran).
        utid: Option<i32> [None, Thread],
    }
}

const FIELDS: &[&str] = &["InitialTime", "Routine", "ReturnValue", "Vector", "MessageNumber"];

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&ISR],
    selects: &[
        Select::kernel(PerfInfo::ISR_MSI, FIELDS),
        Select::kernel(PerfInfo::ISR, FIELDS),
        Select::kernel(PerfInfo::ISR_PASS, FIELDS),
    ],
    stacks: false,
    on_demand: true,
    new: |memory| Box::new(Isrs { rows: TableBuilder::new(memory) }),
};

struct Isrs {
    rows: TableBuilder<IsrRow>,
}

impl Analysis for Isrs {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let (Some(_), Some(routine)) = (event.u64(0), event.u64(1)) else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        let cpu = event.record.cpu;
        let interrupt = cx.model.cpus.last_interrupt(cpu);
        let utid = cx.model.cpus.running(cpu, event.ns).map(|running| running.utid);
        let place = cx.place(None, routine);
        self.rows.push(IsrRow {
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
            vector: event.u64(3).map(|v| v as i32),
            message: event.u64(4).map(|m| m as i32),
            claimed: event.u64(2).map(|v| v != 0),
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
