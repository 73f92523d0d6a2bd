//! File operations, as the file system saw them: creates, reads, writes, queries, with duration and status.
//!
//! # How it is computed
//! Windows logs a file operation when the file system gets it, and its end (`OperationEnd`) under the same IRP.
//! The two are paired by IRP. IRPs are reused: a begin whose IRP is in use ends the older operation as
//! unfinished, and so does the end of the trace; their end, duration, status and bytes are unknown. A
//! `DeletePath`, `RenamePath` or `SetLinkPath` under the IRP of the SetInfo, Delete or Rename that it belongs to
//! is no operation of its own; it gives that one its `target`.
//!
//! The file is that of the file object from its Create to its Close, else that of the file key. Its path comes
//! from name events, also from the rundown at the end of the trace, and if there are none from the path that the
//! Create asked for; failed creates have that path and no `file_id`.
//!
//! # What fools it
//! File events time only the lowest layer. A create passes the object manager and all filters (antivirus,
//! backup, encryption) before the file system is asked and events begin, and passes them again afterwards: a
//! create that the caller waited 20 ms for may be 20 µs here. **Never price opens from these durations alone.**
//! CPU samples under `NtCreateFile`, the table `minifilter` and the number of failed creates tell the truth.
//!
//! Reads and writes of the cache manager and of mapped files appear under the System process or not at all.
//! Asynchronous operations end when they complete; nobody may have waited. Where buffers are missing between
//! begin and end, the end may be that of another operation, and the duration stays unknown.
//!
//! No real trace with these events was at hand: layouts follow Microsoft's class definitions.

mod names;
mod slow;
mod usage;

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::{
    FILE_ENDS_UNMATCHED, FILE_OPERATIONS_BEYOND_LIMIT, FILE_OPERATIONS_UNFINISHED, FILE_PAIRS_DOUBTFUL,
    PAYLOAD_TOO_SHORT,
};
use crate::event::{Context, Event, Select};
use crate::finish::process_later;
use crate::model::file_name::FileRef;
use etwhy_decode::kernel::events;
use etwhy_table::{Sym, TableBuilder, define_table};
use foldhash::HashMap;
use names::Names;
pub use slow::SlowFileIoRow;
use slow::{SLOW_FILE_IO, Slow};
use usage::{FILE_OPEN, FILE_USAGE, Usage};
pub use usage::{FileOpenRow, FileUsageRow};

define_table! {
    /// File operations.
    ///
    /// File events time only the lowest layer, the file system below all filters: what an open cost its caller
    /// stands in CPU samples and in `minifilter`, not here. Rows stand in the order in which operations ended;
    /// those without an end have no `ts_ns`, `dur_ns` and `status`.
    pub table FILE_IO: FileIoRow = "file_io" {
        version: 1,
        /// When the file system got the operation.
        start_ns: i64 [Ns, Time],
        /// When it ended.
        ts_ns: Option<i64> [Ns, Time],
        /// From start to end, in the file system and below.
        dur_ns: Option<i64> [Ns, Duration],
        /// Create, Cleanup, Close, Read, Write, SetInfo, Delete, Rename, DirEnum, Flush, QueryInfo, FSControl,
        /// DirNotify, DeletePath, RenamePath or SetLinkPath.
        op: Sym [None, Kind],
        /// File (table `file`); none for creates that failed.
        file_id: Option<i32> [None, Id],
        /// Path, with drive letters where the trace maps them.
        path: Option<Sym> [None, Path],
        /// Where in the file, for reads and writes.
        offset_bytes: Option<i64> [Bytes, Other],
        /// Bytes asked for: reads, writes and directory enumerations.
        size_bytes: Option<i64> [Bytes, Bytes],
        /// Bytes that a read or write moved.
        done_bytes: Option<i64> [Bytes, Bytes],
        /// NTSTATUS of the end.
        status: Option<i32> [Hex32, Status],
        /// Name of the status.
        status_name: Option<Sym> [None, Name],
        /// Process of the thread.
        upid: Option<i32> [None, Process],
        /// Thread that asked.
        utid: Option<i32> [None, Thread],
        /// Stack (table `stack`), if one was recorded.
        stack_id: Option<i32> [None, Stack],
        /// Information class of queries, SetInfo, Rename, Delete and enumerations; for FSControl its code.
        info_class: Option<Sym> [None, Kind],
        /// What a Create asked for: FILE_OPEN, FILE_CREATE, FILE_OPEN_IF, FILE_OVERWRITE, …
        disposition: Option<Sym> [None, Kind],
        /// Options of a Create.
        options: Option<Sym> [None, Flag],
        /// What the Create lets others do meanwhile.
        share: Option<Sym> [None, Flag],
        /// Attributes that a Create gives a new file.
        attributes: Option<Sym> [None, Flag],
        /// What a successful Create did: superseded, opened, created or overwritten.
        result: Option<Sym> [None, Kind],
        /// Names that a DirEnum or DirNotify asked for; empty for all.
        pattern: Option<Sym> [None, Name],
        /// Path that was deleted, renamed to or linked, where recorded.
        target: Option<Sym> [None, Path],
        /// IRP flags of reads and writes.
        io_flags: Option<i32> [Hex32, Flag],
        /// Address of the IRP.
        irp: i64 [Address, Address],
        /// Processor on which it began.
        cpu: i32 [None, Cpu],
    }
}

