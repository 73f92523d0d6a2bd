//! Disk transfers: what reached a disk, how long it took, and for whom.
//!
//! # How it is computed
//! `DiskIo` Read, Write and FlushBuffers are logged when they complete; the start is the completion minus
//! `HighResResponseTime`. A disk serves its transfers one after the other as far as the trace can tell, so the
//! service time is the part of the response that does not overlap the completion before it on the same disk;
//! the rest is queueing. Where `ReadInit`, `WriteInit` and `FlushInit` were recorded too, they tell when and on
//! which stack the request was issued; they are paired with the completion by IRP.
//!
//! # What fools it
//! The response time is that of the disk driver's stack: it ends where the IRP comes back, and what a file
//! system or a filter adds is not in it. Disks with many queues (NVMe) work on several requests at once;
//! `service_ns` then is a share of the disk's busy time, not the time of the request alone. Requests of the cache
//! manager and of the memory manager are issued by System threads for somebody else.
//!
//! The priority is that of the IRP's flags, bits 17 to 19, as TraceEvent (PerfView) reads them too; a request
//! without a hint shows NotSet and is treated as Normal.

mod by_file;

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::{DISK_REQUESTS_FORGOTTEN, PAYLOAD_TOO_SHORT};
use crate::event::{Context, Event, Select, What};
use crate::finish::process_later;
pub use by_file::DiskFileRow;
use by_file::{ByFile, DISK_FILE};
use etwhy_decode::kernel::events;
use etwhy_decode::kernel::names::io_priority;
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
        /// The rest of the response time: other requests of the disk completed meanwhile.
        queue_ns: i64 [Ns, Duration],
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
        /// I/O priority hint: NotSet, VeryLow, Low, Normal, High, Critical.
        priority: Option<Sym> [None, Kind],
        /// Requests of all disks that were under way when this one was issued; only with Init events.
        depth: Option<i64> [Count, Count],
        /// Stack (table `stack`) that issued it; only with Init events.
        stack_id: Option<i32> [None, Stack],
        /// When its Init event was logged: `start_ns`, but for some microseconds.
        init_ns: Option<i64> [Ns, Time],
        /// IRP flags.
        irp_flags: i32 [Hex32, Flag],
        /// Address of the IRP.
        irp: i64 [Address, Address],
        /// Processor on which it completed.
        cpu: i32 [None, Cpu],
    }
}

const READ: u8 = events::DiskIo::Read.opcode;
const WRITE: u8 = events::DiskIo::Write.opcode;
const FLUSH: u8 = events::DiskIo::FlushBuffers.opcode;
const INIT: u8 = events::DiskIo::ReadInit.opcode;
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
const INIT_FIELDS: &[&str] = &["Irp", "IssuingThreadId"];

/// Requests that may be under way at once: far beyond the queues of all disks of a machine.
const MOST_PENDING: usize = 1 << 18;

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&DISK_IO, &DISK_FILE],
    selects: &[
        Select::kernel(events::DiskIo::Read, FIELDS),
        Select::kernel(events::DiskIo::Write, FIELDS),
        Select::kernel(events::DiskIo::FlushBuffers, FIELDS),
        Select::with(What::Kernel(events::DiskIo::OpticalRead), READ, FIELDS),
        Select::with(What::Kernel(events::DiskIo::OpticalWrite), WRITE, FIELDS),
        Select::with(What::Kernel(events::DiskIo::OpticalFlushBuffers), FLUSH, FIELDS),
        Select::kernel(events::DiskIo::ReadInit, INIT_FIELDS),
        Select::with(What::Kernel(events::DiskIo::WriteInit), INIT, INIT_FIELDS),
        Select::with(What::Kernel(events::DiskIo::FlushInit), INIT, INIT_FIELDS),
        Select::with(What::Kernel(events::DiskIo::OpticalReadInit), INIT, INIT_FIELDS),
        Select::with(What::Kernel(events::DiskIo::OpticalWriteInit), INIT, INIT_FIELDS),
        Select::with(What::Kernel(events::DiskIo::OpticalFlushInit), INIT, INIT_FIELDS),
    ],
    stacks: true,
    on_demand: false,
    new: |memory| {
        Box::new(DiskIo {
            rows: TableBuilder::new(memory),
            by_file: ByFile::new(memory),
            last: HashMap::default(),
            pending: HashMap::default(),
            priorities: Default::default(),
        })
    },
};

