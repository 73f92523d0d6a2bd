//! Processors: which thread runs on each, and what interrupts it.
//!
//! Many kernel events (`SysCallEnter`, `DPC`, `ISR`, `ReadyThread`, page faults of the memory manager) carry no
//! thread. They belong to whoever the last `CSwitch` put on their processor. Where buffers are missing the
//! answer is *unknown* until the next switch; a guess would blame the wrong program.
//!
//! DPCs and ISRs are logged when they end, an inner one therefore before the one that it interrupted. What ends
//! takes back all that began after it did: those lay inside.

mod gaps;

use super::process::Processes;
use super::thread::Threads;
use crate::anomalies::{PAYLOAD_TOO_SHORT, PROCESSORS_UNKNOWN, RUNNING_FORGOTTEN, SWITCHES_MISSED};
use crate::event::fields::Event;
use crate::event::select::{Select, What};
use crate::event::span::{self, INTERRUPT_BEFORE_NS};
use crate::silence::is_silence;
use etwhy_decode::kernel::events::{PerfInfo, Thread};
use etwhy_etl::Ledger;
use etwhy_etl::abi::logfile::{MODE_CIRCULAR, MODE_NO_PER_PROCESSOR_BUFFERING};
use etwhy_etl::read::{EtlFile, Timeline};
use std::collections::BTreeMap;

const CSWITCH: u8 = Thread::CSwitch.opcode;
const DPC: u8 = PerfInfo::DPC.opcode;
const THREADED_DPC: u8 = PerfInfo::ThreadedDPC.opcode;
const ISR: u8 = PerfInfo::ISR.opcode;

const INTERRUPT: &[&str] = &["InitialTime", "Routine"];

pub(crate) const SELECTS: &[Select] = &[
    Select::kernel(Thread::CSwitch, &["NewThreadId", "OldThreadId"]),
    Select::kernel(PerfInfo::ThreadedDPC, INTERRUPT),
    Select::kernel(PerfInfo::DPC, INTERRUPT),
    Select::with(What::Kernel(PerfInfo::TimerDPC), DPC, INTERRUPT),
    Select::with(What::Kernel(PerfInfo::IOTimer), DPC, INTERRUPT),
    Select::kernel(PerfInfo::ISR, INTERRUPT),
    // ISR-PASS runs at passive level in a thread of the system, which can be switched out: like a threaded DPC.
    Select::with(What::Kernel(PerfInfo::ISR_PASS), THREADED_DPC, INTERRUPT),
    Select::with(What::Kernel(PerfInfo::ISR_MSI), ISR, INTERRUPT),
];

/// A thread on a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// Thread id; 0 is the processor's idle thread.
    pub tid: u32,
    /// Its instance.
    pub utid: u32,
    /// When it was switched in, ns.
    pub since_ns: i64,
    /// What [`Cpus::interrupted_ns`] was then.
    pub interrupted_ns: i64,
}

/// A DPC or ISR that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interrupt {
    /// When it began, ns.
    pub start_ns: i64,
    /// When it ended, ns.
    pub end_ns: i64,
    /// Time in DPCs and ISRs that interrupted it.
    pub nested_ns: i64,
    /// How many interrupted it directly.
    pub nested: u32,
}

impl Interrupt {
    /// From begin to end.
    pub fn inclusive_ns(&self) -> i64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// Without what interrupted it.
    pub fn exclusive_ns(&self) -> i64 {
        self.inclusive_ns().saturating_sub(self.nested_ns).max(0)
    }
}

#[derive(Clone, Debug, Default)]
struct Cpu {
    running: Option<Running>,
    /// What the last switch replaced.
    replaced: Option<Running>,
    /// Interrupts that have ended and lie in none that has ended, the latest last.
    ended: Vec<Interrupt>,
    /// Time in interrupts that were taken off `ended`.
    settled_ns: i64,
    /// Time in those on it.
    open_ns: i64,
    last: Interrupt,
    /// Routines of the interrupts since the last switch, with their time; the longest ones if there are many.
    routines: Vec<(u64, i64)>,
    /// The one that took most of the run that the last switch has ended.
    replaced_routine: Option<u64>,
    /// Ends of gaps, latest first.
    gap_ends: Vec<i64>,
    /// When it switched last: gaps before that are behind it.
    switched_ns: Option<i64>,
    /// Its stretches of time that lack records: sorted, without overlap.
    gaps: Vec<(i64, i64)>,
}

