//! Process instances: `Process` events, and every event that names a process id.

use super::living::Living;
use crate::event::fields::{Event, Fields};
use crate::event::select::{Select, What};
use etwhy_base::Guid;
use etwhy_decode::kernel::events;
use etwhy_etl::Ledger;
use etwhy_table::{Strings, Sym};
use foldhash::HashMap;

const START: u8 = events::Process::Start.opcode;
const END: u8 = events::Process::End.opcode;
const DC_START: u8 = events::Process::DCStart.opcode;
const DC_END: u8 = events::Process::DCEnd.opcode;
const DEFUNCT: u8 = events::Process::Defunct.opcode;
const MANIFEST_START: u8 = 101;
const MANIFEST_STOP: u8 = 102;
const MESSAGE_PUMP: u8 = 103;

/// `Microsoft-Windows-Kernel-Process`.
const KERNEL_PROCESS: Guid = Guid::from_text("22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716");

/// `Microsoft-Windows-Win32k`; its event 76 is `AppMessagePump/Start`.
const WIN32K: Guid = Guid::from_text("8c416c79-d49b-4f01-a467-e56d3aa8234c");

pub(crate) const SELECTS: &[Select] = &[
    Select::kernel(events::Process::Start, &[]),
    Select::kernel(events::Process::End, &[]),
    Select::kernel(events::Process::DCStart, &[]),
    Select::kernel(events::Process::DCEnd, &[]),
    Select::kernel(events::Process::Defunct, &[]),
    Select::new(What::Manifest(KERNEL_PROCESS, 1), MANIFEST_START),
    Select::new(What::Manifest(KERNEL_PROCESS, 2), MANIFEST_STOP),
    Select::new(What::Manifest(WIN32K, 76), MESSAGE_PUMP),
];

/// One process instance.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Parent's process id, as recorded.
    pub parent_pid: Option<u32>,
    /// Parent's instance.
    pub parent_upid: Option<u32>,
    /// Image name without path.
    pub name: Option<Sym>,
    /// Command line.
    pub command_line: Option<Sym>,
    /// User SID as text.
    pub user_sid: Option<Sym>,
    /// Store package.
    pub package: Option<Sym>,
    /// Terminal session.
    pub session_id: Option<i32>,
    /// Exit status, once ended.
    pub exit_status: Option<i32>,
    /// Address of its kernel object: unique while it lives.
    pub unique_key: u64,
    /// `ProcessFlags` of version 4 and later (bit 1: WOW64).
    pub flags: u32,
    /// First event that named it, ns.
    pub first_ns: i64,
    /// Last event that named it, ns.
    pub last_ns: i64,
    /// Start, if it happened in the trace.
    pub start_ns: Option<i64>,
    /// End, if it happened in the trace.
    pub end_ns: Option<i64>,
    /// When one of its threads asked for a window message for the first time.
    pub pump_ns: Option<i64>,
    /// Seen in a rundown or started: its facts are known.
    pub described: bool,
    /// Who told of its start: the kernel logger (bit 0), Microsoft-Windows-Kernel-Process (bit 1).
    started_by: u8,
}

/// Bits of `started_by`.
const BY_KERNEL: u8 = 1;
const BY_MANIFEST: u8 = 2;

/// All process instances; `upid` is the index.
#[derive(Clone, Debug, Default)]
pub struct Processes {
    all: Vec<Process>,
    by_pid: Living,
    /// An analysis is at work: what it looks up was named before.
    pub(crate) sealed: bool,
    /// Instances that an analysis made nevertheless.
    pub(crate) made_by_tables: u64,
}

impl Processes {
    /// The instance with process id `pid` at `ns`, made if it is new.
    #[inline]
    pub fn at(&mut self, pid: u32, ns: i64) -> u32 {
        if let Some(upid) = self.by_pid.find(pid) {
            if !self.sealed
                && let Some(process) = self.all.get_mut(upid as usize)
            {
                process.last_ns = process.last_ns.max(ns);
            }
            return upid;
        }
        self.add(pid, ns)
    }

    /// The instance in which something begins (a thread, an image): not one that has ended. If the start of its successor was lost, this is the
    /// first that is seen of that.
    pub(crate) fn living(&mut self, pid: u32, ns: i64) -> u32 {
        let current = self.by_pid.find(pid);
        let ended =
            current.and_then(|upid| self.get(upid)).is_some_and(|p| p.end_ns.is_some_and(|end| end < ns));
        if ended && !self.sealed { self.add(pid, ns) } else { self.at(pid, ns) }
    }

    #[cold]
    fn add(&mut self, pid: u32, ns: i64) -> u32 {
        let upid = self.all.len() as u32;
        self.made_by_tables += u64::from(self.sealed);
        self.all.push(Process { pid, first_ns: ns, last_ns: ns, ..Process::default() });
        self.by_pid.set(pid, upid);
        upid
    }

