//! What threads did over time: they ran, stood ready in the queue, waited, or nothing tells.
//!
//! # How it is computed
//!
//! From table `cswitch`, whose rows tell of the run of a thread and of the time off the processors before it: from leaving
//! (`ts_ns - since_last_ns`) it waited for `wait_ns` and was ready for `ready_ns`; then it ran for `run_ns`. A thread that was
//! preempted was ready all the time. An [`Index`] finds the rows of a thread; [`threads`] sums, [`lanes`] cuts into buckets,
//! [`path`] walks from thread to thread.
//!
//! # What fools it
//!
//! Without `ReadyThread` events waiting cannot be distinguished from being ready: that time is *unknown*, and so is the time before the
//! first switch of a thread, across missing buffers, and behind a run whose end is not recorded. A thread that has not run again
//! when the trace ends waits for an unknown time: that is drawn as waiting, but is in no sum of waits.

pub mod lanes;
pub mod path;
#[cfg(test)]
mod tests;
pub mod threads;

use etwhy_table::{Database, RowOf, Rows};
use etwhy_trace::catalog::{cswitch::CSwitchRow, thread::ThreadRow};
use serde::Serialize;
use ts_rs::TS;

/// State of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(rename = "ThreadState")]
pub enum State {
    /// On a processor.
    Run,
    /// Could run, and has no processor.
    Ready,
    /// Waits for something.
    Wait,
    /// Nothing tells.
    Unknown,
}

impl State {
    /// All of them.
    pub const ALL: [State; 4] = [State::Run, State::Ready, State::Wait, State::Unknown];

    /// The word in answers.
    pub const fn name(self) -> &'static str {
        match self {
            State::Run => "run",
            State::Ready => "ready",
            State::Wait => "wait",
            State::Unknown => "unknown",
        }
    }

    /// Its place in [`State::ALL`].
    pub const fn number(self) -> usize {
        self as usize
    }
}

/// A range of time: from (included) to (not), ns.
pub type Range = (i64, i64);

/// Length of what two ranges have in common.
pub fn common(a: Range, b: Range) -> i64 {
    a.1.min(b.1).saturating_sub(a.0.max(b.0)).max(0)
}

/// A row of `cswitch`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switch<'t> {
    /// Number of the row.
    pub row: u32,
    /// Switched in.
    pub ts: i64,
    /// Processor.
    pub cpu: i64,
    /// Thread that is switched in.
    pub utid: u32,
    /// How long it then ran.
    pub run: Option<i64>,
    /// Since it left a processor.
    pub since_last: Option<i64>,
    /// Waiting.
    pub wait: Option<i64>,
    /// Ready.
    pub ready: Option<i64>,
    /// When it was readied.
    pub ready_ts: Option<i64>,
    /// Who did.
    pub by: Option<u32>,
    /// A DPC did.
    pub in_dpc: Option<bool>,
    /// It went off to wait, or nothing tells.
    pub waited: bool,
    /// Why it waited.
    pub reason: Option<&'t str>,
    /// Priority with which it came in.
    pub priority: i64,
    /// Where it waited.
    pub stack: Option<i64>,
    /// Where the thread that readied it was.
    pub ready_stack: Option<i64>,
}

impl Switch<'_> {
    /// Its run; `None` if the end is not known.
    pub fn running(&self) -> Option<Range> {
        Some((self.ts, self.ts.saturating_add(self.run?.max(0))))
    }

    /// When it was ready before it.
    pub fn queued(&self) -> Option<Range> {
        Some((self.ts.saturating_sub(self.ready?.max(0)), self.ts))
    }

    /// When it waited before that.
    pub fn waiting(&self) -> Option<Range> {
        let end = self.ts.saturating_sub(self.ready.unwrap_or(0).max(0));
        Some((end.saturating_sub(self.wait?.max(0)), end))
    }

    /// Where what is known of the time before it begins.
    pub fn begins(&self) -> i64 {
        let before = |ns: Option<i64>| self.ts.saturating_sub(ns.unwrap_or(0).max(0));
        let waiting = self.waiting().map_or(self.ts, |(from, _)| from);
        before(self.since_last).min(before(self.ready)).min(waiting)
    }
}

