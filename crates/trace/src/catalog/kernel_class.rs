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
//! of the time happens once in e^20, and the pause before guards against classes that come in bursts.
//!
//! # What fools it
//! A session that somebody stops writes its rundown, and nobody can tell why it was stopped: `silent_ns` counts from
//! there. On a machine that sleeps everything is silent.

use crate::anomalies::KERNEL_CLASS_STOPPED;
use crate::engine::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event, Select, What};
use etwhy_base::Guid;
use etwhy_etl::Record;
use etwhy_etl::read::EtlFile;
use etwhy_table::{Sym, TableBuilder, define_table};

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
    ($($number:literal $name:literal $steady:literal { $($group:literal: $($op:literal)*;)* })*) => {
        /// Kernel flag, and whether its events never cease on a running machine.
        const CLASSES: &[(&str, bool)] = &[$(($name, $steady),)*];
        const SELECTS: &[Select] = &[
            $($($(Select::new(What::Kernel($group, $op), $number),)*)*)*
            Select::new(What::Kernel(3, 4), RUNDOWN),
            Select::new(What::AnyUser, USER),
        ];
    };
}

// Groups, types and flags as in the kernel layouts (`keywords.txt` and the groups' files).
classes! {
    0 "PROFILE" true { 0x0F: 46; }
    1 "SYSCALL" true { 0x0F: 51 52; }
    2 "DPC" true { 0x0F: 66 68 69 70; }
    3 "INTERRUPT" true { 0x0F: 50 67 95; }
    4 "CSWITCH" true { 0x05: 36; }
    5 "DISPATCHER" true { 0x05: 50; }
    6 "PROCESS" false { 0x03: 1 2; }
    7 "THREAD" false { 0x05: 1 2; }
    8 "LOADER" false { 0x14: 2 10; }
    9 "DISK_IO" false { 0x01: 10 11 14; }
    10 "DISK_IO_INIT" false { 0x01: 12 13 15; }
    11 "ALL_FAULTS" false { 0x02: 10 11 12 13 14 15; }
    12 "HARD_FAULTS" false { 0x02: 32; }
    13 "VIRT_ALLOC" false { 0x02: 98 99; }
    14 "FILENAME" false { 0x04: 0 32 35; }
    15 "FILE_IO" false { 0x04: 76; }
    16 "FILE_IO_INIT" false { 0x04: 64 65 66 67 68 69 70 71 72 73 74 75 77; }
    17 "NETWORKTRACE" false {
        0x06: 10 11 12 13 14 15 16 17 18 26 27 28 29 30 31 32 34;
        0x08: 10 11 17 26 27;
    }
    18 "REGISTRY" false { 0x09: 10 11 12 13 14 15 16 17 18 19 20 21 26 27 28 29; }
    19 "POOL" false { 0x0E: 32 33 34 35; }
    20 "OB_HANDLE" false { 0x11: 32 33 34; }
    21 "ALPC" false { 0x1A: 33 34 35 36 37; }
    22 "SPLIT_IO" false { 0x1B: 32; }
}

/// Whether a file seems to hold events of other classes than these. Looks at some of its buffers only.
pub fn seems_to_hold_others(file: &EtlFile, than: &[&str]) -> bool {
    let other = |record: &Record<'_>| {
        let what = What::Kernel(record.group(), record.opcode());
        let class = SELECTS.iter().find(|select| select.what == what).map(|select| usize::from(select.tag));
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

const LEAST_EVENTS: i64 = 100;
const LEAST_SHARE_PERCENT: i64 = 20;
const PAUSES: i64 = 10;

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
            let long = class.1
                && seen.events >= LEAST_EVENTS
                && silent > 0
                && silent >= whole / 100 * LEAST_SHARE_PERCENT
                && silent >= seen.pause.saturating_mul(PAUSES);
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
            let What::Kernel(group, _) = select.what else { continue };
            let Some((name, _)) = CLASSES.get(usize::from(select.tag)) else { continue };
            let known = etwhy_decode::kernel::keywords::keyword(name);
            assert!(known.is_some_and(|k| k.groups.contains(&group)), "{name} {group:#x}");
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
