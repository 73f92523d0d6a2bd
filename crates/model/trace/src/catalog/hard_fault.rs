//! Hard faults: memory that had to be read from a disk before a thread could go on.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::PAYLOAD_TOO_SHORT;
use crate::event::{Context, Event, OPERATION_BEFORE_NS, Select, What};
use crate::finish::process_later;
use etwhy_decode::kernel::events::PageFault;
use etwhy_table::{TableBuilder, define_table};

define_table! {
    /// Hard page faults.
    pub table HARD_FAULT: HardFaultRow = "hard_fault" {
        version: 1, evidence: Verified("PerfView baselines of net.4.5.2.x64 and net.4.5.x86"),
        /// When the thread faulted.
        start_ns: i64 [Ns, Time],
        /// When the pages were there.
        ts_ns: i64 [Ns, Time],
        /// How long the thread waited.
        dur_ns: i64 [Ns, Duration],
        /// Process of the thread.
        upid: Option<i32> [None, Process],
        /// Thread that waited.
        utid: i32 [None, Thread],
        /// Virtual address.
        address: i64 [Address, Address],
        /// Bytes read.
        size_bytes: i64 [Bytes, Bytes],
        /// Offset in the file.
        offset_bytes: i64 [Bytes, Other],
        /// File (table `file`).
        file_id: Option<i32> [None, Id],
        /// Stack (table `stack`), if one was recorded.
        stack_id: Option<i32> [None, Stack],
    }
}

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&HARD_FAULT],
    selects: &[Select::with(
        What::Kernel(PageFault::HardFault),
        0,
        &["InitialTime", "ReadOffset", "VirtualAddress", "FileObject", "TThreadId", "ByteCount"],
    )],
    stacks: true,
    on_demand: false,
    new: |memory| Box::new(HardFaults { rows: TableBuilder::new(memory) }),
};

struct HardFaults {
    rows: TableBuilder<HardFaultRow>,
}

impl Analysis for HardFaults {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let (Some(initial), Some(tid)) = (event.i64(0), event.u64(4)) else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        let dur = cx.span_since(event, initial, OPERATION_BEFORE_NS).unwrap_or(0);
        let tid = tid as u32;
        let utid = cx.model.thread(tid, None, event.ns);
        let stack = cx.stack_ticket(event, Some(tid), Some(utid));
        self.rows.push(HardFaultRow {
            start_ns: event.ns.saturating_sub(dur),
            ts_ns: event.ns,
            dur_ns: dur,
            upid: Some(process_later(utid)),
            utid: utid as i32,
            address: event.u64(2).unwrap_or(0) as i64,
            size_bytes: event.u64(5).unwrap_or(0) as i64,
            offset_bytes: event.u64(1).unwrap_or(0) as i64,
            file_id: event.u64(3).and_then(|key| cx.model.files.known(key)).map(|f| f as i32),
            stack_id: Some(stack),
        });
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        end.stacks_of(&mut self.rows, "stack_id")?;
        end.processes_of(&mut self.rows, "upid")?;
        Ok(vec![self.rows.into()])
    }
}
