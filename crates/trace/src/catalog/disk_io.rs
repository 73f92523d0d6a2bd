//! Disk transfers: what reached a disk, how long it took, and for whom.
//!
//! # How it is computed
//! `DiskIo` Read, Write and FlushBuffers are logged when they complete; the start is the completion minus
//! `HighResResponseTime`. A disk serves its transfers one after the other as far as the trace can tell, so the
//! service time is the part of the response that does not overlap the completion before it on the same disk;
//! the rest is queueing.

use crate::anomalies::PAYLOAD_TOO_SHORT;
use crate::engine::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event, Select, What};
use etwhy_table::{Sym, TableBuilder, define_table};
use foldhash::HashMap;

define_table! {
    /// Disk transfers.
    pub table DISK_IO: DiskIoRow = "disk_io" {
        version: 1, evidence: Verified("PerfView baselines of net.4.5.2.x64 and net.4.5.x86"),
        /// Start of the transfer.
        start_ns: i64 [Ns, Time],
        /// Completion.
        ts_ns: i64 [Ns, Time],
        /// Response time: from issue to completion.
        dur_ns: i64 [Ns, Duration],
        /// Part of the response time in which the disk worked on nothing else.
        service_ns: i64 [Ns, Duration],
        /// read, write or flush.
        op: Sym [None, Kind],
        /// Physical disk.
        disk: i32 [None, Other],
        /// Bytes moved.
        size_bytes: i64 [Bytes, Bytes],
        /// Offset on the disk.
        offset_bytes: i64 [Bytes, Other],
        /// Process that issued it.
        upid: Option<i32> [None, Process],
        /// Thread that issued it.
        utid: Option<i32> [None, Thread],
        /// File (table `file`).
        file_id: Option<i32> [None, Id],
        /// IRP flags.
        irp_flags: i32 [Hex32, Flag],
        /// Address of the IRP.
        irp: i64 [Address, Address],
        /// Processor on which it completed.
        cpu: i32 [None, Cpu],
    }
}

const READ: u8 = 10;
const WRITE: u8 = 11;
const FLUSH: u8 = 14;
const FIELDS: &[&str] = &[
    "DiskNumber",
    "IrpFlags",
    "TransferSize",
    "ByteOffset",
    "FileObject",
    "Irp",
    "HighResResponseTime",
    "IssuingThreadId",
];

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&DISK_IO],
    selects: &[
        Select::with(What::Kernel(1, 10), READ, FIELDS),
        Select::with(What::Kernel(1, 11), WRITE, FIELDS),
        Select::with(What::Kernel(1, 14), FLUSH, FIELDS),
        Select::with(What::Kernel(1, 55), READ, FIELDS),
        Select::with(What::Kernel(1, 56), WRITE, FIELDS),
        Select::with(What::Kernel(1, 57), FLUSH, FIELDS),
    ],
    stacks: false,
    on_demand: false,
    new: |memory| Box::new(DiskIo { rows: TableBuilder::new(memory), last: HashMap::default() }),
};

struct DiskIo {
    rows: TableBuilder<DiskIoRow>,
    /// Last completion per disk.
    last: HashMap<i32, i64>,
}

impl Analysis for DiskIo {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let Some(disk) = event.u64(0) else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        let disk = disk as i32;
        // Before version 3 the header's thread is the issuer's, if the header has one.
        let tid = event.u64(7).map(|t| t as u32).or(event.tid_pid().map(|(tid, _)| tid));
        let pid = event.tid_pid().filter(|(t, _)| Some(*t) == tid).map(|(_, pid)| pid);
        let utid = tid.filter(|&t| t != u32::MAX).map(|t| cx.model.thread(t, pid, event.ns));
        let dur = cx.timeline.span_ns(event.record.file, event.i64(6).unwrap_or(0)).max(0);
        let start = event.ns.saturating_sub(dur);
        let last = self.last.entry(disk).or_insert(i64::MIN);
        let service = event.ns.saturating_sub(start.max(*last)).max(0);
        *last = (*last).max(event.ns);
        let op = match event.tag {
            READ => "read",
            WRITE => "write",
            _ => "flush",
        };
        let flush = event.tag == FLUSH;
        self.rows.push(DiskIoRow {
            start_ns: start,
            ts_ns: event.ns,
            dur_ns: dur,
            service_ns: service,
            op: cx.sym(op),
            disk,
            size_bytes: if flush { 0 } else { event.u64(2).unwrap_or(0) as i64 },
            offset_bytes: if flush { 0 } else { event.u64(3).unwrap_or(0) as i64 },
            upid: utid.map(|u| u as i32),
            utid: utid.map(|u| u as i32),
            file_id: event.u64(4).and_then(|key| cx.model.files.at(key, event.ns)).map(|f| f as i32),
            irp_flags: event.u64(1).unwrap_or(0) as i32,
            irp: event.u64(5).unwrap_or(0) as i64,
            cpu: i32::from(event.record.cpu),
        });
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        end.processes_of(&mut self.rows, "upid")?;
        Ok(vec![self.rows.into()])
    }
}
