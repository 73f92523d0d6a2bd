//! The path of a thread between two moments, walked backwards over the runs of all threads.

use super::forks::{self, Checked, Fork, MIN_FORK_NS, Rule};
use crate::model::place::PlaceId;
use crate::model::stack::NO_STACK;
use crate::model::switch::{Out, Switches, WAITING};
use etwhy_decode::kernel::names::wait_reason;
use std::collections::VecDeque;

/// A moment that nobody knows.
pub const NEVER: i64 = i64::MIN;
/// A thread that nobody knows.
pub const NOBODY: u32 = u32::MAX;

/// The runs that a path is walked over: those that a pass keeps, or those of table `cswitch`.
pub trait Threads {
    /// Those of a thread, in time order.
    fn runs(&self, utid: u32) -> Option<&VecDeque<Piece>>;
    /// How a thread that has not run since left a processor.
    fn out(&self, utid: u32) -> Option<Out>;
    /// Whether the path is still asked for.
    fn go_on(&self) -> bool {
        true
    }
}

/// What a pass keeps.
struct Kept<'t>(&'t [VecDeque<Piece>], &'t Switches);

impl Threads for Kept<'_> {
    fn runs(&self, utid: u32) -> Option<&VecDeque<Piece>> {
        self.0.get(utid as usize)
    }

    fn out(&self, utid: u32) -> Option<Out> {
        self.1.out(utid)
    }
}

/// A run of a thread and what went before. There are half a million of them, so missing values take no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Switched in.
    pub from: i64,
    /// Switched out; `i64::MAX` if it is not known.
    pub to: i64,
    /// When the thread left a processor before, or [`NEVER`].
    pub left: i64,
    /// When it was readied, or [`NEVER`].
    pub ready: i64,
    /// Thread that readied it, or [`NOBODY`].
    pub by: u32,
    /// Thread that had the processor until then; [`NOBODY`] for the idle thread.
    pub after: u32,
    /// What DPCs and ISRs took of the run.
    pub interrupted: i64,
    /// Routine that took most of it, if it was much.
    pub routine: Option<PlaceId>,
    /// What DPCs and ISRs took of the processor while the thread was ready.
    pub ready_interrupted: i64,
    /// The routine that took most of it.
    pub ready_routine: Option<PlaceId>,
    /// Where it had waited, or was switched in.
    pub ticket: i32,
    /// Stack of the thread that readied it after a long wait.
    pub waker: i32,
    /// Processor.
    pub cpu: u16,
    /// `KWAIT_REASON`, or `u8::MAX`.
    pub reason: u8,
    /// A DPC readied it.
    pub in_dpc: bool,
    /// It had waited, or nothing tells what it did.
    pub waited: bool,
}

/// What a piece of a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// On a processor.
    Run,
    /// In the queue of one.
    Ready,
    /// For something.
    Wait,
    /// Nothing tells.
    Unknown,
}

impl Kind {
    /// The word in tables.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Run => "run",
            Kind::Ready => "ready",
            Kind::Wait => "wait",
            Kind::Unknown => "unknown",
        }
    }
}

/// A piece of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// From (included).
    pub from: i64,
    /// To (not included).
    pub to: i64,
    /// Thread that it is charged to.
    pub utid: u32,
    /// Wake-ups away from the thread whose path it is.
    pub depth: i32,
    /// What it is.
    pub kind: Kind,
    /// Processor on which it ran, or for which it stood in the queue.
    pub cpu: Option<u16>,
    /// `KWAIT_REASON` of a wait.
    pub reason: Option<u8>,
    /// The wait was ended in a DPC.
    pub in_dpc: bool,
    /// Where it had been switched in, or where it waited.
    pub ticket: i32,
    /// Thread that had the processor while this one was ready.
    pub displaced_by: Option<u32>,
    /// What DPCs and ISRs took of a run or of a time in the queue.
    pub interrupted: i64,
    /// The routine that took most of it.
    pub routine: Option<PlaceId>,
    /// The fork in whose time it lies, and whether it is of the branch that ended last.
    pub fork: Option<(u16, bool)>,
}

