//! The critical path of any stretch of a thread: what it ran, what it waited for, and who ended each wait, transitively.
//!
//! The walk is that of table `critical_path`, which holds stretches that were known when the trace was read; here it goes over
//! table `cswitch`. What DPCs and ISRs took of the time is in that table only.
//!
//! # What fools it
//!
//! Waits that reach back to before the first switch of a thread, or over missing buffers, end the path as *unknown*.

use super::{Index, Range, State, Switches};
use crate::operators::add;
use etwhy_table::{Database, Rows};
use etwhy_trace::catalog::critical_path::{self, Kind, NEVER, NOBODY, Named, Piece, Threads, reason_of};
use etwhy_trace::catalog::stack::FrameRow;
use etwhy_trace::model::stack::NO_STACK;
use etwhy_trace::model::switch::{Out, WAITING};
use etwhy_trace::stacks::Stacks;
use foldhash::HashMap;
use std::cell::{OnceCell, RefCell};
use std::collections::VecDeque;

pub use etwhy_trace::catalog::critical_path::MOST_LINKS;

/// A piece of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// From (included) to (not).
    pub range: Range,
    /// Thread that it is charged to.
    pub utid: u32,
    /// Wake-ups away from the thread itself.
    pub depth: i32,
    /// What it is.
    pub kind: State,
    /// Processor on which it ran, or for which it stood in the queue.
    pub cpu: Option<i64>,
    /// Why it waited.
    pub reason: Option<&'static str>,
    /// The wait was ended in a DPC.
    pub in_dpc: bool,
    /// Where it had been switched in, or where it waited.
    pub stack: Option<i64>,
    /// Row of `cswitch` that tells.
    pub row: Option<u32>,
}

/// Table `cswitch` as the walk reads it: the runs of a thread when the path comes to it, stacks when it comes to a fork.
struct Recorded<'a, 't, F> {
    db: &'t Database,
    switches: &'a Switches<'t>,
    index: &'a Index,
    runs: Vec<OnceCell<VecDeque<Piece>>>,
    stacks: OnceCell<(Stacks, Rows<'t, FrameRow>)>,
    go_on: RefCell<(u32, F)>,
}

/// The number of a stack as a ticket.
fn ticket(stack: Option<i64>) -> i32 {
    stack.and_then(|stack| i32::try_from(stack).ok()).unwrap_or(NO_STACK)
}

impl<'t, F> Recorded<'_, 't, F> {
    fn piece(&self, row: u32) -> Piece {
        let one = self.switches.get(row);
        let ago = |ns: Option<i64>| ns.map_or(NEVER, |ns| one.ts.saturating_sub(ns));
        Piece {
            left: ago(one.since_last),
            ready: ago(one.ready),
            // The idle thread does nothing that could explain a wait: an interrupt came while it ran.
            by: one.by.filter(|&by| !self.index.is_idle(by)).unwrap_or(NOBODY),
            in_dpc: one.in_dpc == Some(true),
            waited: one.waited,
            reason: one.reason.map_or(u8::MAX, reason_of),
            ticket: ticket(one.stack),
            waker: ticket(one.ready_stack),
            ..Piece::unseen(
                one.ts,
                one.run.map_or(i64::MAX, |run| one.ts.saturating_add(run)),
                u16::try_from(one.cpu).unwrap_or(u16::MAX),
            )
        }
    }

    fn stacks(&self) -> &(Stacks, Rows<'t, FrameRow>) {
        self.stacks.get_or_init(|| (Stacks::read(self.db), self.db.read_or_empty()))
    }
}

impl<F: FnMut() -> bool> Threads for Recorded<'_, '_, F> {
    fn runs(&self, utid: u32) -> Option<&VecDeque<Piece>> {
        let read = || self.index.rows_of(utid).iter().map(|&row| self.piece(row)).collect();
        let slot = self.runs.get(utid as usize).filter(|_| !self.index.is_idle(utid));
        slot.map(|slot| slot.get_or_init(read))
    }

    fn out(&self, utid: u32) -> Option<Out> {
        let (ns, row) = self.index.left_for_good(self.switches, utid)?;
        let (state, reason) = self.switches.old(row);
        let state = state.filter(|&state| state != "Terminated")?;
        let state = if state == "Waiting" { WAITING } else { 0 };
        Some(Out { ns, state, reason: reason.map_or(u8::MAX, reason_of), mode: None, cpu: 0 })
    }