    /// The instance for a start or rundown of `pid`: what was seen under this id before belongs to it
    /// only if nothing says that it was another process.
    fn described(&mut self, pid: u32, key: u64, started_by: Option<u8>, ns: i64) -> u32 {
        let mut upid = self.at(pid, ns);
        let Some(process) = self.all.get(upid as usize) else { return upid };
        // Events may name a process shortly before its Start is logged; longer than that, it is a
        // predecessor whose end was not recorded.
        const LEAD_NS: i64 = 50_000_000;
        let recent = process.first_ns >= ns.saturating_sub(LEAD_NS);
        let other = match started_by {
            // Two providers tell of the same start.
            Some(by) if process.started_by != 0 => {
                process.started_by & by != 0 || process.end_ns.is_some() || !recent
            }
            Some(_) => process.start_ns.is_some() || process.described || !recent,
            None => {
                let known = process.described && process.unique_key != 0;
                process.end_ns.is_some() || (known && process.unique_key != key)
            }
        };
        if other {
            upid = self.add(pid, ns);
        }
        if let (Some(by), Some(process)) = (started_by, self.all.get_mut(upid as usize)) {
            process.started_by |= by;
        }
        upid
    }

    /// The instance that the event's header names.
    pub(crate) fn of_header(&mut self, event: &Event<'_>) -> Option<u32> {
        let pid = event.pid()?;
        if !event.own_header {
            return self.current(pid);
        }
        Some(self.at(pid, event.ns))
    }

    /// A process by its number.
    pub fn get(&self, upid: u32) -> Option<&Process> {
        self.all.get(upid as usize)
    }

    /// All, in the order of their numbers.
    pub fn all(&self) -> &[Process] {
        &self.all
    }

    /// The parent of each process: the instance that had the parent's id when the child was made. Children that
    /// ran before the trace had a parent that did so too, or none that is known.
    pub fn parents(&self) -> Vec<Option<u32>> {
        let mut by_pid: HashMap<u32, Vec<u32>> = HashMap::default();
        for (upid, process) in self.all.iter().enumerate() {
            by_pid.entry(process.pid).or_default().push(upid as u32);
        }
        let parent = |(upid, child): (usize, &Process)| {
            let candidates = by_pid.get(&child.parent_pid?)?;
            // Instances of one id follow each other in time.
            let before = |&other: &u32| {
                self.get(other).is_some_and(|p| match (p.start_ns, child.start_ns) {
                    (Some(parent), Some(child)) => parent <= child,
                    (Some(_), None) => false,
                    (None, _) => true,
                })
            };
            let ended = |other: u32| {
                let end = self.get(other).and_then(|p| p.end_ns);
                end.zip(child.start_ns).is_some_and(|(end, start)| end < start)
            };
            let found = candidates.iter().copied().filter(|&c| c != upid as u32).rfind(before)?;
            (!ended(found)).then_some(found)
        };
        self.all.iter().enumerate().map(parent).collect()
    }

    /// The living instance of a process id, if it was ever named.
    pub fn current(&self, pid: u32) -> Option<u32> {
        self.by_pid.get(pid)
    }
}

pub(crate) fn event(
    event: &Event<'_>,
    processes: &mut Processes,
    strings: &mut Strings,
    ledger: &mut Ledger,
) {
    let ns = event.ns;
    if event.tag == MESSAGE_PUMP {
        if let Some(upid) = processes.of_header(event)
            && let Some(process) = processes.all.get_mut(upid as usize)
        {
            process.pump_ns = process.pump_ns.or(Some(ns));
        }
        return;
    }
    let fields = event.fields();
    match event.tag {
        MANIFEST_START | MANIFEST_STOP => {
            let Some(pid) = fields.u32("ProcessID") else { return };
            let start = event.tag == MANIFEST_START;
            let upid = if start {
                processes.described(pid, 0, Some(BY_MANIFEST), ns)
            } else {
                processes.at(pid, ns)
            };
            let path = fields.text("ImageName");
            let name = strings.intern_non_empty(path.rsplit('\\').next().unwrap_or(&path));
            let Some(process) = processes.all.get_mut(upid as usize) else { return };
            process.name = process.name.or(name);
            if start {
                process.described = true;
                process.start_ns = process.start_ns.or(Some(ns));
                process.parent_pid = process.parent_pid.or(fields.u32("ParentProcessID"));
                process.session_id = process.session_id.or(fields.u32("SessionID").map(|s| s as i32));
            } else {
                process.end_ns = process.end_ns.or(Some(ns));
                process.exit_status =
                    process.exit_status.or(fields.u32("ExitCode|ExitStatus").map(|s| s as i32));
            }
        }
        DEFUNCT => {}
        tag => kernel(tag, &fields, ns, processes, strings, ledger),
    }
}