const CREATE: u8 = events::FileIo::Create.opcode;
const CLEANUP: u8 = events::FileIo::Cleanup.opcode;
const CLOSE: u8 = events::FileIo::Close.opcode;
const READ: u8 = events::FileIo::Read.opcode;
const WRITE: u8 = events::FileIo::Write.opcode;
const SET_INFO: u8 = events::FileIo::SetInfo.opcode;
const DELETE: u8 = events::FileIo::Delete.opcode;
const RENAME: u8 = events::FileIo::Rename.opcode;
const DIR_ENUM: u8 = events::FileIo::DirEnum.opcode;
const FLUSH: u8 = events::FileIo::Flush.opcode;
const QUERY_INFO: u8 = events::FileIo::QueryInfo.opcode;
const FS_CONTROL: u8 = events::FileIo::FSControl.opcode;
const END: u8 = events::FileIo::OperationEnd.opcode;
const DIR_NOTIFY: u8 = events::FileIo::DirNotify.opcode;
const DELETE_PATH: u8 = events::FileIo::DeletePath.opcode;
const RENAME_PATH: u8 = events::FileIo::RenamePath.opcode;
const SET_LINK_PATH: u8 = events::FileIo::SetLinkPath.opcode;

const CREATE_FIELDS: &[&str] =
    &["IrpPtr", "FileObject", "TTID", "CreateOptions", "FileAttributes", "ShareAccess"];
const SIMPLE: &[&str] = &["IrpPtr", "FileObject", "TTID"];
const READ_WRITE: &[&str] = &["IrpPtr", "FileObject", "TTID", "Offset", "IoSize", "IoFlags"];
const INFO: &[&str] = &["IrpPtr", "FileObject", "TTID", "InfoClass"];
const DIR: &[&str] = &["IrpPtr", "FileObject", "TTID", "InfoClass", "Length", "FileIndex"];

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&FILE_IO, &SLOW_FILE_IO, &FILE_USAGE, &FILE_OPEN],
    selects: &[
        Select::kernel(events::FileIo::Create, CREATE_FIELDS),
        Select::kernel(events::FileIo::Cleanup, SIMPLE),
        Select::kernel(events::FileIo::Close, SIMPLE),
        Select::kernel(events::FileIo::Read, READ_WRITE),
        Select::kernel(events::FileIo::Write, READ_WRITE),
        Select::kernel(events::FileIo::SetInfo, INFO),
        Select::kernel(events::FileIo::Delete, INFO),
        Select::kernel(events::FileIo::Rename, INFO),
        Select::kernel(events::FileIo::DirEnum, DIR),
        Select::kernel(events::FileIo::Flush, SIMPLE),
        Select::kernel(events::FileIo::QueryInfo, INFO),
        Select::kernel(events::FileIo::FSControl, INFO),
        Select::kernel(events::FileIo::OperationEnd, &["IrpPtr", "ExtraInfo", "NtStatus"]),
        Select::kernel(events::FileIo::DirNotify, DIR),
        Select::kernel(events::FileIo::DeletePath, INFO),
        Select::kernel(events::FileIo::RenamePath, INFO),
        Select::kernel(events::FileIo::SetLinkPath, INFO),
    ],
    stacks: true,
    on_demand: true,
    new: |memory| {
        Box::new(FileIo {
            rows: TableBuilder::if_wanted(memory),
            slow: Slow::new(memory),
            usage: Usage::new(memory),
            pending: HashMap::default(),
            names: Names::default(),
            begun: 0,
        })
    },
};

