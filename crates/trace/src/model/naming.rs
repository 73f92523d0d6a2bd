//! Who is named by payloads: threads and processes that events speak of, besides their writers.
//!
//! An instance of a process or thread gets its number from the first event that names it. Trackers alone make
//! instances, and they see all events whatever is asked, so that numbers are a function of the trace. An analysis that
//! looks up a process or thread by a payload's id needs a line here.

use crate::event::{Context, Event, Select, What};
use etwhy_base::{Bytes, Guid};
use etwhy_decode::schema::InType;

/// A thread id, and that of its process if there is a second field.
const THREAD: u8 = 0;
/// Process ids.
const PROCESSES: u8 = 1;
/// A handle: those of the kernel are the System process's.
const HANDLE: u8 = 2;
/// Entries of `MemInfoWS`.
const WORKING_SETS: u8 = 3;
/// Process ids of a manifest event.
const MANIFEST_PROCESSES: u8 = 4;
/// Thread ids of a manifest event.
const MANIFEST_THREADS: u8 = 5;

const KERNEL_NETWORK: Guid = Guid::from_text("7dd42a49-5329-4832-8dfd-43d979153a88");
const KERNEL_POWER: Guid = Guid::from_text("331c3b3a-2005-44c2-ac5e-77220c37d6b4");
const WIN32K: Guid = Guid::from_text("8c416c79-d49b-4f01-a467-e56d3aa8234c");
const WMI: Guid = Guid::from_text("1418ef04-b0b4-4623-bf7e-d74ab47bbdaa");

/// Set in handles of the kernel, which are all in one table.
const KERNEL_HANDLE: u64 = 0x8000_0000;
/// Process id of System.
const SYSTEM_PID: u32 = 4;

const fn thread(group: u8, opcode: u8, fields: &'static [&'static str]) -> Select {
    Select::with(What::Kernel(group, opcode), THREAD, fields)
}

const fn processes(group: u8, opcode: u8, fields: &'static [&'static str]) -> Select {
    Select::with(What::Kernel(group, opcode), PROCESSES, fields)
}

const fn connection(id: u16) -> Select {
    Select::with(What::Manifest(KERNEL_NETWORK, id), PROCESSES, &["PID"])
}

const STACK: &[&str] = &["StackThread", "StackProcess"];
const ISSUER: &[&str] = &["IssuingThreadId"];
const FILE: &[&str] = &["TTID"];
const PID: &[&str] = &["PID"];
const PROCESS: &[&str] = &["ProcessId"];
const OWNER: &[&str] = &["OwnerPid"];

pub(crate) const SELECTS: &[Select] = &[
    thread(0x0F, 46, &["ThreadId"]),
    thread(0x18, 32, STACK),
    thread(0x18, 37, STACK),
    thread(0x18, 38, STACK),
    thread(2, 32, &["TThreadId"]),
    thread(1, 10, ISSUER),
    thread(1, 11, ISSUER),
    thread(1, 12, ISSUER),
    thread(1, 13, ISSUER),
    thread(1, 14, ISSUER),
    thread(1, 15, ISSUER),
    thread(1, 55, ISSUER),
    thread(1, 56, ISSUER),
    thread(1, 57, ISSUER),
    thread(1, 58, ISSUER),
    thread(1, 59, ISSUER),
    thread(1, 60, ISSUER),
    thread(4, 64, FILE),
    thread(4, 65, FILE),
    thread(4, 66, FILE),
    thread(4, 67, FILE),
    thread(4, 68, FILE),
    thread(4, 69, FILE),
    thread(4, 70, FILE),
    thread(4, 71, FILE),
    thread(4, 72, FILE),
    thread(4, 73, FILE),
    thread(4, 74, FILE),
    thread(4, 75, FILE),
    thread(4, 77, FILE),
    thread(4, 79, FILE),
    thread(4, 80, FILE),
    thread(4, 81, FILE),
    processes(6, 10, PID),
    processes(6, 11, PID),
    processes(6, 12, PID),
    processes(6, 13, PID),
    processes(6, 14, PID),
    processes(6, 15, PID),
    processes(6, 16, PID),
    processes(6, 17, PID),
    processes(6, 18, PID),
    processes(6, 26, PID),
    processes(6, 27, PID),
    processes(6, 28, PID),
    processes(6, 29, PID),
    processes(6, 30, PID),
    processes(6, 31, PID),
    processes(6, 32, PID),
    processes(6, 34, PID),
    processes(8, 10, PID),
    processes(8, 11, PID),
    processes(8, 17, PID),
    processes(8, 26, PID),
    processes(8, 27, PID),
    connection(10),
    connection(11),
    connection(12),
    connection(13),
    connection(14),
    connection(15),
    connection(16),
    connection(17),
    connection(18),
    connection(26),
    connection(27),
    connection(28),
    connection(29),
    connection(30),
    connection(31),
    connection(32),
    connection(34),
    connection(42),
    connection(43),
    connection(49),
    connection(58),
    connection(59),
    processes(2, 98, PROCESS),
    processes(2, 99, PROCESS),
    processes(2, 128, PROCESS),
    processes(3, 32, PROCESS),
    processes(3, 33, PROCESS),
    processes(0x11, 34, &["TargetProcessId", "SourceProcessId"]),
    processes(0x11, 38, PROCESS),
    processes(0x11, 39, PROCESS),
    Select::with(What::Kernel(0x11, 32), HANDLE, &["Handle"]),
    Select::with(What::Kernel(0x11, 33), HANDLE, &["Handle"]),
    Select::new(What::Kernel(2, 125), WORKING_SETS),
    Select::with(What::Manifest(WIN32K, 452), PROCESSES, OWNER),
    Select::with(What::Manifest(WIN32K, 453), PROCESSES, OWNER),
    Select::with(What::Manifest(WIN32K, 454), PROCESSES, OWNER),
    Select::with(What::Manifest(WIN32K, 455), PROCESSES, OWNER),
    Select::with(What::Manifest(WIN32K, 456), PROCESSES, OWNER),
    Select::with(What::Manifest(WIN32K, 457), PROCESSES, OWNER),
    Select::with(What::Manifest(WIN32K, 458), PROCESSES, OWNER),
    Select::new(What::Manifest(WIN32K, 2), MANIFEST_THREADS),
    Select::new(What::Manifest(WIN32K, 26), MANIFEST_PROCESSES),
    Select::new(What::Manifest(WIN32K, 35), MANIFEST_THREADS),
    Select::new(What::Manifest(WIN32K, 36), MANIFEST_THREADS),
    Select::new(What::Manifest(WIN32K, 45), MANIFEST_THREADS),
    Select::new(What::Manifest(KERNEL_POWER, 63), MANIFEST_PROCESSES),
    Select::new(What::Manifest(KERNEL_POWER, 97), MANIFEST_PROCESSES),
    Select::new(What::Manifest(WMI, 11), MANIFEST_PROCESSES),
];

