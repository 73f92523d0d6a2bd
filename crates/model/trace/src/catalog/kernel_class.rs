//! Classes of kernel events: from when to when each was delivered, and which stopped while the recording went on.
//!
//! There is one *NT Kernel Logger*. A program that starts it anew takes it from whoever had it, and one that changes
//! its flags changes them for everybody. The one who had it gets no error, only nothing more: this table shows the
//! moment.
//!
//! # How it is computed
//! Events are counted by the kernel flag that turns them on (`PROFILE`, `CSWITCH`, `SYSCALL`, ...). Rundowns, which
//! every session writes when it starts and stops, are left out. The recording ends where the kernel session itself
//! says so (its rundown of processes at the end, `DCEnd`), else with the last event of any kind that is no rundown.
//!
//! `stopped` judges only classes that never cease on a running Windows: timer samples, context switches, DPCs,
//! interrupts, system calls and ready threads. It is true if there were at least 100 events, the silence at the end
//! lasts at least 20 % of the recording and ten times as long as the longest pause before, and no buffers are
//! missing in that time. These three numbers are ours: after 100 events that come at random, a silence of a fifth
//! of the time happens once in e^20, and the pause before guards against classes that come in bursts. A silence at the start is
//! judged by the same numbers: the beginning was overwritten (circular recordings), or the kernel session began after others.
//! Rates and shares are of neither silence (`machine.observed_ns`).
//!
//! # What fools it
//! A session that somebody stops writes its rundown, and nobody can tell why it was stopped: `silent_ns` counts from
//! there. On a machine that sleeps everything is silent.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::KERNEL_CLASS_STOPPED;
use crate::event::{Context, Event, Select, What};
use crate::silence::is_silence;
use etwhy_base::Guid;
use etwhy_decode::kernel::events::{
    ALPC, DiskIo, FileIo, Image, Object, PageFault, PerfInfo, Pool, Process, Registry, SplitIo, TcpIp,
    Thread, UdpIp,
};
use etwhy_etl::Record;
use etwhy_etl::read::EtlFile;
use etwhy_table::{Rows, Sym, TableBuilder, define_table};

define_table! {
    /// Classes of kernel events that occur, by the flag that turns them on.
    pub table KERNEL_CLASS: KernelClassRow = "kernel_class" {
        version: 1, evidence: Documented,
        /// Kernel flag, as xperf names it.
        class: Sym [None, Name],
        /// Events.
        events: i64 [Count, Count],
        /// First one.
        first_ns: i64 [Ns, Time],
        /// Last one.
        last_ns: i64 [Ns, Time],
        /// From the last one to the end of the recording.
        silent_ns: i64 [Ns, Duration],
        /// Longest pause before the last one.
        pause_ns: i64 [Ns, Duration],
        /// When that pause began.
        pause_start_ns: Option<i64> [Ns, Time],
        /// It came all the time and then no more, while the recording went on.
        stopped: bool [None, Flag],
        /// Why, in words.
        reason: Option<Sym> [None, Message],
    }
}

macro_rules! classes {
    ($($number:literal $name:literal $steady:literal { $($group:ident: $($event:ident)*;)* })*) => {
        /// Kernel flag, and whether its events never cease on a running machine.
        const CLASSES: &[(&str, bool)] = &[$(($name, $steady),)*];
        const SELECTS: &[Select] = &[
            $($($(Select::new(What::Kernel($group::$event), $number),)*)*)*
            Select::new(What::Kernel(Process::DCEnd), RUNDOWN),
            Select::new(What::AnyUser, USER),
        ];
    };
}

