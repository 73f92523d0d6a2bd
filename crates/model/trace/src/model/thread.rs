//! Thread instances: `Thread` events, and every event that names a thread id.

use super::living::Living;
use super::process::Processes;
use crate::event::fields::{Event, Fields};
use crate::event::select::{Select, What};
use etwhy_base::Guid;
use etwhy_decode::kernel::events;
use etwhy_etl::Ledger;
use etwhy_table::{Strings, Sym};

const START: u8 = events::Thread::Start.opcode;
const END: u8 = events::Thread::End.opcode;
const DC_START: u8 = events::Thread::DCStart.opcode;
const DC_END: u8 = events::Thread::DCEnd.opcode;
const TAG_CHANGED: u8 = events::Thread::SubProcessTagChanged.opcode;
const SET_NAME: u8 = events::Thread::SetName.opcode;
const MANIFEST_START: u8 = 103;
const MANIFEST_STOP: u8 = 104;

/// `Microsoft-Windows-Kernel-Process`.
const KERNEL_PROCESS: Guid = Guid::from_text("22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716");

pub(crate) const SELECTS: &[Select] = &[
    Select::kernel(events::Thread::Start, &[]),
    Select::kernel(events::Thread::End, &[]),
    Select::kernel(events::Thread::DCStart, &[]),
    Select::kernel(events::Thread::DCEnd, &[]),
    Select::kernel(events::Thread::SetName, &[]),
    Select::kernel(events::Thread::SubProcessTagChanged, &[]),
    Select::new(What::Manifest(KERNEL_PROCESS, 3), MANIFEST_START),
    Select::new(What::Manifest(KERNEL_PROCESS, 4), MANIFEST_STOP),
];

/// One thread instance.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// Thread id. 0 stands for the idle threads of all processors.
    pub tid: u32,
    /// Its process, once anybody named it.
    pub upid: Option<u32>,
    /// Description set by `SetThreadDescription`.
    pub name: Option<Sym>,
    /// Start address given by the program.
    pub start_address: u64,
    /// Tags of the services that it worked for (`SubProcessTag`), in order, each once.
    pub service_tags: Vec<u32>,
    /// Base priority, where recorded.
    pub base_priority: Option<i32>,
    /// First event that named it, ns.
    pub first_ns: i64,
    /// Last event that named it, ns.
    pub last_ns: i64,
    /// Start, if it happened in the trace.
    pub start_ns: Option<i64>,
    /// End, if it happened in the trace.
    pub end_ns: Option<i64>,
    /// Started or seen in a rundown.
    pub described: bool,
    /// Who told of its start, as with processes.
    started_by: u8,
}

/// Services that one thread may have worked for and still be told about: those of a thread pool are few.
const MAX_TAGS: usize = 64;

impl Thread {
    fn add_tag(&mut self, tag: u32) {
        if tag != 0 && !self.service_tags.contains(&tag) && self.service_tags.len() < MAX_TAGS {
            self.service_tags.push(tag);
        }
    }
}

/// Bits of `started_by`.
const BY_KERNEL: u8 = 1;
const BY_MANIFEST: u8 = 2;

/// Events may name a thread shortly before its start is logged, and two providers tell of one end shortly
/// after each other; longer than that, it is another thread with the same id.
const LEAD_NS: i64 = 50_000_000;

/// All thread instances; `utid` is the index.
#[derive(Clone, Debug, Default)]
pub struct Threads {
    all: Vec<Thread>,
    by_tid: Living,
    /// An analysis is at work: what it looks up was named before.
    pub(crate) sealed: bool,
    /// Instances that an analysis made nevertheless.
    pub(crate) made_by_tables: u64,
}