/// Whom the payload of the event at hand names as the one whose it is, as far as it does.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Named {
    /// Thread id and instance.
    pub(crate) thread: Option<(u32, u32)>,
    /// Process instance.
    pub(crate) upid: Option<u32>,
}

pub(crate) fn event(event: &Event<'_>, cx: &mut Context<'_>) {
    let id = |field: usize| event.u64(field).map(|id| id as u32).filter(|&id| id != u32::MAX);
    match event.tag {
        THREAD => {
            let Some(tid) = id(0) else { return };
            // What says nothing of the process may still stand in a record that the thread wrote.
            let header = event.tid_pid().filter(|(of, _)| event.own_header && *of == tid);
            let pid = id(1).or(header.map(|(_, pid)| pid));
            let utid = cx.model.thread(tid, pid, event.ns);
            cx.model.named = Named { thread: Some((tid, utid)), upid: cx.model.upid_of(utid) };
        }
        PROCESSES => {
            for pid in [id(1), id(0)].into_iter().flatten() {
                cx.model.named.upid = Some(cx.model.processes.at(pid, event.ns));
            }
        }
        HANDLE => {
            if event.u64(0).is_some_and(|handle| handle & KERNEL_HANDLE != 0) {
                cx.model.processes.at(SYSTEM_PID, event.ns);
            }
        }
        WORKING_SETS => working_sets(event, cx),
        MANIFEST_PROCESSES => {
            let fields = event.fields();
            for name in ["Pid", "OldProcessId", "NewProcessId", "ClientProcessId"] {
                if let Some(pid) = fields.u32(name).filter(|&pid| pid != 0 && pid != u32::MAX) {
                    cx.model.processes.at(pid, event.ns);
                }
            }
        }
        _ => {
            let fields = event.fields();
            let pid = fields.u32("ProcessId");
            for (name, pid) in [("ThreadId", pid), ("OldThreadId", None), ("NewThreadId", None)] {
                if let Some(tid) = fields.u32(name).filter(|&tid| tid != 0 && tid != u32::MAX) {
                    cx.model.thread(tid, pid, event.ns);
                }
            }
        }
    }
}

/// The processes of a `MemInfoWS`, whose entries hold as many of the layout's counters as their size allows.
fn working_sets(event: &Event<'_>, cx: &mut Context<'_>) {
    let payload = event.record.payload();
    let count = payload.u32_at(0).and_then(|count| usize::try_from(count).ok());
    let entries = payload.get(4..).unwrap_or(&[]);
    let Some(size) = count.and_then(|count| entries.len().checked_div(count)) else { return };
    let width = event.pointer_size;
    let list = event.schema.and_then(|schema| schema.fields.iter().find(|f| &*f.name == "WsEntry"));
    let Some(list) = list else { return };
    let mut at = 0;
    for member in &list.members {
        let len = if member.in_type == InType::UInt32 { 4 } else { width };
        if &*member.name == "ProcessId" {
            for entry in entries.chunks_exact(size.max(1)).take(count.unwrap_or(0)) {
                if let Some(pid) = entry.ptr_at(at, len) {
                    cx.model.processes.at(pid as u32, event.ns);
                }
            }
        }
        at += len;
    }
}
