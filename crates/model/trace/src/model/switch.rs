//! Context switches: where each thread was before it runs again.
//!
//! A thread that leaves a processor waits, or stays ready because it was preempted. `ReadyThread` ends the wait; the
//! next `CSwitch` to the thread ends its being ready. Without `ReadyThread` events the two cannot be distinguished.

use super::cpu::Cpus;
use super::process::Processes;
use super::thread::Threads;
use crate::anomalies::WAITS_ACROSS_LOSS;
use crate::event::fields::Event;
use crate::event::select::Select;
use etwhy_decode::kernel::events::Thread;
use etwhy_etl::Ledger;

const READY: u8 = Thread::ReadyThread.opcode;

pub(crate) const SELECTS: &[Select] = &[
    Select::kernel(
        Thread::CSwitch,
        &["NewThreadId", "OldThreadId", "OldThreadState", "OldThreadWaitReason", "OldThreadWaitMode"],
    ),
    Select::kernel(Thread::ReadyThread, &["TThreadId", "Flag"]),
];

/// `KTHREAD_STATE`: waiting.
pub const WAITING: u8 = 5;
/// `KTHREAD_STATE`: waiting at a gate (Windows Vista; no longer used since).
const GATE_WAIT: u8 = 8;
/// `KTHREAD_STATE`: terminated.
const TERMINATED: u8 = 4;
/// `ReadyThread` flag: the thread was readied in a DPC, and so by nobody in particular.
const IN_DPC: u64 = 1;

/// A thread may be readied by another processor after it has begun to wait and before its switch is logged. That
/// is a matter of about a microsecond; what is longer ago was a boost of the running thread.
const ON_ITS_WAY_NS: i64 = 10_000;

/// How a thread left a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Out {
    /// When, ns.
    pub ns: i64,
    /// `KTHREAD_STATE` that it went into.
    pub state: u8,
    /// `KWAIT_REASON`; means something if it waits.
    pub reason: u8,
    /// It waits in user mode (1) or kernel mode (0); `None` where flags stand in its place (version 3 on).
    pub mode: Option<u8>,
    /// Processor that it left.
    pub cpu: u16,
}

/// Who made a thread ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// When, ns.
    pub ns: i64,
    /// The thread that did it; `None` if it was a DPC, or nothing tells.
    pub by: Option<u32>,
    /// It was done in a DPC: a timer, the end of a transfer.
    pub in_dpc: bool,
}

/// A run that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// When it began, ns.
    pub since_ns: i64,
    /// How long it lasted.
    pub run_ns: i64,
    /// What DPCs and ISRs took of it.
    pub interrupted_ns: i64,
    /// Routine that took most of that.
    pub routine: Option<u64>,
}

/// A context switch and what went before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switch {
    /// Thread that runs from now on.
    pub new_utid: u32,
    /// Its id; 0 is the idle thread.
    pub new_tid: u32,
    /// Thread that ran until now.
    pub old_utid: u32,
    /// Its id.
    pub old_tid: u32,
    /// The run of the old thread; `None` if its begin is not known.
    pub old_run: Option<Run>,
    /// How the new thread left a processor last, if that was recorded.
    pub prev: Option<Out>,
    /// Who readied the new thread since then.
    pub ready: Option<Ready>,
    /// From leaving to now.
    pub since_last_ns: Option<i64>,
    /// From leaving to being readied; `None` if it is not known. 0 for a thread that was preempted.
    pub wait_ns: Option<i64>,
    /// From being readied (or preempted) to now.
    pub ready_ns: Option<i64>,
    /// Where the rest is not known, because the new thread may have run unseen in a gap: the end of the last gap, since when it certainly
    /// has not run, and who readied it after that.
    pub behind_gap: Option<(i64, Ready)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    out: Option<Out>,
    ready: Option<Ready>,
    /// It was readied more than once since it left.
    again: bool,
    /// Since when every run of it was seen, as far as gaps tell.
    known_since_ns: Option<i64>,
}