struct DiskIo {
    rows: TableBuilder<DiskIoRow>,
    by_file: ByFile,
    /// Last completion per disk.
    last: HashMap<i32, i64>,
    /// Requests that were issued and have not completed, by IRP.
    pending: HashMap<u64, Issued>,
    /// Names of priorities.
    priorities: [Option<Sym>; 8],
}

/// What an Init event told.
#[derive(Clone, Copy)]
struct Issued {
    ns: i64,
    depth: i64,
    stack: i32,
}

impl DiskIo {
    fn issued(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let Some(irp) = event.u64(0) else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        // The stack is that of the thread that logged the event, which may issue for another one.
        let issuer = event.u64(1).map(|t| t as u32).filter(|&t| t != u32::MAX);
        let logged = event.tid_pid();
        let tid = logged.map(|(tid, _)| tid).or(issuer);
        let utid = tid.map(|tid| cx.model.thread(tid, logged.map(|(_, pid)| pid), event.ns));
        let stack = cx.stack_ticket(event, tid, utid);
        if self.pending.len() >= MOST_PENDING {
            cx.ledger.count(&DISK_REQUESTS_FORGOTTEN, self.pending.len() as u64);
            self.pending.clear();
        }
        // An IRP that was not seen to complete is not under way any more when it is issued again.
        self.pending.remove(&irp);
        let depth = self.pending.len() as i64;
        self.pending.insert(irp, Issued { ns: event.ns, depth, stack });
    }

    fn priority(&mut self, flags: u32, cx: &mut Context<'_>) -> Option<Sym> {
        let slot = self.priorities.get_mut((flags >> 17 & 7) as usize)?;
        if slot.is_none() {
            *slot = io_priority(flags).map(|name| cx.strings.intern(name));
        }
        *slot
    }
}

impl Analysis for DiskIo {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        if event.tag == INIT {
            self.issued(event, cx);
            return;
        }
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
        let irp = event.u64(5).unwrap_or(0);
        let issued = self.pending.remove(&irp);
        let flags = event.u64(1).unwrap_or(0) as u32;
        let row = DiskIoRow {
            start_ns: start,
            ts_ns: event.ns,
            dur_ns: dur,
            service_ns: service,
            queue_ns: dur.saturating_sub(service).max(0),
            op: cx.sym(op),
            disk,
            size_bytes: if flush { 0 } else { event.u64(2).unwrap_or(0) as i64 },
            offset_bytes: if flush { 0 } else { event.u64(3).unwrap_or(0) as i64 },
            upid: utid.map(process_later),
            utid: utid.map(|u| u as i32),
            file_id: event.u64(4).and_then(|key| cx.model.files.known(key)).map(|f| f as i32),
            priority: event.u64(1).and_then(|flags| self.priority(flags as u32, cx)),
            depth: issued.map(|i| i.depth),
            stack_id: issued.map(|i| i.stack),
            init_ns: issued.map(|i| i.ns),
            irp_flags: flags as i32,
            irp: irp as i64,
            cpu: i32::from(event.record.cpu),
        };
        self.by_file.add(&row, event.tag);
        self.rows.push(row);
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        end.stacks_of(&mut self.rows, "stack_id")?;
        end.processes_of(&mut self.rows, "upid")?;
        let by_file = self.by_file.finish(end);
        Ok(vec![self.rows.into(), by_file])
    }
}