/// All processors.
#[derive(Clone, Debug, Default)]
pub struct Cpus {
    list: Vec<Cpu>,
    /// Stretches of time in which some processor lacks records: sorted, without overlap.
    gaps: Vec<(i64, i64)>,
    /// The same by processor: processor, begin, end; without what a circular recording has overwritten before a processor's first buffer.
    gaps_of: Vec<(u16, i64, i64)>,
    /// When it was noticed last that a context switch is missing.
    missed_until_ns: Option<i64>,
    /// Files whose buffers are shared by all processors: their records do not say on which one they were made.
    mixed: Vec<bool>,
    /// Processors of the machine, as the headers say. The highest number that a record or gap names does not count: one damaged
    /// buffer would make a large machine of a small one.
    processors: u32,
    /// Processors that have gaps.
    lacking: Vec<usize>,
    /// Context switches were seen.
    pub switches: bool,
    heard: Heard,
}

/// When context switches came, of whatever processor: on a running machine they never cease.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    count: i64,
    first_ns: i64,
    last_ns: i64,
    /// Longest time between two.
    pause_ns: i64,
}

impl Heard {
    fn at(&mut self, ns: i64) {
        if self.count > 0 {
            self.pause_ns = self.pause_ns.max(ns.saturating_sub(self.last_ns));
        } else {
            self.first_ns = ns;
        }
        self.count += 1;
        self.last_ns = self.last_ns.max(ns);
    }

    /// From when to when: all of `span`, less a silence at either end.
    fn within(&self, span: (i64, i64)) -> (i64, i64) {
        let whole = span.1.saturating_sub(span.0);
        let is_long = |silent| is_silence(silent, whole, self.count, self.pause_ns);
        let late = is_long(self.first_ns.saturating_sub(span.0));
        let stopped = is_long(span.1.saturating_sub(self.last_ns));
        (if late { self.first_ns } else { span.0 }, if stopped { self.last_ns } else { span.1 })
    }
}

/// Windows runs on no more.
const MOST_PROCESSORS: u32 = 2_048;

/// Sorts stretches of time and joins those that overlap.
fn join(mut all: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    all.sort_unstable();
    let mut joined: Vec<(i64, i64)> = Vec::new();
    for (from, to) in all {
        match joined.last_mut() {
            Some(last) if last.1 >= from => last.1 = last.1.max(to),
            _ => joined.push((from, to)),
        }
    }
    joined
}

/// Inner interrupts that one processor may have under an outer one that has not ended yet. Real ones nest a few
/// levels deep, but a long DPC may be interrupted very often; beyond this the oldest are settled.
const MOST_ENDED: usize = 4096;

/// Routines of which one processor knows the time since its last switch. Behind that the smallest makes room and leaves its time to the next
/// one, so that what took most stays (Metwally and others, 2005: Space-Saving).
const MOST_ROUTINES: usize = 16;

impl Cpus {
    /// Takes over where buffers may be missing, in place of what was known of that.
    pub(crate) fn set_gaps(&mut self, files: &[EtlFile], timeline: &Timeline) {
        self.mixed.clear();
        self.gaps_of.clear();
        self.lacking.clear();
        for cpu in &mut self.list {
            cpu.gap_ends.clear();
            cpu.gaps.clear();
        }
        let mut all: Vec<(i64, i64)> = Vec::new();
        for (number, file) in files.iter().enumerate() {
            let number = u16::try_from(number).unwrap_or(u16::MAX);
            let modes = file.segments().iter().map(|s| s.header.log_file_mode);
            let modes = modes.fold(0, |all, mode| all | mode);
            self.mixed.push(modes & MODE_NO_PER_PROCESSOR_BUFFERING != 0);
            let processors = file.segments().iter().map(|s| s.header.processors).max();
            self.processors = self.processors.max(processors.unwrap_or(0));
            let ns = |ticks: i64| match ticks {
                i64::MIN | i64::MAX => ticks,
                ticks => timeline.ticks_to_ns(number, ticks),
            };
            for gap in file.gaps() {
                let (from, to) = (ns(gap.from_ticks), ns(gap.to_ticks));
                all.push((from, to));
                if modes & MODE_CIRCULAR == 0 || gap.from_ticks != i64::MIN {
                    self.gaps_of.push((gap.cpu, from, to));
                }
                if let Some(cpu) = self.cpu(gap.cpu) {
                    cpu.gap_ends.push(to);
                    cpu.gaps.push((from, to));
                }
            }
        }
        self.processors = self.processors.min(MOST_PROCESSORS);
        for (number, cpu) in self.list.iter_mut().enumerate() {
            if !cpu.gaps.is_empty() {
                self.lacking.push(number);
            }
            cpu.gap_ends.retain(|&end| cpu.switched_ns.is_none_or(|ns| end > ns));
            cpu.gap_ends.sort_unstable_by(|a, b| b.cmp(a));
            cpu.gaps = join(std::mem::take(&mut cpu.gaps));
        }
        self.gaps = join(all);
    }