impl State {
    /// Whether the thread, which is switched in, may have run unseen since it left: `None` if nothing is known of that.
    ///
    /// Where a gap of another processor lies in between, it may have been woken for it, have run and have left there. It is taken as
    /// having waited all the time if it comes back to where it left, was woken exactly once, and few processors have a gap: the
    /// wake-up, the run and the return would all have to be missing ([`Cpus::parted`] says why few is enough).
    fn ran_unseen(&self, cpu: u16, ns: i64, cpus: &Cpus) -> Option<bool> {
        let since = self.out.map(|out| out.ns).or(self.ready.map(|ready| ready.ns))?;
        if !cpus.doubtful(since, ns) {
            return Some(false);
        }
        let sure = self.out.is_some_and(|out| {
            let woken = self.ready.is_some() || out.state != WAITING;
            out.cpu == cpu && woken && !self.again && !cpus.parted((cpu, out.ns), (cpu, ns))
        });
        Some(!sure)
    }

    /// What is certain all the same of a thread that comes at `ns`, as [`Switch::behind_gap`] says it.
    fn behind_gap(&self, ns: i64, cpus: &Cpus) -> Option<(i64, Ready)> {
        let since = cpus.complete_since(ns)?;
        self.ready.filter(|ready| ready.ns > since).map(|ready| (since, ready))
    }
}

/// What threads did last.
#[derive(Clone, Debug, Default)]
pub struct Switches {
    threads: Vec<State>,
    /// The switch of the event that is being looked at.
    pub current: Switch,
    /// `ReadyThread` events were seen.
    pub readies: bool,
    /// The thread whose wait the `ReadyThread` that is being looked at has ended; `None` if it was a boost.
    pub readied: Option<u32>,
}

impl Switches {
    /// When `utid`, which has not run since, was readied: the first `ReadyThread` of its wait.
    pub fn ready_ns(&self, utid: u32) -> Option<i64> {
        self.threads.get(utid as usize)?.ready.map(|ready| ready.ns)
    }

    /// How a thread that has not run since left a processor.
    pub fn out(&self, utid: u32) -> Option<Out> {
        self.threads.get(utid as usize)?.out
    }

    /// Whether every run of `utid`, which runs now, was seen from `from_ns` on: what it began then it was not able to end and begin
    /// again in a gap of some processor.
    pub fn known_since(&self, utid: u32, from_ns: i64) -> bool {
        let since = self.threads.get(utid as usize).and_then(|state| state.known_since_ns);
        since.is_some_and(|since| since <= from_ns)
    }

    fn state(&mut self, utid: u32) -> Option<&mut State> {
        let index = utid as usize;
        if self.threads.len() <= index {
            self.threads.resize_with(index + 1, State::default);
        }
        self.threads.get_mut(index)
    }
}