fn kernel(
    tag: u8,
    fields: &Fields<'_>,
    ns: i64,
    processes: &mut Processes,
    strings: &mut Strings,
    ledger: &mut Ledger,
) {
    let Some(pid) = fields.u32("ProcessId") else {
        ledger.count(&crate::anomalies::PAYLOAD_TOO_SHORT, 1);
        return;
    };
    let key = fields.u64("UniqueProcessKey|PageDirectoryBase");
    let upid = match tag {
        START => processes.described(pid, key, Some(BY_KERNEL), ns),
        DC_START | DC_END => processes.described(pid, key, None, ns),
        _ => processes.at(pid, ns),
    };
    let parent_pid = fields.u32("ParentId");
    let parent_upid = match parent_pid {
        Some(parent) if tag == START => Some(processes.at(parent, ns)),
        Some(parent) => processes.current(parent),
        None => None,
    };
    let name = strings.intern_non_empty(&fields.text("ImageFileName"));
    let command_line = strings.intern_non_empty(&fields.text("CommandLine"));
    let package = strings.intern_non_empty(&fields.text("PackageFullName"));
    let sid = match fields.get("UserSID") {
        Some(etwhy_decode::Value::Sid(sid)) => {
            let mut text = String::new();
            etwhy_decode::format::sid(&mut text, sid);
            text
        }
        _ => String::new(),
    };
    let user_sid = strings.intern_non_empty(&sid);
    let Some(process) = processes.all.get_mut(upid as usize) else { return };
    process.described = true;
    process.name = name.or(process.name);
    process.command_line = command_line.or(process.command_line);
    process.user_sid = user_sid.or(process.user_sid);
    process.package = package.or(process.package);
    process.parent_pid = parent_pid.or(process.parent_pid);
    process.parent_upid = process.parent_upid.or(parent_upid.filter(|&p| p != upid));
    process.session_id = fields.u32("SessionId").map(|s| s as i32).or(process.session_id);
    process.flags |= fields.u64("Flags") as u32;
    if key != 0 {
        process.unique_key = key;
    }
    match tag {
        START => process.start_ns = Some(ns),
        END => {
            process.end_ns = Some(ns);
            process.exit_status = fields.u32("ExitStatus").map(|s| s as i32);
        }
        _ => {}
    }
}

#[cfg(test)]
impl Processes {
    /// The process with this id ends.
    pub(crate) fn end(&mut self, pid: u32, ns: i64) {
        let upid = self.at(pid, ns);
        if let Some(process) = self.all.get_mut(upid as usize) {
            process.end_ns = Some(ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reused_pid_is_another_process() {
        let mut all = Processes::default();
        let first = all.at(40, 0);
        assert_eq!(all.at(40, 10), first);
        let second = all.described(40, 1, Some(BY_KERNEL), 1_000_000_000);
        assert_ne!(first, second);
        assert_eq!(all.at(40, 1_000_000_001), second);
    }

    #[test]
    fn events_shortly_before_the_start_belong_to_the_process() {
        let mut all = Processes::default();
        let early = all.at(7, 1_000_000_000);
        assert_eq!(all.described(7, 1, Some(BY_KERNEL), 1_010_000_000), early);
    }

    #[test]
    fn what_begins_under_an_ended_pid_belongs_to_its_successor() {
        let mut all = Processes::default();
        let first = all.described(40, 1, Some(BY_KERNEL), 0);
        all.end(40, 1_000);
        // The last events of a process come after its end.
        assert_eq!(all.at(40, 2_000), first);
        let second = all.living(40, 3_000);
        assert_ne!(first, second);
        assert_eq!(all.living(40, 4_000), second);
        // Its start follows, or was lost, and the rundown names it.
        assert_eq!(all.clone().described(40, 2, Some(BY_KERNEL), 5_000), second);
        assert_eq!(all.described(40, 2, None, 90_000_000_000), second);
    }

    #[test]
    fn a_rundown_names_what_was_seen_before() {
        let mut all = Processes::default();
        let early = all.at(7, 0);
        assert_eq!(all.described(7, 99, None, 90_000_000_000), early);
    }

    #[test]
    fn a_parent_lived_when_its_child_was_made() {
        let mut all = Processes::default();
        let set =
            |all: &mut Processes, upid: u32, parent: Option<u32>, start: Option<i64>, end: Option<i64>| {
                let p = &mut all.all[upid as usize];
                (p.parent_pid, p.start_ns, p.end_ns) = (parent, start, end);
            };
        let old_parent = all.add(10, 0);
        let old_child = all.add(11, 0);
        let young_parent = all.add(10, 500);
        let young_child = all.add(12, 600);
        let orphan = all.add(13, 0);
        set(&mut all, old_parent, Some(4), None, Some(400));
        set(&mut all, old_child, Some(10), None, None);
        set(&mut all, young_parent, Some(4), Some(500), None);
        set(&mut all, young_child, Some(10), Some(600), None);
        set(&mut all, orphan, Some(10), Some(450), None);
        let parents = all.parents();
        // The parent of the last one had ended: its id is only what the child remembers.
        assert_eq!(parents, [None, Some(old_parent), None, Some(young_parent), None]);
    }

    #[test]
    fn two_providers_tell_of_one_start() {
        let mut all = Processes::default();
        let first = all.described(7, 0, Some(BY_MANIFEST), 1_000);
        assert_eq!(all.described(7, 5, Some(BY_KERNEL), 2_000), first);
        let again = all.described(7, 6, Some(BY_KERNEL), 3_000);
        assert_ne!(again, first);
        assert_eq!(all.described(7, 0, Some(BY_MANIFEST), 4_000), again);
    }
}