impl Link {
    /// Time of a thread of which nothing tells what it did.
    fn unknown(utid: u32, from: i64, to: i64) -> Link {
        let (kind, depth, ticket) = (Kind::Unknown, 0, NO_STACK);
        let (cpu, reason, displaced_by, routine) = (None, None, None, None);
        let (in_dpc, interrupted, fork) = (false, 0, None);
        Link {
            fork,
            from,
            to,
            utid,
            depth,
            kind,
            cpu,
            reason,
            in_dpc,
            ticket,
            displaced_by,
            interrupted,
            routine,
        }
    }

    /// Why it waited.
    pub fn wait_reason(&self) -> Option<&'static str> {
        wait_reason(u32::from(self.reason?))
    }

    /// The same time, of which nothing tells whose it is.
    pub fn of_nobody(&self) -> Link {
        Link { depth: self.depth, ..Link::unknown(self.utid, self.from, self.to) }
    }
}

impl Piece {
    /// A run of which nothing tells how it began.
    pub fn unseen(from: i64, to: i64, cpu: u16) -> Piece {
        Piece {
            from,
            to,
            left: NEVER,
            ready: NEVER,
            by: NOBODY,
            after: NOBODY,
            interrupted: 0,
            routine: None,
            ready_interrupted: 0,
            ready_routine: None,
            ticket: NO_STACK,
            waker: NO_STACK,
            cpu,
            reason: u8::MAX,
            in_dpc: false,
            waited: true,
        }
    }

    /// What DPCs and ISRs took between two moments of the run, which goes on at `now` if its end is not known, or of the time in the queue before
    /// it: as much of all as of the whole. And the routine that took most of it.
    fn interrupts(&self, kind: Kind, from: i64, to: i64, now: i64) -> (i64, Option<PlaceId>) {
        let (taken, routine, whole) = match kind {
            Kind::Run => {
                let end = if self.to == i64::MAX { now.max(to) } else { self.to };
                (self.interrupted, self.routine, end.saturating_sub(self.from))
            }
            Kind::Ready => {
                let since = if self.ready == NEVER { self.left } else { self.ready };
                (self.ready_interrupted, self.ready_routine, self.from.saturating_sub(since))
            }
            Kind::Wait | Kind::Unknown => return (0, None),
        };
        (share(taken, to.saturating_sub(from), whole), routine)
    }
}

/// What a part of a time has of what was taken of the whole.
pub(super) fn share(taken: i64, part: i64, whole: i64) -> i64 {
    let part = part.max(0);
    let ns = i128::from(taken) * i128::from(part) / i128::from(whole.max(1));
    i64::try_from(ns).unwrap_or(0).clamp(0, part)
}

/// Most pieces of one path, and most wake-ups that are followed into each other: a path of a minute on a busy server
/// has thousands; one of three seconds of short calls in turn has 300,000. What is left beyond is unknown.
pub const MOST_LINKS: usize = 400_000;
const MOST_DEPTH: usize = 256;

/// The path of a thread, latest piece first, and the forks in it that only stacks can tell from other waits.
#[derive(Debug, Default)]
pub(super) struct Walked {
    pub links: Vec<Link>,
    pub forks: Vec<Fork>,
}

/// The path of `utid` between two moments.
pub(super) fn path(
    threads: &[VecDeque<Piece>],
    switches: &Switches,
    utid: u32,
    from: i64,
    to: i64,
) -> Walked {
    walk(&Kept(threads, switches), utid, from, to)
}

/// The same over any runs.
pub(super) fn walk(threads: &impl Threads, utid: u32, from: i64, to: i64) -> Walked {
    let mut walk = Walk { threads, now: to, walked: Walked::default() };
    if let Some(at) = walk.go(utid, from, to, None).filter(|at| *at > from) {
        walk.walked.links.push(Link::unknown(utid, from, at));
    }
    walk.walked
}

struct Walk<'t, T> {
    threads: &'t T,
    now: i64,
    walked: Walked,
}