    fn go_on(&self) -> bool {
        let (steps, go_on) = &mut *self.go_on.borrow_mut();
        *steps = steps.wrapping_add(1);
        !steps.is_multiple_of(1024) || go_on()
    }
}

impl<F> Named for Recorded<'_, '_, F> {
    fn stack(&self, ticket: i32) -> Option<u32> {
        u32::try_from(ticket).ok()
    }

    fn frames(&self, stack: u32) -> &[u32] {
        self.stacks().0.frames(i64::from(stack))
    }

    fn name(&self, frame: u32) -> Option<(&str, Option<&str>)> {
        self.stacks().1.get(frame).map(|row| (row.module(), row.function()))
    }

    fn process(&self, utid: u32) -> Option<u32> {
        self.index.upid(utid)
    }
}

/// The path of a thread in a range, latest piece first. `go_on` is asked now and then.
pub fn path_of(
    db: &Database,
    index: &Index,
    utid: u32,
    (from, to): Range,
    go_on: impl FnMut() -> bool,
) -> Vec<Link> {
    let Some(switches) = Switches::read(db) else { return Vec::new() };
    let switches = &switches;
    let (stacks, go_on) = (OnceCell::new(), RefCell::new((0, go_on)));
    let runs = (0..index.threads()).map(|_| OnceCell::new()).collect();
    let threads = Recorded { db, switches, index, runs, stacks, go_on };
    let link = |link: critical_path::Link| {
        let rows = index.rows_of(link.utid);
        // It ran since the last switch before its end, or was off the processors until the next one.
        let next = rows.partition_point(|&row| switches.ts(row) < link.to);
        let (kind, place) = match link.kind {
            Kind::Run => (State::Run, next.checked_sub(1)),
            Kind::Ready => (State::Ready, Some(next)),
            Kind::Wait => (State::Wait, Some(next)),
            Kind::Unknown => (State::Unknown, None),
        };
        Link {
            range: (link.from, link.to),
            utid: link.utid,
            depth: link.depth,
            kind,
            cpu: link.cpu.map(i64::from),
            reason: link.wait_reason(),
            in_dpc: link.kind == Kind::Wait && link.in_dpc,
            stack: Some(link.ticket).filter(|&ticket| ticket != NO_STACK).map(i64::from),
            row: place.and_then(|place| rows.get(place)).copied(),
        }
    };
    critical_path::path_over(&threads, &threads, utid, from, to).into_iter().map(link).collect()
}

/// What took time on a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// What it was.
    pub kind: State,
    /// Thread that it is charged to.
    pub utid: u32,
    /// Why it waited.
    pub reason: Option<&'static str>,
    /// The wait was ended in a DPC.
    pub in_dpc: bool,
    /// Time.
    pub dur_ns: i64,
    /// Pieces.
    pub pieces: i64,
    /// The longest piece: its place in the path.
    pub longest: usize,
}

/// Sums of a path by what took the time, largest first.
pub fn causes(links: &[Link]) -> Vec<Cause> {
    type Key = (State, u32, Option<&'static str>, bool);
    let mut sums: HashMap<Key, (Cause, i64)> = HashMap::default();
    for (place, link) in links.iter().enumerate() {
        let ns = link.range.1.saturating_sub(link.range.0);
        let (sum, longest) =
            sums.entry((link.kind, link.utid, link.reason, link.in_dpc)).or_insert_with(|| {
                let (kind, utid, reason, in_dpc) = (link.kind, link.utid, link.reason, link.in_dpc);
                (Cause { kind, utid, reason, in_dpc, dur_ns: 0, pieces: 0, longest: place }, 0)
            });
        add(&mut sum.dur_ns, ns);
        sum.pieces += 1;
        if ns > *longest {
            (*longest, sum.longest) = (ns, place);
        }
    }
    let mut out: Vec<Cause> = sums.into_values().map(|(cause, _)| cause).collect();
    out.sort_by_key(|cause| (std::cmp::Reverse(cause.dur_ns), cause.utid, cause.kind, cause.reason));
    out
}