/// Operations that may be under way at once. Directory watchers keep one open each; a million is far beyond
/// any machine.
const MOST_PENDING: usize = 1 << 20;

struct FileIo {
    rows: TableBuilder<FileIoRow>,
    slow: Slow,
    usage: Usage,
    /// Operations without an end, by IRP.
    pending: HashMap<u64, Pending>,
    names: Names,
    /// Operations so far: the order of those that never end.
    begun: u64,
}

/// An operation under way.
struct Pending {
    op: u8,
    order: u64,
    object: u64,
    file: Option<FileRef>,
    utid: Option<u32>,
    row: FileIoRow,
}

/// How an operation ended.
struct End {
    ns: i64,
    status: u32,
    information: u64,
}

impl Analysis for FileIo {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        if event.tag == END {
            self.end(event, cx);
        } else {
            self.begin(event, cx);
        }
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let mut left: Vec<Pending> = std::mem::take(&mut self.pending).into_values().collect();
        left.sort_unstable_by_key(|pending| pending.order);
        end.ledger.count(&FILE_OPERATIONS_UNFINISHED, left.len() as u64);
        for pending in left {
            self.usage.add(&pending.row, pending.op, pending.file, pending.utid, end.model);
            self.slow.add(&pending.row, pending.op, Some(end.kernel_end_ns()));
            self.rows.push(pending.row);
        }
        end.stacks_of(&mut self.rows, "stack_id")?;
        end.processes_of(&mut self.rows, "upid")?;
        end.files_of(&mut self.rows, "file_id")?;
        end.paths_of(&mut self.rows, "path")?;
        let (volumes, strings) = (&end.model.volumes, &mut *end.strings);
        self.rows.remap_text("target", |target| {
            let path = volumes.drive_path(strings.get(Sym(target?)));
            Some(strings.intern(&path))
        })?;
        let slow = self.slow.finish(end)?;
        let [usage, open] = self.usage.finish(end);
        Ok(vec![self.rows.into(), slow, usage, open])
    }
}