/// Table `cswitch`, read by row.
pub struct Switches<'t>(Rows<'t, CSwitchRow>);

fn id(value: i64) -> Option<u32> {
    u32::try_from(value).ok()
}

impl<'t> Switches<'t> {
    /// The table, if the trace has it.
    pub fn read(db: &'t Database) -> Option<Switches<'t>> {
        db.read().ok().map(Switches)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.0.len()
    }

    /// When a row is; cheaper than all of it.
    fn ts(&self, row: u32) -> i64 {
        self.0.get(row).map_or(0, |row| row.ts_ns())
    }

    /// A row.
    pub fn get(&self, row: u32) -> Switch<'t> {
        self.0.get(row).map(|of| read(of, row)).unwrap_or_default()
    }

    /// State and wait reason into which the thread goes that a row replaces.
    fn old(&self, row: u32) -> (Option<&'t str>, Option<&'t str>) {
        self.0.get(row).map(|row| (row.old_state(), row.old_wait_reason())).unwrap_or_default()
    }
}

fn read<'t>(of: RowOf<'_, 't, CSwitchRow>, row: u32) -> Switch<'t> {
    let since_last = of.since_last_ns();
    Switch {
        row,
        ts: of.ts_ns(),
        cpu: of.cpu(),
        utid: id(of.new_utid()).unwrap_or(u32::MAX),
        run: of.run_ns(),
        since_last,
        wait: of.wait_ns(),
        ready: of.ready_ns(),
        ready_ts: of.ready_ts_ns(),
        by: of.readying_utid().and_then(id),
        in_dpc: of.readied_in_dpc(),
        waited: since_last.is_none() || of.prev_state() == Some("Waiting"),
        reason: of.prev_wait_reason(),
        priority: of.new_priority(),
        stack: of.stack_id(),
        ready_stack: of.ready_stack_id(),
    }
}

/// Which rows of `cswitch` are a thread's, in time order: 4 bytes for each row.
#[derive(Debug, Default)]
pub struct Index {
    rows: Vec<u32>,
    /// Where the rows of each thread begin in `rows`; one more at the end.
    starts: Vec<usize>,
    /// When each thread left a processor last, and the row that tells.
    left: Vec<Option<(i64, u32)>>,
    /// Threads of id 0, and of no id at all.
    idle: Vec<bool>,
    /// Process of each thread.
    upids: Vec<Option<u32>>,
}