pub(crate) fn event(
    event: &Event<'_>,
    switches: &mut Switches,
    cpus: &Cpus,
    threads: &mut Threads,
    processes: &mut Processes,
    ledger: &mut Ledger,
) {
    let ns = event.ns;
    let cpu = event.record.cpu;
    if event.tag == READY {
        let Some(tid) = event.u64(0) else { return };
        let in_dpc = event.u64(1).unwrap_or(0) & IN_DPC != 0;
        let utid = threads.at(tid as u32, None, ns, processes);
        let by = if in_dpc { None } else { cpus.running(cpu, ns).map(|r| r.utid) };
        switches.readies = true;
        switches.readied = None;
        if let Some(state) = switches.state(utid) {
            // The first one of a wait ends it, later ones are boosts; one from before the wait does not count.
            let of_this_wait = state.ready.is_some_and(|r| state.out.is_none_or(|out| r.ns >= out.ns));
            if !of_this_wait || state.out.is_none() {
                state.ready = Some(Ready { ns, by, in_dpc });
                switches.readied = Some(utid);
            } else {
                state.again = true;
            }
        }
        return;
    }
    let (Some(new), Some(old)) = (event.u64(0), event.u64(1)) else { return };
    let (new_tid, old_tid) = (new as u32, old as u32);
    let new_utid = threads.at(new_tid, (new_tid == 0).then_some(0), ns, processes);
    let old_utid = threads.at(old_tid, (old_tid == 0).then_some(0), ns, processes);
    let interrupted = cpus.interrupted_ns(cpu);
    let old_run = cpus.replaced(cpu).map(|run| Run {
        since_ns: run.since_ns,
        run_ns: ns.saturating_sub(run.since_ns),
        interrupted_ns: interrupted.saturating_sub(run.interrupted_ns),
        routine: cpus.replaced_routine(cpu),
    });
    let mut switch = Switch { new_utid, new_tid, old_utid, old_tid, old_run, ..Switch::default() };
    let number = |field: usize| event.u64(field).unwrap_or(0) as u8;
    let state = if number(2) == GATE_WAIT { WAITING } else { number(2) };
    let out = Out { ns, state, reason: number(3), mode: event.u64(4).map(|m| m as u8), cpu };
    let mut came = State::default();
    if old_tid != 0
        && let Some(state) = switches.state(old_utid)
    {
        state.out = (out.state != TERMINATED).then_some(out);
        state.again = false;
        if old_run.is_none() {
            // A gap on this processor, or nobody saw it come: it may have been here and elsewhere.
            state.known_since_ns = Some(ns);
        }
    }
    if new_tid != 0
        && let Some(state) = switches.state(new_utid)
    {
        came = std::mem::take(state);
        came.ready =
            came.ready.filter(|r| came.out.is_none_or(|out| r.ns >= out.ns.saturating_sub(ON_ITS_WAY_NS)));
    }
    let ran_unseen = came.ran_unseen(cpu, ns, cpus);
    if ran_unseen == Some(true) {
        // It may have run and waited again in between.
        switch.behind_gap = came.behind_gap(ns, cpus);
        ledger.count(&WAITS_ACROSS_LOSS, 1);
        came = State::default();
    }
    if new_tid != 0
        && let Some(state) = switches.state(new_utid)
    {
        let known = came.known_since_ns.filter(|_| came.out.is_some());
        state.known_since_ns = Some(known.unwrap_or(ns));
    }
    if let Some(out) = came.out {
        switch.prev = Some(out);
        switch.since_last_ns = Some(ns.saturating_sub(out.ns));
        if out.state != WAITING {
            (switch.wait_ns, switch.ready_ns) = (Some(0), switch.since_last_ns);
        } else if let Some(ready) = came.ready {
            let at = ready.ns.max(out.ns);
            switch.wait_ns = Some(at.saturating_sub(out.ns));
            switch.ready_ns = Some(ns.saturating_sub(at));
        }
    }
    // Readied threads whose wait began before the trace have been ready for a known time all the same.
    if let Some(ready) = came.ready {
        switch.ready = Some(ready);
        if came.out.is_none() {
            switch.ready_ns = Some(ns.saturating_sub(ready.ns));
        }
    }
    switches.current = switch;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_readied_a_thread_behind_the_last_gap_is_known() {
        let cpus = Cpus::lacking(1, &[(10, 20), (90, 99)]);
        let out = Some(Out { ns: 5, state: WAITING, reason: 6, mode: None, cpu: 0 });
        let state =
            |ns| State { out, ready: Some(Ready { ns, by: Some(3), in_dpc: false }), ..State::default() };
        assert_eq!(state(40).ran_unseen(0, 42, &cpus), Some(true));
        assert_eq!(state(40).behind_gap(42, &cpus).map(|(since, ready)| (since, ready.ns)), Some((20, 40)));
        // It may have run in the gap since then.
        assert_eq!(state(8).behind_gap(42, &cpus), None);
        assert_eq!(state(40).behind_gap(95, &cpus), None);
    }

    #[test]
    fn states_are_kept_by_thread() {
        let mut switches = Switches::default();
        let out = Out { ns: 5, state: WAITING, reason: 6, mode: None, cpu: 0 };
        switches.state(7).unwrap().out = Some(out);
        assert_eq!(switches.state(7).unwrap().out, Some(out));
        assert!(switches.state(3).unwrap().out.is_none());
    }
}