impl FileIo {
    fn begin(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let (Some(irp), Some(object)) = (event.u64(0), event.u64(1)) else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        let op = event.tag;
        let path_op = matches!(op, DELETE_PATH | RENAME_PATH | SET_LINK_PATH);
        let target = if path_op { cx.sym_or_none(event.text_after(3)) } else { None };
        let changes = |op: u8| matches!(op, SET_INFO | DELETE | RENAME);
        let mut inherited = None;
        if let Some(older) = self.pending.get_mut(&irp).filter(|older| older.object == object) {
            if path_op && changes(older.op) && older.row.target.is_none() {
                older.row.target = target;
                return;
            }
            if changes(op) && matches!(older.op, DELETE_PATH | RENAME_PATH | SET_LINK_PATH) {
                inherited = older.row.target;
                self.pending.remove(&irp);
            }
        }
        let header = event.tid_pid();
        let tid = event.u64(2).map(|tid| tid as u32).filter(|&tid| tid != 0 && tid != u32::MAX);
        let tid = tid.or(header.map(|(tid, _)| tid));
        let pid = header.filter(|(t, _)| Some(*t) == tid).map(|(_, pid)| pid);
        let utid = tid.map(|tid| cx.model.thread(tid, pid, event.ns));
        let file = cx.model.files.current();
        let stack = cx.stack_ticket(event, tid, utid);
        let mut row = FileIoRow {
            start_ns: event.ns,
            ts_ns: None,
            dur_ns: None,
            op: cx.sym(events::FileIo::name(op)),
            file_id: file.map(FileRef::provisional),
            path: file.map(FileRef::sym),
            offset_bytes: None,
            size_bytes: None,
            done_bytes: None,
            status: None,
            status_name: None,
            upid: utid.map(process_later),
            utid: utid.map(|u| u as i32),
            stack_id: Some(stack),
            info_class: None,
            disposition: None,
            options: None,
            share: None,
            attributes: None,
            result: None,
            pattern: None,
            target: target.or(inherited),
            io_flags: None,
            irp: irp as i64,
            cpu: i32::from(event.record.cpu),
        };
        let field = |n: usize| event.u64(n).map(|v| v as u32);
        match op {
            CREATE => {
                row.disposition = field(3).and_then(|v| self.names.disposition(v, cx.strings));
                row.options = field(3).map(|v| self.names.options(v, cx.strings));
                row.attributes = field(4).map(|v| self.names.attributes(v, cx.strings));
                row.share = field(5).map(|v| self.names.share(v, cx.strings));
            }
            READ | WRITE => {
                row.offset_bytes = event.i64(3);
                row.size_bytes = event.u64(4).map(|v| v as i64);
                row.io_flags = field(5).map(|v| v as i32);
            }
            DIR_ENUM | DIR_NOTIFY => {
                row.info_class = field(3).and_then(|v| self.names.info_class(v, cx.strings));
                row.size_bytes = event.u64(4).map(|v| v as i64);
                row.pattern = cx.sym_or_none(event.text_after(5));
            }
            FS_CONTROL => row.info_class = field(3).map(|v| self.names.control(v, cx.strings)),
            CLEANUP | CLOSE | FLUSH => {}
            _ => row.info_class = field(3).and_then(|v| self.names.info_class(v, cx.strings)),
        }
        self.begun += 1;
        let pending = Pending { op, order: self.begun, object, file, utid, row };
        if self.pending.len() >= MOST_PENDING && !self.pending.contains_key(&irp) {
            cx.ledger.count(&FILE_OPERATIONS_BEYOND_LIMIT, 1);
            self.close(pending, None, cx);
        } else if let Some(older) = self.pending.insert(irp, pending) {
            self.close(older, None, cx);
        }
    }

    fn end(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let (Some(irp), Some(information), Some(status)) = (event.u64(0), event.u64(1), event.u64(2)) else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        let Some(pending) = self.pending.remove(&irp) else {
            cx.ledger.count(&FILE_ENDS_UNMATCHED, 1);
            return;
        };
        let (start, cpu) = (pending.row.start_ns, event.record.cpu);
        let cpus = &cx.model.cpus;
        let watched = i32::from(cpu) == pending.row.cpu
            && pending.utid.is_some_and(|utid| cpus.stayed(cpu, utid, start, event.ns));
        let begun_on = u16::try_from(pending.row.cpu).unwrap_or(u16::MAX);
        let end = if cpus.parted((begun_on, start), (cpu, event.ns)) && !watched {
            cx.ledger.count(&FILE_PAIRS_DOUBTFUL, 1);
            None
        } else {
            Some(End { ns: event.ns, status: status as u32, information })
        };
        self.close(pending, end, cx);
    }

    /// The row of an operation is complete.
    fn close(&mut self, mut pending: Pending, end: Option<End>, cx: &mut Context<'_>) {
        let row = &mut pending.row;
        if let Some(end) = end {
            row.ts_ns = Some(end.ns);
            row.dur_ns = Some(end.ns.saturating_sub(row.start_ns));
            row.status = Some(end.status as i32);
            row.status_name = self.names.status(end.status, cx.strings);
            let failed = end.status >= FAILED;
            match pending.op {
                READ | WRITE => row.done_bytes = Some(end.information as i64),
                CREATE if !failed => {
                    row.result = names::create_result(end.information).map(|name| cx.sym(name))
                }
                _ => {}
            }
        } else {
            cx.ledger.count(&FILE_OPERATIONS_UNFINISHED, 1);
        }
        self.usage.add(row, pending.op, pending.file, pending.utid, cx.model);
        self.slow.add(row, pending.op, None);
        self.rows.push(pending.row);
    }
}

/// NTSTATUS values from here on are no success (`NT_SUCCESS`): warnings and errors.
const FAILED: u32 = 0x8000_0000;

/// `STATUS_REPARSE`: a create that met a link. It begins again with another path, and opens nothing itself.
const REPARSE: u32 = 0x104;