impl Threads {
    /// The instance with thread id `tid` at `ns`, made if it is new. `pid` binds it to its process.
    #[inline]
    pub fn at(&mut self, tid: u32, pid: Option<u32>, ns: i64, processes: &mut Processes) -> u32 {
        // The idle threads have id 0 on every processor and belong to process 0.
        let pid = if tid == 0 { Some(0) } else { pid };
        if let Some(utid) = self.by_tid.find(tid)
            && let Some(thread) = self.all.get_mut(utid as usize)
        {
            if self.sealed {
                return utid;
            }
            thread.last_ns = thread.last_ns.max(ns);
            match (pid, thread.upid) {
                (None, Some(_)) => return utid,
                (None, None) => return utid,
                (Some(pid), None) => {
                    thread.upid = Some(processes.at(pid, ns));
                    return utid;
                }
                (Some(pid), Some(upid)) => {
                    // A thread that is known to be another process's cannot be this one, unless its
                    // process is known from a rundown: header ids of some events lie, rundowns do not.
                    if thread.described || processes.get(upid).is_some_and(|p| p.pid == pid) {
                        return utid;
                    }
                }
            }
        }
        self.add(tid, pid.map(|pid| processes.at(pid, ns)), ns)
    }

    #[cold]
    fn add(&mut self, tid: u32, upid: Option<u32>, ns: i64) -> u32 {
        let utid = self.all.len() as u32;
        self.made_by_tables += u64::from(self.sealed);
        self.all.push(Thread { tid, upid, first_ns: ns, last_ns: ns, ..Thread::default() });
        self.by_tid.set(tid, utid);
        utid
    }

    /// The instance for a start or a rundown.
    fn described(
        &mut self,
        tid: u32,
        pid: u32,
        started_by: Option<u8>,
        ns: i64,
        processes: &mut Processes,
    ) -> u32 {
        let upid = if started_by.is_some() { processes.living(pid, ns) } else { processes.at(pid, ns) };
        if tid != 0
            && let Some(utid) = self.by_tid.find(tid)
            && let Some(thread) = self.all.get(utid as usize)
        {
            let other_process = thread.upid.is_some_and(|u| u != upid);
            let recent = thread.first_ns >= ns.saturating_sub(LEAD_NS);
            let other = match started_by {
                // Two providers tell of the same start.
                Some(by) if thread.started_by != 0 => {
                    thread.started_by & by != 0 || thread.end_ns.is_some() || !recent || other_process
                }
                Some(_) => thread.described || !recent || other_process,
                None => thread.end_ns.is_some() || (thread.described && other_process),
            };
            let utid = if other { self.add(tid, Some(upid), ns) } else { utid };
            if let Some(thread) = self.all.get_mut(utid as usize) {
                thread.upid = Some(upid);
                thread.last_ns = thread.last_ns.max(ns);
                thread.started_by |= started_by.unwrap_or(0);
            }
            return utid;
        }
        let utid = self.at(tid, Some(pid), ns, processes);
        if let Some(thread) = self.all.get_mut(utid as usize) {
            thread.started_by |= started_by.unwrap_or(0);
        }
        utid
    }

    /// The instance that the event's header names.
    pub(crate) fn of_header(&mut self, event: &Event<'_>, processes: &mut Processes) -> Option<u32> {
        let (tid, pid) = event.tid_pid()?;
        if !event.own_header {
            // The process may be that of which the event speaks, and the thread the one which wrote it.
            let of_process = |&utid: &u32| {
                let upid = self.upid_of(utid);
                upid.is_some() && upid == processes.current(pid)
            };
            return self.current(tid).filter(of_process);
        }
        Some(self.at(tid, Some(pid), event.ns, processes))
    }

    /// The process of an instance, if anybody has named it so far.
    #[inline]
    pub(crate) fn upid_of(&self, utid: u32) -> Option<u32> {
        self.get(utid).and_then(|t| t.upid)
    }

    /// A thread by its number.
    #[inline]
    pub fn get(&self, utid: u32) -> Option<&Thread> {
        self.all.get(utid as usize)
    }

    /// All, in the order of their numbers.
    pub fn all(&self) -> &[Thread] {
        &self.all
    }

    /// The living instance of a thread id, if it was ever named.
    pub fn current(&self, tid: u32) -> Option<u32> {
        self.by_tid.get(tid)
    }
}