// Flags as in the kernel layouts (`keywords.txt`).
classes! {
    0 "PROFILE" true { PerfInfo: SampledProfile; }
    1 "SYSCALL" true { PerfInfo: SysClEnter SysClExit; }
    2 "DPC" true { PerfInfo: ThreadedDPC DPC TimerDPC IOTimer; }
    3 "INTERRUPT" true { PerfInfo: ISR_MSI ISR ISR_PASS; }
    4 "CSWITCH" true { Thread: CSwitch; }
    5 "DISPATCHER" true { Thread: ReadyThread; }
    6 "PROCESS" false { Process: Start End; }
    7 "THREAD" false { Thread: Start End; }
    8 "LOADER" false { Image: UnLoad Load; }
    9 "DISK_IO" false { DiskIo: Read Write FlushBuffers; }
    10 "DISK_IO_INIT" false { DiskIo: ReadInit WriteInit FlushInit; }
    11 "ALL_FAULTS" false {
        PageFault: TransitionFault DemandZeroFault CopyOnWrite GuardPageFault HardPageFault AccessViolation;
    }
    12 "HARD_FAULTS" false { PageFault: HardFault; }
    13 "VIRT_ALLOC" false { PageFault: VirtualAlloc VirtualFree; }
    14 "FILENAME" false { FileIo: Name FileCreate FileDelete; }
    15 "FILE_IO" false { FileIo: OperationEnd; }
    16 "FILE_IO_INIT" false {
        FileIo: Create Cleanup Close Read Write SetInfo Delete Rename DirEnum Flush QueryInfo FSControl DirNotify;
    }
    17 "NETWORKTRACE" false {
        TcpIp: SendIPV4 RecvIPV4 ConnectIPV4 DisconnectIPV4 RetransmitIPV4 AcceptIPV4 ReconnectIPV4 TCPCopyIPV4
            SendIPV6 RecvIPV6 ConnectIPV6 DisconnectIPV6 RetransmitIPV6 AcceptIPV6 ReconnectIPV6 TCPCopyIPV6 Fail;
        UdpIp: SendIPV4 RecvIPV4 Fail SendIPV6 RecvIPV6;
    }
    18 "REGISTRY" false {
        Registry: Create Open Delete Query SetValue DeleteValue QueryValue EnumerateKey EnumerateValueKey
            QueryMultipleValue SetInformation Flush Virtualize Close SetSecurity QuerySecurity;
    }
    19 "POOL" false { Pool: PoolAllocation SessionPoolAllocation PoolFree SessionPoolFree; }
    20 "OB_HANDLE" false { Object: CreateHandle CloseHandle DuplicateHandle; }
    21 "ALPC" false {
        ALPC: ALPC_Send_Message ALPC_Receive_Message ALPC_Wait_For_Reply ALPC_Wait_For_New_Message ALPC_Unwait;
    }
    22 "SPLIT_IO" false { SplitIo: VolMgr; }
}

/// Whether a file seems to hold events of other classes than these. Looks at some of its buffers only.
pub fn seems_to_hold_others(file: &EtlFile, than: &[&str]) -> bool {
    let other = |record: &Record<'_>| {
        let logged = (record.group(), record.opcode());
        let is = |select: &&Select| matches!(select.what, What::Kernel(e) if (e.group, e.opcode) == logged);
        let class = SELECTS.iter().find(is).map(|select| usize::from(select.tag));
        class.and_then(|class| CLASSES.get(class)).is_some_and(|(name, _)| !than.contains(name))
    };
    let mut found = false;
    file.sample(LOOKED_AT, LOOKED_AT, |record| found = found || (record.kind.is_system() && other(record)));
    found
}

/// Buffers that are looked at at each end, and between.
const LOOKED_AT: usize = 64;

const RUNDOWN: u8 = 254;
const USER: u8 = 255;

/// Providers whose events are rundowns of what was before, written when a recording ends.
const RUNDOWN_PROVIDERS: [Guid; 3] = [
    // Microsoft-Windows-DotNETRuntimeRundown, the private runtime's twin, JScript's rundown.
    Guid::from_text("a669021c-c450-4609-a035-5af59af4df18"),
    Guid::from_text("763fd754-7086-4dfe-95eb-c01a46faf4ca"),
    Guid::from_text("57277741-3638-4a4b-bdba-0ac6e45da56c"),
];

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&KERNEL_CLASS],
    selects: SELECTS,
    stacks: false,
    on_demand: false,
    new: |memory| {
        Box::new(Classes {
            rows: TableBuilder::new(memory),
            seen: CLASSES.iter().map(|_| Seen::default()).collect(),
            rundown: None,
            user: None,
        })
    },
};

#[derive(Clone, Copy, Default)]
struct Seen {
    events: i64,
    first: i64,
    last: i64,
    pause: i64,
    pause_start: Option<i64>,
}

struct Classes {
    rows: TableBuilder<KernelClassRow>,
    seen: Vec<Seen>,
    /// First event of the rundown of processes at the end.
    rundown: Option<i64>,
    /// Last event of a user session that is no rundown.
    user: Option<i64>,
}