impl Index {
    /// Reads `cswitch` and `thread`.
    pub fn read(db: &Database) -> Index {
        let mut out = Index::default();
        for row in &db.read_or_empty::<ThreadRow>() {
            out.idle.push(row.tid() == 0);
            out.upids.push(row.upid().and_then(id));
        }
        let count = out.idle.len();
        out.left = vec![None; count];
        let Some(switches) = Switches::read(db) else { return out };
        let mut starts = vec![0usize; count + 1];
        for (number, row) in (0u32..).zip(&switches.0) {
            if let Some(slot) = id(row.new_utid()).and_then(|u| starts.get_mut(u as usize + 1)) {
                *slot += 1;
            }
            let ns = row.ts_ns();
            if let Some(slot) = id(row.old_utid()).and_then(|u| out.left.get_mut(u as usize))
                && slot.is_none_or(|(before, _)| before <= ns)
            {
                *slot = Some((ns, number));
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        out.rows = vec![0; sum];
        let mut next = starts.clone();
        for (number, row) in (0u32..).zip(&switches.0) {
            if let Some(slot) = id(row.new_utid()).and_then(|u| next.get_mut(u as usize))
                && let Some(place) = out.rows.get_mut(*slot)
            {
                *place = number;
                *slot += 1;
            }
        }
        for utid in 0..count {
            let (Some(&from), Some(&to)) = (starts.get(utid), starts.get(utid + 1)) else { continue };
            let Some(rows) = out.rows.get_mut(from..to) else { continue };
            // The table is nearly in this order already.
            if !rows.is_sorted_by_key(|&row| switches.ts(row)) {
                rows.sort_by_key(|&row| switches.ts(row));
            }
        }
        out.starts = starts;
        out
    }

    /// Rows of a thread, in time order.
    pub fn rows_of(&self, utid: u32) -> &[u32] {
        let at = |n: usize| self.starts.get(n).copied();
        let range = at(utid as usize).zip(at(utid as usize + 1));
        range.and_then(|(from, to)| self.rows.get(from..to)).unwrap_or_default()
    }

    /// The idle thread.
    pub fn is_idle(&self, utid: u32) -> bool {
        self.idle.get(utid as usize).copied().unwrap_or(false)
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.idle.len()
    }

    /// Process of a thread.
    pub fn upid(&self, utid: u32) -> Option<u32> {
        self.upids.get(utid as usize).copied().flatten()
    }

    /// The row that replaced a thread last, if it has not run since: from then on it is off the processors.
    fn left_for_good(&self, switches: &Switches<'_>, utid: u32) -> Option<(i64, u32)> {
        let (ns, row) = self.left.get(utid as usize).copied().flatten()?;
        let came = self.rows_of(utid).last().map(|&row| switches.ts(row));
        came.is_none_or(|came| came <= ns).then_some((ns, row))
    }
}

/// A stretch of a thread in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval<'t> {
    /// From (included) to (not).
    pub range: Range,
    /// State.
    pub state: State,
    /// Why it waits.
    pub reason: Option<&'t str>,
    /// The row that tells: that of the switch behind a wait, of the one that began a run; `None` where nothing tells.
    pub row: Option<u32>,
    /// Its end is not in the trace.
    pub open: bool,
}

/// All of a thread in a range, without gaps: hands over pieces in time order.
pub fn intervals<'t>(
    switches: &Switches<'t>,
    index: &Index,
    utid: u32,
    (from, to): Range,
    mut each: impl FnMut(Interval<'t>),
) {
    let rows = index.rows_of(utid);
    let mut at = from;
    let mut push = |range: Range, state, reason, row: Option<u32>, open| {
        let range = (range.0.max(at), range.1.min(to));
        if range.1 <= range.0 {
            return;
        }
        if range.0 > at {
            each(Interval {
                range: (at, range.0),
                state: State::Unknown,
                reason: None,
                row: None,
                open: false,
            });
        }
        at = range.1;
        each(Interval { range, state, reason, row, open });
    };
    // One before the range may run or wait into it.
    let first = rows.partition_point(|&row| switches.ts(row) < from).saturating_sub(1);
    for &row in rows.get(first..).unwrap_or_default() {
        let switch = switches.get(row);
        if switch.begins() >= to {
            break;
        }
        if let Some(range) = switch.waiting() {
            push(range, State::Wait, switch.reason, Some(row), false);
        } else if let Some(since) = switch.since_last.filter(|_| switch.ready.is_none()) {
            push(
                (switch.ts.saturating_sub(since), switch.ts),
                State::Unknown,
                switch.reason,
                Some(row),
                false,
            );
        }
        if let Some(range) = switch.queued() {
            push(range, State::Ready, switch.reason.filter(|_| !switch.waited), Some(row), false);
        }
        match switch.running() {
            Some(range) => push(range, State::Run, None, Some(row), false),
            // The last run of the thread that has no end goes on; others were lost.
            None if rows.last() == Some(&row) && index.left_for_good(switches, utid).is_none() => {
                push((switch.ts, i64::MAX), State::Run, None, Some(row), true);
            }
            None => {}
        }
    }
    if let Some((ns, row)) = index.left_for_good(switches, utid) {
        match switches.old(row) {
            (Some("Waiting"), reason) => push((ns, i64::MAX), State::Wait, reason, None, true),
            (Some("Terminated"), _) | (None, _) => {}
            (Some(_), _) => push((ns, i64::MAX), State::Ready, None, None, true),
        }
    }
    if at < to {
        each(Interval { range: (at, to), state: State::Unknown, reason: None, row: None, open: false });
    }
}