/// `running`: the thread that runs on the processor of the event.
pub(crate) fn event(
    event: &Event<'_>,
    threads: &mut Threads,
    processes: &mut Processes,
    running: Option<u32>,
    strings: &mut Strings,
    ledger: &mut Ledger,
) {
    let fields = event.fields();
    let ns = event.ns;
    if event.tag == TAG_CHANGED {
        tag_changed(event, &fields, threads, processes, running);
        return;
    }
    let (Some(pid), Some(tid)) =
        (fields.u32("ProcessId|ProcessID"), fields.u32("TThreadId|ThreadId|ThreadID"))
    else {
        ledger.count(&crate::anomalies::PAYLOAD_TOO_SHORT, 1);
        return;
    };
    let utid = match event.tag {
        START => threads.described(tid, pid, Some(BY_KERNEL), ns, processes),
        MANIFEST_START => threads.described(tid, pid, Some(BY_MANIFEST), ns, processes),
        DC_START | DC_END => threads.described(tid, pid, None, ns, processes),
        // End: the thread lived until now under this process, whatever was believed before.
        _ => {
            let utid = threads.at(tid, Some(pid), ns, processes);
            let ended = threads.get(utid).and_then(|t| t.end_ns);
            if ended.is_some_and(|end| end < ns.saturating_sub(LEAD_NS)) {
                threads.add(tid, Some(processes.at(pid, ns)), ns)
            } else {
                utid
            }
        }
    };
    let name = strings.intern_non_empty(&fields.text("ThreadName"));
    let Some(thread) = threads.all.get_mut(utid as usize) else { return };
    thread.name = name.or(thread.name);
    match event.tag {
        START | MANIFEST_START => thread.start_ns = thread.start_ns.or(Some(ns)),
        END | MANIFEST_STOP => thread.end_ns = thread.end_ns.or(Some(ns)),
        _ => {}
    }
    if event.tag != SET_NAME {
        thread.described = true;
        let start = fields.u64("Win32StartAddr|StartAddr");
        if start != 0 {
            thread.start_address = start;
        }
        thread.add_tag(fields.u64("SubProcessTag") as u32);
        thread.base_priority = fields.i64("BasePriority").map(|p| p as i32).or(thread.base_priority);
    }
}

/// `SubProcessTagChanged` speaks of the thread that runs: the header names it, or nobody but the last switch does.
fn tag_changed(
    event: &Event<'_>,
    fields: &Fields<'_>,
    threads: &mut Threads,
    processes: &mut Processes,
    running: Option<u32>,
) {
    let utid = match event.tid_pid() {
        Some((tid, pid)) => Some(threads.at(tid, Some(pid), event.ns, processes)),
        None => running,
    };
    let thread = utid.and_then(|u| threads.all.get_mut(u as usize)).filter(|t| t.tid != 0);
    if let Some(thread) = thread {
        thread.add_tag(fields.u64("OldTag") as u32);
        thread.add_tag(fields.u64("NewTag") as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_names_bind_to_earlier_events() {
        let (mut threads, mut processes) = (Threads::default(), Processes::default());
        let utid = threads.at(12, None, 5, &mut processes);
        assert_eq!(threads.get(utid).and_then(|t| t.upid), None);
        let same = threads.described(12, 3, None, 900, &mut processes);
        assert_eq!(utid, same);
        assert_eq!(threads.get(utid).and_then(|t| t.upid), processes.current(3));
    }

    #[test]
    fn a_reused_tid_is_another_thread() {
        let (mut threads, mut processes) = (Threads::default(), Processes::default());
        let first = threads.described(12, 3, Some(BY_KERNEL), 0, &mut processes);
        let second = threads.described(12, 4, Some(BY_KERNEL), 1_000, &mut processes);
        assert_ne!(first, second);
        assert_eq!(threads.at(12, None, 2_000, &mut processes), second);
    }

    #[test]
    fn a_thread_does_not_start_in_a_process_that_has_ended() {
        let (mut threads, mut processes) = (Threads::default(), Processes::default());
        let first = threads.described(12, 3, Some(BY_KERNEL), 0, &mut processes);
        processes.end(3, 500);
        let second = threads.described(16, 3, Some(BY_KERNEL), 1_000, &mut processes);
        assert_ne!(threads.upid_of(first), threads.upid_of(second));
    }

    #[test]
    fn two_providers_tell_of_one_start() {
        let (mut threads, mut processes) = (Threads::default(), Processes::default());
        let first = threads.described(12, 3, Some(BY_MANIFEST), 0, &mut processes);
        assert_eq!(threads.described(12, 3, Some(BY_KERNEL), 900, &mut processes), first);
        assert_ne!(threads.described(12, 3, Some(BY_KERNEL), 1_800, &mut processes), first);
    }
}