    /// From now on threads that run count as running since `ns` at the earliest.
    pub(crate) fn begin_at(&mut self, ns: i64) {
        for cpu in &mut self.list {
            let interrupted_ns = cpu.settled_ns.saturating_add(cpu.open_ns);
            if let Some(running) = cpu.running.as_mut().filter(|running| running.since_ns < ns) {
                (running.since_ns, running.interrupted_ns) = (ns, interrupted_ns);
            }
        }
    }

    /// Records are missing, none of them within this time.
    pub(crate) fn lost_outside(&self, (from_ns, to_ns): (i64, i64)) -> bool {
        !self.gaps_of.is_empty() && self.gaps_of.iter().all(|&(_, from, to)| from >= to_ns || to <= from_ns)
    }

    /// Processor, begin and end of the time ranges in which its records may be missing; ends may lie outside of the trace.
    pub(crate) fn unobserved(&self) -> &[(u16, i64, i64)] {
        &self.gaps_of
    }

    fn cpu(&mut self, cpu: u16) -> Option<&mut Cpu> {
        let index = usize::from(cpu);
        if self.list.len() <= index {
            self.list.resize_with(index + 1, Cpu::default);
        }
        self.list.get_mut(index)
    }

    /// Who runs on `cpu` at `ns`, the time of the event that is being looked at; `None` if nothing tells.
    #[inline]
    pub fn running(&self, cpu: u16, ns: i64) -> Option<Running> {
        let cpu = self.list.get(usize::from(cpu))?;
        // The first event behind a gap must not see who ran before it.
        if cpu.gap_ends.last().is_some_and(|&end| end <= ns) {
            return None;
        }
        cpu.running
    }

    /// Whom the last context switch on `cpu` replaced; `None` if that was not known.
    pub fn replaced(&self, cpu: u16) -> Option<Running> {
        self.list.get(usize::from(cpu))?.replaced
    }

    /// The DPC or ISR on `cpu` that ended last: the one of the event that is being looked at.
    pub fn last_interrupt(&self, cpu: u16) -> Interrupt {
        self.list.get(usize::from(cpu)).map_or(Interrupt::default(), |c| c.last)
    }

    /// Time that DPCs (threaded ones not counted: they run in threads) and ISRs have taken on `cpu` so far.
    pub fn interrupted_ns(&self, cpu: u16) -> i64 {
        self.list.get(usize::from(cpu)).map_or(0, |c| c.settled_ns.saturating_add(c.open_ns))
    }

    /// Routine of the DPCs and ISRs that took most of the run that the last switch on `cpu` has ended; `None` if there were none.
    pub fn replaced_routine(&self, cpu: u16) -> Option<u64> {
        self.list.get(usize::from(cpu))?.replaced_routine
    }

    /// The same for what runs on `cpu` now.
    pub fn interrupting_routine(&self, cpu: u16) -> Option<u64> {
        self.list.get(usize::from(cpu))?.longest_routine()
    }

    /// Threads that run at the end of the trace, and since how long (the idle thread: on all processors together).
    pub fn open_runs(&self, end_ns: i64) -> BTreeMap<u32, i64> {
        let mut open = BTreeMap::new();
        // Behind a processor's last buffer more may be missing.
        for run in self.list.iter().filter(|cpu| cpu.gap_ends.is_empty()).filter_map(|cpu| cpu.running) {
            let sum: &mut i64 = open.entry(run.utid).or_default();
            *sum = sum.saturating_add(end_ns.saturating_sub(run.since_ns).max(0));
        }
        open
    }

    /// From when to when the kernel's events tell what processors do: the whole trace, or from the moment at which they began because their
    /// session did or what was before is overwritten, and to that at which they ceased because their session was stopped or taken, while
    /// others went on. `span_ns`: first and last event of the trace.
    pub fn observed(&self, span_ns: (i64, i64)) -> (i64, i64) {
        self.heard.within(span_ns)
    }