/// The branch of a fork, as the path goes on with the thread that had asked for it.
struct Branch {
    /// Number of the fork.
    fork: u16,
    /// Place of the thread that asked among those whose waits are being explained.
    level: usize,
    /// Thread that answered last, and when it had been asked.
    by: u32,
    since: i64,
    /// The path is in a wait of that thread for another one, and beside it stands what this one did meanwhile.
    beside: bool,
}

impl<T: Threads> Walk<'_, T> {
    /// Follows a thread back from a moment to another one; the moment at which it was given up. `beside`: a fork, and the depth at which the
    /// branch that ended last begins; its waits go on behind the moment.
    fn go(&mut self, utid: u32, from: i64, to: i64, beside: Option<(u16, i32)>) -> Option<i64> {
        let (none, threads) = (VecDeque::new(), self.threads);
        // Threads whose waits are being explained: thread, and the moment at which to go on with it.
        let mut waiting: Vec<(u32, i64)> = vec![(utid, from)];
        let mut branch: Option<Branch> = None;
        let (mut utid, mut at) = (utid, to);
        while self.walked.links.len() < MOST_LINKS && threads.go_on() {
            let &(_, low) = waiting.last()?;
            if at <= low {
                // The wait is explained down to its start: go on with the thread that waited.
                let (by, _) = waiting.pop()?;
                let &(above, floor) = waiting.last()?;
                utid = above;
                branch = branch.filter(|branch| branch.level < waiting.len() && branch.since < at);
                if let Some(branch) = branch.as_mut().filter(|branch| branch.level + 1 == waiting.len()) {
                    branch.beside = false;
                }
                if branch.is_none() && beside.is_none() && at > floor {
                    branch = self.fork(above, by, at, waiting.len() - 1);
                }
                continue;
            }
            let depth = waiting.len() as i32 - 1 + beside.map_or(0, |(_, depth)| depth);
            let fork = match (&branch, beside) {
                (_, Some((fork, _))) => Some((fork, true)),
                (Some(branch), None) => Some((branch.fork, false)).filter(|_| branch.beside),
                _ => None,
            };
            let now = self.now;
            let links = &mut self.walked.links;
            let mut push = |kind, start: i64, end: i64, piece: Option<&Piece>| {
                if end > start {
                    let (interrupted, routine) =
                        piece.map_or((0, None), |p| p.interrupts(kind, start, end, now));
                    links.push(Link {
                        from: start,
                        to: end,
                        utid,
                        depth,
                        kind,
                        cpu: piece.filter(|_| kind != Kind::Wait).map(|p| p.cpu),
                        reason: piece.filter(|p| kind == Kind::Wait && p.reason != u8::MAX).map(|p| p.reason),
                        in_dpc: piece.is_some_and(|p| p.in_dpc),
                        ticket: piece.map_or(NO_STACK, |p| p.ticket),
                        displaced_by: piece
                            .filter(|_| kind == Kind::Ready)
                            .map(|p| p.after)
                            .filter(|&after| after != NOBODY),
                        interrupted,
                        routine,
                        fork,
                    });
                }
            };
            let pieces = threads.runs(utid).unwrap_or(&none);
            // The last piece that began before the moment.
            let index = pieces.partition_point(|p| p.from < at);
            let before = index.checked_sub(1).and_then(|i| pieces.get(i));
            if let Some(piece) = before.filter(|p| p.to >= at) {
                push(Kind::Run, piece.from.max(low), at, Some(piece));
                at = piece.from.max(low);
                continue;
            }
            // It was off the processors: the piece behind the moment tells why.
            let off_since = before.map_or(low, |p| p.to).max(low);
            let first = |p: &&Piece| p.left == NEVER && p.ready != NEVER && p.ready < at;
            if let Some(next) = pieces.get(index).filter(first) {
                // Its first run: nothing tells what went before, but it was readied.
                let ready = next.ready.max(off_since);
                push(Kind::Ready, ready, at, Some(next));
                at = ready;
                continue;
            }
            // What left at this very moment was elsewhere before: nothing tells where.
            let Some(next) = pieces.get(index).filter(|p| p.left != NEVER && p.left < at) else {
                // It has not come back.
                let out = if index == pieces.len() { threads.out(utid) } else { None };
                let left = out.map_or(at, |out| out.ns.max(off_since));
                if let Some(out) = out.filter(|_| left < at) {
                    let kind = if out.state == WAITING { Kind::Wait } else { Kind::Ready };
                    push(kind, left, at, None);
                    if let Some(link) = links.last_mut().filter(|_| kind == Kind::Wait) {
                        link.reason = Some(out.reason);
                    }
                    at = left;
                } else {
                    push(Kind::Unknown, off_since, at, None);
                    at = off_since;
                }
                continue;
            };
            let left = next.left.max(off_since);
            let ready = if next.ready == NEVER { at } else { next.ready }.clamp(left, next.from);
            if !next.waited {
                push(Kind::Ready, left, at, Some(next));
                at = left;
            } else if at > ready {
                push(Kind::Ready, ready, at, Some(next));
                at = ready;
            } else {
                let by = Some(next.by).filter(|&by| by != NOBODY && by != utid && waiting.len() < MOST_DEPTH);
                // Only from the moment of the wake-up on does the other thread explain the wait, but for the branch of a fork, which
                // has been followed back from there.
                let reached = next.ready == at || beside.is_some();
                match by {
                    Some(by) if reached && !waiting.iter().any(|w| w.0 == by) => {
                        let level = waiting.len() - 1;
                        let other =
                            branch.as_mut().filter(|b| b.level == level && b.since <= left && b.by != by);
                        if let Some(branch) = other {
                            branch.beside = true;
                            self.go(branch.by, left, at, Some((branch.fork, depth + 1)));
                        }
                        waiting.push((by, left));
                        utid = by;
                    }
                    _ => {
                        push(Kind::Wait, left, at, Some(next));
                        at = left;
                    }
                }
            }
        }
        Some(at)
    }

    /// The fork at whose end a thread began to wait for the answer of another one, if that one had been asked before.
    fn fork(&mut self, caller: u32, by: u32, at: i64, level: usize) -> Option<Branch> {
        let fork = u16::try_from(self.walked.forks.len()).ok()?;
        let (since, mut waits) = forks::asked(self.threads, caller, by, at, &mut forks::MOST_RUNS.clone())?;
        let pieces = self.threads.runs(caller)?;
        let waited = pieces.get(pieces.partition_point(|piece| piece.from < at))?;
        waits.push(Checked::of(waited, Rule::Answer));
        // Whoever was answered meanwhile has asked for something else since.
        let answered = |piece: &Piece| piece.by == by && piece.ready > since && piece.ready < at;
        let first = pieces.partition_point(|piece| piece.from <= since);
        let meanwhile = || pieces.range(first.min(pieces.len())..).take_while(|piece| piece.left < at);
        if meanwhile().count() > forks::MOST_RUNS {
            return None;
        }
        let long = |piece: &Piece| piece.by != NOBODY && piece.from.saturating_sub(piece.left) >= MIN_FORK_NS;
        if meanwhile().any(answered) || !meanwhile().any(long) {
            return None;
        }
        self.walked.forks.push(Fork { waits });
        Some(Branch { fork, level, by, since, beside: false })
    }
}