/// For how long no kernel events came at the start of a trace, ns: what was `stopped` at the end, at the other end. `span_ns`: first and last
/// event of the trace.
pub fn late_ns(classes: &Rows<'_, KernelClassRow>, span_ns: (i64, i64)) -> i64 {
    let late = |first_ns: i64| first_ns.saturating_sub(span_ns.0).max(0);
    let whole = span_ns.1.saturating_sub(span_ns.0);
    let steady = |name: &str| CLASSES.iter().any(|class| class.1 && class.0 == name);
    let began_late = classes.iter().any(|class| {
        steady(class.class()) && is_silence(late(class.first_ns()), whole, class.events(), class.pause_ns())
    });
    // Where others were recorded before, the session was there.
    let all = classes.iter().map(|class| late(class.first_ns())).min().unwrap_or(0);
    if began_late { all } else { 0 }
}

impl Analysis for Classes {
    #[inline]
    fn event(&mut self, event: &Event<'_>, _: &mut Context<'_>) {
        match event.tag {
            RUNDOWN => self.rundown = self.rundown.or(Some(event.ns)),
            USER => {
                let rundown = event.record.guid().is_some_and(|guid| RUNDOWN_PROVIDERS.contains(&guid));
                if !rundown {
                    self.user = Some(event.ns);
                }
            }
            class => {
                if let Some(seen) = self.seen.get_mut(usize::from(class)) {
                    seen.add(event.ns);
                }
            }
        }
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let occurring = || self.seen.iter().filter(|s| s.events > 0);
        let first = occurring().map(|s| s.first).min().unwrap_or(0);
        let kernel = occurring().map(|s| s.last).max().unwrap_or(0);
        let stop = self.rundown.unwrap_or_else(|| kernel.max(self.user.unwrap_or(i64::MIN)));
        let whole = stop.saturating_sub(first);
        let all_silent_from = kernel;
        let mut stopped_classes = Vec::new();
        for (class, seen) in CLASSES.iter().zip(&self.seen).filter(|(_, s)| s.events > 0) {
            let silent = stop.saturating_sub(seen.last).max(0);
            let long = class.1 && is_silence(silent, whole, seen.events, seen.pause);
            let lost = long && end.model.cpus.doubtful(seen.last, stop);
            let reason = long.then(|| {
                let seconds = |ns: i64| ns as f64 / 1e9;
                let share = silent.saturating_mul(100).checked_div(whole).unwrap_or(0);
                let mut text = format!(
                    "silent for the last {:.3} s ({share} %), before at most for {:.3} s",
                    seconds(silent),
                    seconds(seen.pause)
                );
                if lost {
                    text.push_str("; buffers are missing there, which may be all");
                } else if all_silent_from.saturating_sub(seen.last) > silent / 2 {
                    text.push_str("; other kernel events go on");
                } else {
                    text.push_str("; all kernel events stop there, those of other sessions go on");
                }
                text
            });
            let stopped = long && !lost;
            if stopped {
                stopped_classes.push(class.0);
            }
            self.rows.push(KernelClassRow {
                class: end.strings.intern(class.0),
                events: seen.events,
                first_ns: seen.first,
                last_ns: seen.last,
                silent_ns: silent,
                pause_ns: seen.pause,
                pause_start_ns: seen.pause_start,
                stopped,
                reason: reason.map(|r| end.strings.intern(&r)),
            });
        }
        if !stopped_classes.is_empty() {
            let text = stopped_classes.join(", ");
            end.ledger.note(&KERNEL_CLASS_STOPPED, stopped_classes.len() as u64, || text);
        }
        Ok(vec![self.rows.into()])
    }
}

impl Seen {
    #[inline]
    fn add(&mut self, ns: i64) {
        if self.events == 0 {
            self.first = ns;
        } else {
            let pause = ns.saturating_sub(self.last);
            if pause > self.pause {
                (self.pause, self.pause_start) = (pause, Some(self.last));
            }
        }
        self.last = self.last.max(ns);
        self.events += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_flags_of_their_groups() {
        let mut classes = 0;
        for select in SELECTS {
            let What::Kernel(event) = select.what else { continue };
            let Some((name, _)) = CLASSES.get(usize::from(select.tag)) else { continue };
            let known = etwhy_decode::kernel::keywords::keyword(name);
            assert!(known.is_some_and(|k| k.groups.contains(&event.group)), "{name} {event:?}");
            classes = classes.max(usize::from(select.tag) + 1);
        }
        assert_eq!(classes, CLASSES.len());
    }

    #[test]
    fn the_longest_pause_is_kept() {
        let mut seen = Seen::default();
        [5, 6, 20, 21].into_iter().for_each(|ns| seen.add(ns));
        assert_eq!((seen.events, seen.first, seen.last), (4, 5, 21));
        assert_eq!((seen.pause, seen.pause_start), (14, Some(6)));
    }
}