    /// Whether `utid` has been on `cpu` without a break from `from_ns` to `ns`, the time of the event that is
    /// being looked at.
    pub fn stayed(&self, cpu: u16, utid: u32, from_ns: i64, ns: i64) -> bool {
        self.running(cpu, ns).is_some_and(|r| r.utid == utid && r.since_ns <= from_ns)
    }
}

pub(crate) fn event(
    event: &Event<'_>,
    cpus: &mut Cpus,
    threads: &mut Threads,
    processes: &mut Processes,
    timeline: &Timeline,
    ledger: &mut Ledger,
) {
    let number = event.record.cpu;
    let ns = event.ns;
    let mixed = cpus.mixed.get(usize::from(event.record.file)) == Some(&true);
    if mixed {
        ledger.count(&PROCESSORS_UNKNOWN, 1);
    }
    if event.tag == CSWITCH {
        let (Some(new), Some(old)) = (event.u64(0), event.u64(1)) else {
            ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        let (new, old) = (new as u32, old as u32);
        let utid = threads.at(new, (new == 0).then_some(0), ns, processes);
        cpus.switches = true;
        cpus.heard.at(ns);
        let Some(cpu) = cpus.cpu(number) else { return };
        cpu.switched_ns = Some(ns);
        let mut forgot = 0;
        while cpu.gap_ends.last().is_some_and(|&end| end <= ns) {
            cpu.gap_ends.pop();
            forgot += 1;
            cpu.running = None;
        }
        let missed = cpu.running.is_some_and(|r| r.tid != old);
        cpu.replaced = cpu.running.filter(|_| !missed);
        cpu.replaced_routine = cpu.longest_routine();
        cpu.routines.clear();
        // A DPC that spans a switch does not exist; what has ended lies before it.
        cpu.settle();
        cpu.running =
            (!mixed).then_some(Running { tid: new, utid, since_ns: ns, interrupted_ns: cpu.settled_ns });
        ledger.count(&RUNNING_FORGOTTEN, forgot);
        if missed {
            cpus.missed_until_ns = Some(ns);
            ledger.count(&SWITCHES_MISSED, 1);
        }
        return;
    }
    let Some(initial) = event.i64(0) else {
        ledger.count(&PAYLOAD_TOO_SHORT, 1);
        return;
    };
    let span = span::since(event, initial, INTERRUPT_BEFORE_NS, timeline, ledger).unwrap_or(0);
    let start_ns = ns.saturating_sub(span);
    if let Some(cpu) = cpus.cpu(number) {
        if mixed {
            cpu.settle();
        }
        let threaded = event.tag == THREADED_DPC;
        cpu.end_interrupt(start_ns, ns, threaded);
        if let Some(routine) = event.u64(1).filter(|_| !threaded) {
            cpu.add_routine(routine, cpu.last.exclusive_ns());
        }
    }
}

impl Cpu {
    fn end_interrupt(&mut self, start_ns: i64, end_ns: i64, threaded: bool) {
        let mut interrupt = Interrupt { start_ns, end_ns, nested_ns: 0, nested: 0 };
        while let Some(inner) =
            self.ended.pop_if(|inner| inner.start_ns >= start_ns && inner.end_ns <= end_ns)
        {
            interrupt.nested_ns = interrupt.nested_ns.saturating_add(inner.inclusive_ns());
            interrupt.nested = interrupt.nested.saturating_add(1);
            self.open_ns = self.open_ns.saturating_sub(inner.inclusive_ns());
            if threaded {
                self.settled_ns = self.settled_ns.saturating_add(inner.inclusive_ns());
            }
        }
        self.last = interrupt;
        if threaded {
            // It runs in a thread of its own at passive level; only what interrupted it is interrupt time.
            return;
        }
        if self.ended.len() >= MOST_ENDED {
            self.settle();
        }
        self.open_ns = self.open_ns.saturating_add(interrupt.inclusive_ns());
        self.ended.push(interrupt);
    }

    fn add_routine(&mut self, routine: u64, ns: i64) {
        if let Some(known) = self.routines.iter_mut().find(|known| known.0 == routine) {
            known.1 = known.1.saturating_add(ns);
        } else if self.routines.len() < MOST_ROUTINES {
            self.routines.push((routine, ns));
        } else if let Some(least) = self.routines.iter_mut().min_by_key(|known| known.1) {
            *least = (routine, least.1.saturating_add(ns));
        }
    }

    fn longest_routine(&self) -> Option<u64> {
        self.routines.iter().max_by_key(|known| known.1).map(|known| known.0)
    }

    fn settle(&mut self) {
        self.ended.clear();
        self.settled_ns = self.settled_ns.saturating_add(std::mem::take(&mut self.open_ns));
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_session_that_was_stopped_halfway_observes_until_then() {
        let heard = |times: &[i64]| {
            let mut heard = super::Heard::default();
            times.iter().for_each(|ns| heard.at(*ns));
            heard
        };
        let half: Vec<i64> = (0..500).collect();
        assert_eq!(heard(&half).within((0, 1_000)).1, 499);
        assert_eq!(heard(&half).within((0, 560)).1, 560, "the end is near");
        assert_eq!(heard(&half[..50]).within((0, 1_000)).1, 1_000, "too few to tell");
        // One that was silent for as long before says nothing by it.
        let rare: Vec<i64> = (0..100).chain(300..400).collect();
        assert_eq!(heard(&rare).within((0, 1_000)).1, 1_000);
        assert_eq!(heard(&[]).within((0, 9)).1, 9);
    }

    use super::*;

    #[test]
    fn losses_lie_outside_of_a_part_or_not() {
        let lost = |gaps: &[(u16, i64, i64)], part| {
            Cpus { gaps_of: gaps.to_vec(), ..Cpus::default() }.lost_outside(part)
        };
        let begin = (0, i64::MIN, 200);
        assert!(lost(&[begin, (1, 300, 400)], (400, i64::MAX)));
        assert!(!lost(&[begin, (1, 300, 401)], (400, i64::MAX)));
        assert!(lost(&[(1, 300, 400)], (0, 300)));
        assert!(!lost(&[begin], (i64::MIN, i64::MAX)), "the whole trace");
        assert!(!lost(&[], (400, 500)), "nothing is missing");
    }

    #[test]
    fn inner_interrupts_are_not_the_outer_ones() {
        let mut cpu = Cpu::default();
        cpu.end_interrupt(12, 14, false);
        cpu.end_interrupt(15, 16, false);
        assert_eq!(cpu.open_ns, 3);
        cpu.end_interrupt(10, 20, false);
        assert_eq!((cpu.last.inclusive_ns(), cpu.last.exclusive_ns(), cpu.last.nested), (10, 7, 2));
        assert_eq!(cpu.open_ns, 10);
        cpu.end_interrupt(25, 26, false);
        assert_eq!((cpu.last.nested, cpu.open_ns), (0, 11));
    }

    #[test]
    fn an_interrupt_in_an_interrupt_in_an_interrupt_is_taken_off_once() {
        let mut cpu = Cpu::default();
        cpu.end_interrupt(13, 14, false);
        cpu.end_interrupt(12, 16, false);
        assert_eq!(cpu.last.exclusive_ns(), 3);
        cpu.end_interrupt(10, 20, false);
        assert_eq!((cpu.last.exclusive_ns(), cpu.last.nested), (6, 1));
    }

    #[test]
    fn a_threaded_dpc_is_no_interrupt_but_what_interrupts_it_is() {
        let mut cpu = Cpu::default();
        cpu.end_interrupt(12, 14, false);
        cpu.end_interrupt(10, 20, true);
        assert_eq!(cpu.last.exclusive_ns(), 8);
        assert_eq!(cpu.settled_ns + cpu.open_ns, 2);
    }

    #[test]
    fn what_took_most_of_a_run_stays_known_among_many() {
        let mut cpu = Cpu::default();
        assert_eq!(cpu.longest_routine(), None);
        for routine in 0..1_000 {
            cpu.add_routine(routine, 1);
            cpu.add_routine(7, 1);
        }
        assert_eq!(cpu.longest_routine(), Some(7));
        assert_eq!(cpu.routines.len(), MOST_ROUTINES);
    }

    #[test]
    fn a_silence_at_either_end_is_not_observed() {
        let mut heard = Heard::default();
        assert_eq!(heard.within((0, 1000)), (0, 1000));
        (0..100).for_each(|n| heard.at(800 + n));
        assert_eq!(heard.within((0, 1000)), (800, 1000));
        assert_eq!(heard.within((0, 2000)), (800, 899));
        // A pause as long as that among them makes it chance.
        heard.at(990);
        assert_eq!(heard.within((0, 1000)), (0, 1000));
    }
}
