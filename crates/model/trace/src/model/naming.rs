//! Who is named by payloads: threads and processes that events speak of, besides their writers.
//!
//! An instance of a process or thread gets its number from the first event that names it. Trackers alone make
//! instances, and they see all events whatever is asked, so that numbers are a function of the trace. An analysis that
//! looks up a process or thread by a payload's id needs a line here.

use super::process::Processes;
use super::thread::Threads;
use crate::event::fields::Event;
use crate::event::select::{Select, What};
use etwhy_base::{Bytes, Guid};
use etwhy_decode::kernel::KernelEvent;
use etwhy_decode::kernel::events::{
    DiskIo, FileIo, Object, PageFault, PerfInfo, Process, StackWalk, TcpIp, UdpIp,
};
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

const fn thread(event: KernelEvent, fields: &'static [&'static str]) -> Select {
    Select::with(What::Kernel(event), THREAD, fields)
}

const fn processes(event: KernelEvent, fields: &'static [&'static str]) -> Select {
    Select::with(What::Kernel(event), PROCESSES, fields)
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
    thread(PerfInfo::SampledProfile, &["ThreadId"]),
    thread(StackWalk::Stack, STACK),
    thread(StackWalk::StackKeyKernel, STACK),
    thread(StackWalk::StackKeyUser, STACK),
    thread(PageFault::HardFault, &["TThreadId"]),
    thread(DiskIo::Read, ISSUER),
    thread(DiskIo::Write, ISSUER),
    thread(DiskIo::ReadInit, ISSUER),
    thread(DiskIo::WriteInit, ISSUER),
    thread(DiskIo::FlushBuffers, ISSUER),
    thread(DiskIo::FlushInit, ISSUER),
    thread(DiskIo::OpticalRead, ISSUER),
    thread(DiskIo::OpticalWrite, ISSUER),
    thread(DiskIo::OpticalFlushBuffers, ISSUER),
    thread(DiskIo::OpticalReadInit, ISSUER),
    thread(DiskIo::OpticalWriteInit, ISSUER),
    thread(DiskIo::OpticalFlushInit, ISSUER),
    thread(FileIo::Create, FILE),
    thread(FileIo::Cleanup, FILE),
    thread(FileIo::Close, FILE),
    thread(FileIo::Read, FILE),
    thread(FileIo::Write, FILE),
    thread(FileIo::SetInfo, FILE),
    thread(FileIo::Delete, FILE),
    thread(FileIo::Rename, FILE),
    thread(FileIo::DirEnum, FILE),
    thread(FileIo::Flush, FILE),
    thread(FileIo::QueryInfo, FILE),
    thread(FileIo::FSControl, FILE),
    thread(FileIo::DirNotify, FILE),
    thread(FileIo::DeletePath, FILE),
    thread(FileIo::RenamePath, FILE),
    thread(FileIo::SetLinkPath, FILE),
    processes(TcpIp::SendIPV4, PID),
    processes(TcpIp::RecvIPV4, PID),
    processes(TcpIp::ConnectIPV4, PID),
    processes(TcpIp::DisconnectIPV4, PID),
    processes(TcpIp::RetransmitIPV4, PID),
    processes(TcpIp::AcceptIPV4, PID),
    processes(TcpIp::ReconnectIPV4, PID),
    processes(TcpIp::Fail, PID),
    processes(TcpIp::TCPCopyIPV4, PID),
    processes(TcpIp::SendIPV6, PID),
    processes(TcpIp::RecvIPV6, PID),
    processes(TcpIp::ConnectIPV6, PID),
    processes(TcpIp::DisconnectIPV6, PID),
    processes(TcpIp::RetransmitIPV6, PID),
    processes(TcpIp::AcceptIPV6, PID),
    processes(TcpIp::ReconnectIPV6, PID),
    processes(TcpIp::TCPCopyIPV6, PID),
    processes(UdpIp::SendIPV4, PID),
    processes(UdpIp::RecvIPV4, PID),
    processes(UdpIp::Fail, PID),
    processes(UdpIp::SendIPV6, PID),
    processes(UdpIp::RecvIPV6, PID),
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
    processes(PageFault::VirtualAlloc, PROCESS),
    processes(PageFault::VirtualFree, PROCESS),
    processes(PageFault::VirtualAllocDCStart, PROCESS),
    processes(Process::PerfCtr, PROCESS),
    processes(Process::PerfCtrRundown, PROCESS),
    processes(Object::DuplicateHandle, &["TargetProcessId", "SourceProcessId"]),
    processes(Object::HandleDCStart, PROCESS),
    processes(Object::HandleDCEnd, PROCESS),
    Select::with(What::Kernel(Object::CreateHandle), HANDLE, &["Handle"]),
    Select::with(What::Kernel(Object::CloseHandle), HANDLE, &["Handle"]),
    Select::new(What::Kernel(PageFault::MemInfoWS), WORKING_SETS),
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

pub(crate) fn event(event: &Event<'_>, named: &mut Named, threads: &mut Threads, processes: &mut Processes) {
    let id = |field: usize| event.u64(field).map(|id| id as u32).filter(|&id| id != u32::MAX);
    match event.tag {
        THREAD => {
            let Some(tid) = id(0) else { return };
            // What says nothing of the process may still stand in a record that the thread wrote.
            let header = event.tid_pid().filter(|(of, _)| event.own_header && *of == tid);
            let pid = id(1).or(header.map(|(_, pid)| pid));
            let utid = threads.at(tid, pid, event.ns, processes);
            *named = Named { thread: Some((tid, utid)), upid: threads.upid_of(utid) };
        }
        PROCESSES => {
            for pid in [id(1), id(0)].into_iter().flatten() {
                named.upid = Some(processes.at(pid, event.ns));
            }
        }
        HANDLE => {
            if event.u64(0).is_some_and(|handle| handle & KERNEL_HANDLE != 0) {
                processes.at(SYSTEM_PID, event.ns);
            }
        }
        WORKING_SETS => working_sets(event, processes),
        MANIFEST_PROCESSES => {
            let fields = event.fields();
            for name in ["Pid", "OldProcessId", "NewProcessId", "ClientProcessId"] {
                if let Some(pid) = fields.u32(name).filter(|&pid| pid != 0 && pid != u32::MAX) {
                    processes.at(pid, event.ns);
                }
            }
        }
        _ => {
            let fields = event.fields();
            let pid = fields.u32("ProcessId");
            for (name, pid) in [("ThreadId", pid), ("OldThreadId", None), ("NewThreadId", None)] {
                if let Some(tid) = fields.u32(name).filter(|&tid| tid != 0 && tid != u32::MAX) {
                    threads.at(tid, pid, event.ns, processes);
                }
            }
        }
    }
}

/// The processes of a `MemInfoWS`, whose entries hold as many of the layout's counters as their size allows.
fn working_sets(event: &Event<'_>, processes: &mut Processes) {
    let payload = event.payload;
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
                    processes.at(pid as u32, event.ns);
                }
            }
        }
        at += len;
    }
}