/// The pieces until context switches ceased; what is behind, where nothing tells what threads did, is unknown.
pub(super) fn until(ceased: i64, utid: u32, from: i64, to: i64, mut links: Vec<Link>) -> Vec<Link> {
    if to <= ceased {
        return links;
    }
    links.retain(|link| link.from < ceased);
    for link in links.iter_mut().filter(|link| link.to > ceased) {
        let whole = link.to.saturating_sub(link.from);
        link.interrupted = share(link.interrupted, ceased.saturating_sub(link.from), whole);
        link.to = ceased;
    }
    links.insert(0, Link::unknown(utid, from.max(ceased), to));
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(from: i64, to: i64, left: i64, ready: i64, by: Option<u32>) -> Piece {
        let (in_dpc, by) = (by.is_none(), by.unwrap_or(NOBODY));
        let (waited, reason, cpu, ticket, waker, after) = (true, 6, 0, 0, 0, NOBODY);
        let (interrupted, routine) = (0, None);
        let (ready_interrupted, ready_routine) = (0, None);
        Piece {
            from,
            to,
            left,
            ready,
            by,
            in_dpc,
            waited,
            reason,
            cpu,
            ticket,
            waker,
            after,
            interrupted,
            routine,
            ready_interrupted,
            ready_routine,
        }
    }

    fn short(links: &[Link]) -> Vec<(i64, i64, u32, &'static str)> {
        links.iter().map(|l| (l.from, l.to, l.utid, l.kind.name())).collect()
    }

    #[test]
    fn a_chain_of_three_is_followed() {
        // 0 waits from 10 to 50, readied by 1, which waited from 20 to 40 for 2, which a DPC woke at 30.
        let first = |to| Piece { left: NEVER, ready: NEVER, ..piece(0, to, 0, 0, None) };
        let zero = vec![first(10), piece(52, 60, 10, 50, Some(1))];
        let one = vec![first(20), piece(41, 51, 20, 40, Some(2))];
        let two = vec![first(12), piece(30, 45, 12, 30, None)];
        let links = path(&[zero.into(), one.into(), two.into()], &Switches::default(), 0, 5, 60).links;
        assert_eq!(
            short(&links),
            [
                (52, 60, 0, "run"),
                (50, 52, 0, "ready"),
                (41, 50, 1, "run"),
                (40, 41, 1, "ready"),
                (30, 40, 2, "run"),
                (20, 30, 2, "wait"),
                (10, 20, 1, "run"),
                (5, 10, 0, "run"),
            ]
        );
        assert_eq!(links.iter().map(|l| l.to - l.from).sum::<i64>(), 55);
        assert_eq!(links.iter().map(|l| l.depth).max(), Some(2));
    }

    #[test]
    fn behind_the_last_context_switch_nothing_is_known() {
        let first = Piece { left: NEVER, ready: NEVER, interrupted: 20, ..piece(0, 40, 0, 0, None) };
        let links = path(&[vec![first].into()], &Switches::default(), 0, 5, 40).links;
        let links = until(30, 0, 5, 40, links);
        assert_eq!(short(&links), [(30, 40, 0, "unknown"), (5, 30, 0, "run")]);
        assert_eq!(links.iter().map(|l| l.interrupted).sum::<i64>(), 12);
        assert_eq!(short(&until(30, 0, 31, 40, links.clone())), [(31, 40, 0, "unknown"), (5, 30, 0, "run")]);
        assert_eq!(until(40, 0, 5, 40, links.clone()), links);
    }

    #[test]
    fn of_two_that_were_asked_at_once_the_last_has_the_wait_for_the_other_too() {
        const MS: i64 = 1_000_000;
        let ms = |from: i64, to: i64, left: i64, ready: i64, by| {
            piece(from * MS, to * MS, left * MS, ready * MS, Some(by))
        };
        let first = Piece { left: NEVER, ready: NEVER, ..ms(0, 10, 0, 0, 9) };
        // 0 asks 2 and 1, waits for 1 until 50, works until 55, and waits for 2 until 80.
        let zero = vec![first, ms(50, 55, 10, 50, 1), ms(80, 90, 55, 80, 2)];
        let one = vec![ms(9, 52, -100, 8, 0)];
        let last = |asked: i64, by| vec![ms(asked + 1, 82, -100, asked, by)];
        let tagged = |last: Vec<Piece>, zero: &[Piece]| {
            let threads = [zero.to_vec().into(), one.clone().into(), last.into()];
            let walked = path(&threads, &Switches::default(), 0, 0, 90 * MS);
            let links = walked.links.iter().map(|l| (l.from / MS, l.to / MS, l.utid, l.fork));
            (links.collect::<Vec<_>>(), walked.forks.len())
        };
        let (links, forks) = tagged(last(7, 0), &zero);
        let both = [(10, 50, 2, Some((0, true))), (10, 50, 1, Some((0, false)))];
        let around = [(80, 90, 0, None), (55, 80, 2, None), (50, 55, 0, None), (0, 10, 0, None)];
        assert_eq!((links.get(3..5), forks), (Some(&both[..]), 1));
        assert_eq!([&links[..3], &links[5..]].concat(), around);
        // Whoever was woken by somebody else, or has answered meanwhile, was asked later.
        assert_eq!(tagged(last(7, 9), &zero).1, 0);
        let answered = [first, ms(30, 31, 10, 30, 2), ms(50, 55, 31, 50, 3), ms(80, 90, 55, 80, 2)];
        assert_eq!(tagged(last(7, 0), &answered).1, 0);
        // It works on its own between the request and the wait: that stays its own.
        let works = [Piece { to: 55 * MS, ..first }, ms(80, 90, 55, 80, 2)];
        let (links, forks) = tagged(last(7, 0), &works);
        assert_eq!((links, forks), (vec![(80, 90, 0, None), (55, 80, 2, None), (0, 55, 0, None)], 0));
    }

    #[test]
    fn two_that_wake_each_other_end() {
        let zero = vec![piece(10, 20, 0, 10, Some(1)), piece(30, 40, 20, 30, Some(1))];
        let one = vec![piece(10, 30, 0, 10, Some(0))];
        let links = path(&[zero.into(), one.into()], &Switches::default(), 0, 0, 40).links;
        assert_eq!(links.iter().map(|l| l.to - l.from).sum::<i64>(), 40);
    }

    #[test]
    fn what_is_not_recorded_is_unknown() {
        let links = path(&[VecDeque::new()], &Switches::default(), 0, 3, 9).links;
        assert_eq!(short(&links), [(3, 9, 0, "unknown")]);
    }

    #[test]
    fn the_first_run_was_ready_since_it_was_readied() {
        let first = Piece { left: NEVER, ..piece(30, 40, 0, 12, Some(1)) };
        let links = path(&[vec![first].into()], &Switches::default(), 0, 5, 35).links;
        assert_eq!(short(&links), [(30, 35, 0, "run"), (12, 30, 0, "ready"), (5, 12, 0, "unknown")]);
        // It was readied before the stretch.
        let links = path(&[vec![first].into()], &Switches::default(), 0, 20, 35).links;
        assert_eq!(short(&links), [(30, 35, 0, "run"), (20, 30, 0, "ready")]);
    }

    #[test]
    fn interrupts_have_their_part_of_a_part_of_a_run() {
        let run = Piece { left: NEVER, ready: NEVER, interrupted: 60, ..piece(0, 100, 0, 0, None) };
        let taken = |to, from, at| {
            let links = path(&[vec![Piece { to, ..run }].into()], &Switches::default(), 0, from, at).links;
            links.iter().map(|l| l.interrupted).sum::<i64>()
        };
        assert_eq!((taken(100, 0, 100), taken(100, 50, 100), taken(100, 0, 10)), (60, 30, 6));
        // It still runs: what was counted until now lies in the time until now.
        assert_eq!((taken(i64::MAX, 0, 80), taken(i64::MAX, 40, 80)), (60, 30));
        // And of a part of a time in the queue, which began at 20.
        let queued = Piece { ready_interrupted: 40, ..piece(100, 110, 10, 20, None) };
        let links = path(&[vec![queued].into()], &Switches::default(), 0, 60, 100).links;
        assert_eq!(links.iter().map(|l| (l.kind, l.interrupted)).collect::<Vec<_>>(), [(Kind::Ready, 20)]);
    }

    #[test]
    fn a_thread_that_left_twice_ends_nowhere() {
        // Switched out at 10 and, on another processor, at 20 again. The path begins at this very moment.
        let mut again = piece(30, 40, 20, 25, Some(1));
        let first = Piece { left: NEVER, ready: NEVER, ..piece(0, 10, 0, 0, None) };
        for waited in [true, false] {
            again.waited = waited;
            let links = path(&[vec![first, again].into()], &Switches::default(), 0, 5, 20).links;
            assert_eq!(short(&links), [(10, 20, 0, "unknown"), (5, 10, 0, "run")]);
        }
    }
}
