//! The runs of all threads, as far back as paths reach.

use super::walk::{NEVER, NOBODY, Piece, share};
use crate::event::{Context, Event};
use crate::model::cpu::Cpus;
use crate::model::place::PlaceId;
use crate::model::ran::{LatestRuns, Ran};
use crate::model::stack::NO_STACK;
use crate::model::switch::WAITING;
use std::collections::VecDeque;

/// Runs that are kept where nobody asked for a time range beforehand: seconds of a busy machine, minutes of a quiet one.
const MAX_RUNS: usize = 1 << 19;

/// What came back sooner gets no stack, except where somebody asked for the path: it explains little, and there are many.
const MIN_STACK_OFF_NS: i64 = 5_000_000;

/// A thread that was ready for longer asks who had the processor most of that time; for others it is who had it last.
const LONG_READY_NS: i64 = 1_000_000;

/// Runs of a processor that are looked at for that.
const MOST_LOOKED: usize = 128;

/// Of less time in DPCs and ISRs nobody asks whose they were: every run of a busy machine has some.
const MIN_INTERRUPTED_NS: i64 = 100_000;

#[derive(Default)]
pub(super) struct Runs {
    /// Runs of each thread, in time order.
    pub threads: Vec<VecDeque<Piece>>,
    /// The last switch of each processor; `None` where a file does not say whose its records are.
    last: Vec<Option<Last>>,
    latest: LatestRuns,
    /// Runs kept, and those that ever were.
    kept: usize,
    pub seen: usize,
    /// Kept runs at which some are forgotten, if more than [`MAX_RUNS`].
    limit: usize,
    first_ns: i64,
}

/// The last switch of a processor.
#[derive(Clone, Copy)]
struct Last {
    /// Thread that came; [`NOBODY`] for the idle thread.
    utid: u32,
    /// When, ns.
    from: i64,
    /// What [`Cpus::interrupted_ns`] was then.
    interrupted: i64,
}

impl Last {
    /// What DPCs and ISRs took of a part of the time since then, in which some is not known: as much of all as of what is known. And
    /// the routine that took most of it.
    fn interrupts(&self, cpu: u16, part: i64, now: i64, cx: &mut Context<'_>) -> (i64, Option<PlaceId>) {
        let cpus = &cx.model.cpus;
        let gap = cpus
            .gap_behind(cpu, self.from)
            .map_or(0, |gap| gap.1.min(now).saturating_sub(gap.0.max(self.from)).max(0));
        let taken = cpus.interrupted_ns(cpu).saturating_sub(self.interrupted);
        let ns = share(taken, part, now.saturating_sub(self.from).saturating_sub(gap));
        // A switch that has just come has ended the time of the routines.
        let routine = cpus.interrupting_routine(cpu).or_else(|| cpus.replaced_routine(cpu));
        let routine = routine.filter(|_| ns >= MIN_INTERRUPTED_NS);
        (ns, routine.map(|routine| cx.place(None, routine)))
    }
}

/// The last run of a thread if its end is not known.
fn open_piece(threads: &mut [VecDeque<Piece>], utid: u32) -> Option<&mut Piece> {
    let last = threads.get_mut(utid as usize).and_then(VecDeque::back_mut);
    last.filter(|piece| piece.to == i64::MAX)
}

/// Ends a run that nothing has seen ending: where records of its processor begin to be missing, or, where single events are, at once.
fn cut(piece: &mut Piece, ns: i64, cpus: &Cpus) -> bool {
    let gap = cpus.gap_behind(piece.cpu, piece.from).filter(|gap| gap.0 <= ns);
    piece.to = gap.map_or(piece.from, |gap| gap.0.max(piece.from));
    gap.is_some()
}

impl Runs {
    /// A context switch. `all`: nothing may be forgotten. `waker`: the stack of the thread that has ended a long wait of the one that comes.
    pub fn switch(&mut self, event: &Event<'_>, cx: &mut Context<'_>, all: bool, waker: i32) {
        let switch = cx.model.switches.current;
        let cpu = event.record.cpu;
        let index = usize::from(cpu);
        if self.last.len() <= index {
            self.last.resize(index + 1, None);
        }
        let new = (switch.new_tid != 0).then_some(switch.new_utid);
        let left = (switch.old_tid != 0).then_some(switch.old_utid);
        let last = self.last.get(index).copied().flatten();
        // A file whose buffers all processors share does not say where a thread ran, but each switch whose run ends.
        let placed = cx.model.cpus.running(cpu, event.ns).is_some();
        if let (Some(last), Some(run)) = (last, switch.old_run) {
            if let Some(piece) = open_piece(&mut self.threads, last.utid) {
                piece.to = event.ns;
                piece.interrupted = run.interrupted_ns;
                piece.routine = run
                    .routine
                    .filter(|_| run.interrupted_ns >= MIN_INTERRUPTED_NS)
                    .map(|routine| cx.place(None, routine));
            }
        } else if !placed {
            if let Some(piece) = left.and_then(|left| open_piece(&mut self.threads, left))
                && !cut(piece, event.ns, &cx.model.cpus)
            {
                piece.to = event.ns;
            }
        } else {
            if let Some(last) = last {
                self.lose(last.utid, Some(cpu), event.ns, cx);
            }
            if let Some(left) = left {
                self.lose(left, None, event.ns, cx);
                self.came_unseen(left, cpu, event.ns, cx);
            }
        }
        let (utid, interrupted) = (new.unwrap_or(NOBODY), cx.model.cpus.interrupted_ns(cpu));
        if let Some(slot) = self.last.get_mut(index) {
            *slot = placed.then_some(Last { utid, from: event.ns, interrupted });
        }
        let ready = switch.ready.or(switch.behind_gap.map(|(_, ready)| ready));
        let readied_ns = match switch.behind_gap {
            Some((_, ready)) => Some(ready.ns),
            None => switch.ready_ns.map(|ready| event.ns.saturating_sub(ready)),
        };
        let since = readied_ns.or(switch.prev.map(|prev| prev.ns)).unwrap_or(event.ns);
        self.latest.switch(cpu, event.ns, &switch);
        let mut queue = Queue::behind(if switch.old_tid == 0 { NOBODY } else { switch.old_utid });
        if new.is_some() && event.ns.saturating_sub(since) >= LONG_READY_NS {
            queue = queue.since(self.latest.during(cpu, since, event.ns));
        }
        let Some(new) = new else { return };
        // If it is still on another processor, it left there unseen.
        self.lose(new, None, event.ns, cx);
        let explains = all || switch.since_last_ns.is_none_or(|off| off >= MIN_STACK_OFF_NS);
        let piece = Piece {
            from: event.ns,
            to: i64::MAX,
            left: match switch.behind_gap {
                Some((since, _)) => since,
                None => switch.prev.map_or(NEVER, |prev| prev.ns),
            },
            ready: readied_ns.unwrap_or(NEVER),
            // The idle thread does nothing that could explain a wait: an interrupt came while it ran.
            by: ready
                .and_then(|ready| ready.by)
                .filter(|by| cx.model.threads.get(*by).is_some_and(|thread| thread.tid != 0))
                .unwrap_or(NOBODY),
            in_dpc: ready.is_some_and(|ready| ready.in_dpc),
            waited: switch.prev.is_none_or(|prev| prev.state == WAITING),
            reason: switch.prev.map_or(u8::MAX, |prev| prev.reason),
            cpu,
            ticket: match explains {
                true => cx.stack_ticket_if_recorded(event, Some(switch.new_tid), Some(new)),
                false => NO_STACK,
            },
            waker,
            interrupted: 0,
            routine: None,
            after: queue.after,
            ready_interrupted: queue.interrupted,
            ready_routine: queue
                .routine
                .filter(|_| queue.interrupted >= MIN_INTERRUPTED_NS)
                .map(|routine| cx.place(None, routine)),
        };
        self.keep(new, piece);
        if !all && self.kept >= self.limit.max(MAX_RUNS) {
            self.forget(event.ns);
        }
    }

    fn keep(&mut self, utid: u32, piece: Piece) {
        if self.threads.len() <= utid as usize {
            self.threads.resize_with(utid as usize + 1, VecDeque::new);
        }
        if self.seen == 0 {
            self.first_ns = piece.from;
        }
        let Some(pieces) = self.threads.get_mut(utid as usize) else { return };
        if pieces.is_empty() {
            // Many threads run once.
            pieces.reserve_exact(1);
        }
        pieces.push_back(piece);
        self.seen += 1;
        self.kept += 1;
    }

    /// Ends the open run of a thread, of that processor if one is given, that left unseen. What it did behind that nobody knows.
    fn lose(&mut self, utid: u32, on: Option<u16>, ns: i64, cx: &mut Context<'_>) {
        let Some(piece) = open_piece(&mut self.threads, utid) else { return };
        if on.is_some_and(|cpu| cpu != piece.cpu) || !cut(piece, ns, &cx.model.cpus) {
            return;
        }
        let last = self.last.get(usize::from(piece.cpu)).copied().flatten();
        if let Some(last) = last.filter(|last| last.utid == utid) {
            let known = piece.to.saturating_sub(piece.from);
            (piece.interrupted, piece.routine) = last.interrupts(piece.cpu, known, ns, cx);
        }
    }

    /// The last switch of a processor, and the end of a gap, if that lies behind it.
    fn behind_gap(&self, cpu: u16, ns: i64, cpus: &Cpus) -> Option<(Last, i64)> {
        let last = self.last.get(usize::from(cpu)).copied().flatten()?;
        cpus.gap_before(cpu, ns).filter(|&end| end > last.from).map(|end| (last, end))
    }

    /// A thread that is on a processor now has been there since the last gap ended, if it has not switched since.
    fn came_unseen(&mut self, utid: u32, cpu: u16, ns: i64, cx: &mut Context<'_>) {
        let Some((last, end)) = self.behind_gap(cpu, ns, &cx.model.cpus) else { return };
        let before = self.threads.get(utid as usize).and_then(VecDeque::back);
        let from = before.map_or(end, |piece| piece.to.max(end));
        if from >= ns {
            return;
        }
        let (interrupted, routine) = last.interrupts(cpu, ns.saturating_sub(from), ns, cx);
        self.keep(utid, Piece { interrupted, routine, ..Piece::unseen(from, ns, cpu) });
    }

    /// Takes over what interrupted the runs that go on now: of a window that was late the last one does.
    pub fn look_at_open(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        for index in 0..self.last.len() {
            let Some(last) = self.last.get(index).copied().flatten() else { continue };
            let Ok(cpu) = u16::try_from(index) else { continue };
            if cx.model.cpus.gap_behind(cpu, last.from).is_some_and(|gap| gap.0 <= event.ns) {
                self.lose(last.utid, Some(cpu), event.ns, cx);
                continue;
            }
            let Some(running) = cx.model.cpus.running(cpu, event.ns).filter(|r| r.utid == last.utid) else {
                continue;
            };
            let interrupted = cx.model.cpus.interrupted_ns(cpu).saturating_sub(running.interrupted_ns);
            let routine =
                cx.model.cpus.interrupting_routine(cpu).filter(|_| interrupted >= MIN_INTERRUPTED_NS);
            let routine = routine.map(|routine| cx.place(None, routine));
            if let Some(piece) = open_piece(&mut self.threads, last.utid) {
                (piece.interrupted, piece.routine) = (interrupted, routine);
            }
        }
        let cpu = event.record.cpu;
        if self.behind_gap(cpu, event.ns, &cx.model.cpus).is_some()
            && let Some(utid) = cx.utid(event)
        {
            self.came_unseen(utid, cpu, event.ns, cx);
        }
    }

    /// Ends the runs behind which records of their processors are missing up to the end of the trace.
    pub fn end(&mut self, ns: i64, cpus: &Cpus) {
        for piece in self.threads.iter_mut().filter_map(VecDeque::back_mut) {
            let lost = cpus.gap_behind(piece.cpu, piece.from).is_some_and(|gap| gap.0 <= ns);
            if piece.to == i64::MAX && lost {
                cut(piece, ns, cpus);
            }
        }
    }

    /// Forgets the oldest quarter.
    fn forget(&mut self, now: i64) {
        let begin = self.first_ns.saturating_add(now.saturating_sub(self.first_ns) / 4);
        self.kept = 0;
        for pieces in &mut self.threads {
            // The last run of a thread stays: it may go on.
            let ended = pieces.partition_point(|piece| piece.to < begin).min(pieces.len().saturating_sub(1));
            pieces.drain(..ended);
            if pieces.capacity() > 4 * pieces.len() + 4 {
                pieces.shrink_to_fit();
            }
            self.kept += pieces.len();
        }
        self.first_ns = begin;
        // The last runs of very many threads, or a first moment far too early: it must pay to look at all of them again.
        self.limit = self.kept.saturating_add(MAX_RUNS / 8);
    }
}

/// What had a processor while a thread was ready.
struct Queue {
    /// The thread that had it longest; [`NOBODY`] where it was idle longer than any had it.
    after: u32,
    /// What DPCs and ISRs took of the time.
    interrupted: i64,
    /// Routine that took most of that.
    routine: Option<u64>,
}

impl Queue {
    /// Where nothing else is known: the thread that had it last.
    fn behind(last: u32) -> Queue {
        Queue { after: last, interrupted: 0, routine: None }
    }

    /// By the runs in that time, each with its own time and that of interrupts.
    fn since(self, during: impl Iterator<Item = (Ran, i64, i64)>) -> Queue {
        let (mut threads, mut routines) = (Vec::new(), Vec::new());
        let mut interrupted = 0i64;
        for (run, own, taken) in during.take(MOST_LOOKED) {
            add(&mut threads, if run.idle { NOBODY } else { run.utid }, own);
            add(&mut routines, run.routine, taken);
            interrupted = interrupted.saturating_add(taken);
        }
        Queue { after: most(&threads).unwrap_or(self.after), interrupted, routine: most(&routines).flatten() }
    }
}

fn add<K: PartialEq>(sums: &mut Vec<(K, i64)>, key: K, ns: i64) {
    if ns <= 0 {
        return;
    }
    match sums.iter_mut().find(|sum| sum.0 == key) {
        Some(sum) => sum.1 = sum.1.saturating_add(ns),
        None => sums.push((key, ns)),
    }
}

/// Of equal ones the latest.
fn most<K: Copy>(sums: &[(K, i64)]) -> Option<K> {
    sums.iter().rev().max_by_key(|sum| sum.1).map(|sum| sum.0)
}

#[cfg(test)]
mod tests {
    use super::super::walk::{Kind, path};
    use super::*;
    use crate::model::switch::Switches;

    /// The path from 0 to 40 of a thread that came to processor 1 at 2, and of whose leaving nothing tells.
    fn after_loss(gaps: &[(i64, i64)], behind: &[Piece]) -> Vec<(Kind, i64, i64)> {
        let cpus = Cpus::lacking(1, gaps);
        let mut piece = Piece::unseen(2, i64::MAX, 1);
        assert_eq!(cut(&mut piece, 40, &cpus), !gaps.is_empty());
        let pieces: VecDeque<Piece> = [piece].into_iter().chain(behind.iter().copied()).collect();
        let links = path(&[pieces], &Switches::default(), 0, 0, 40).links;
        links.iter().map(|link| (link.kind, link.from, link.to)).collect()
    }

    #[test]
    fn a_run_whose_end_is_lost_ends_with_its_records() {
        let unknown = |from: i64, to: i64| (Kind::Unknown, from, to);
        let run = |from: i64, to: i64| (Kind::Run, from, to);
        assert_eq!(after_loss(&[(10, 20)], &[]), [unknown(10, 40), run(2, 10), unknown(0, 2)]);
        // The first switch behind the gap says that it was back.
        let back = [Piece::unseen(20, 40, 1)];
        assert_eq!(after_loss(&[(10, 20)], &back), [run(20, 40), unknown(10, 20), run(2, 10), unknown(0, 2)]);
        // A single lost event may have been any.
        assert_eq!(after_loss(&[], &[]), [unknown(2, 40), unknown(0, 2)]);
        // What is missing later, or on another processor, says nothing about it.
        assert!(!cut(&mut Piece::unseen(25, i64::MAX, 1), 40, &Cpus::lacking(1, &[(10, 20), (50, 60)])));
        assert!(!cut(&mut Piece::unseen(5, i64::MAX, 0), 40, &Cpus::lacking(1, &[(10, 20)])));
    }

    fn behind(runs: &[(u32, i64, i64)]) -> (u32, i64, Option<u64>) {
        let during = runs.iter().rev().map(|&(utid, own, taken)| {
            let routine = (taken > 0).then_some(u64::from(utid) + 100);
            let idle = utid == NOBODY;
            (Ran { utid, idle, from: 0, to: own, interrupted: taken, routine }, own, taken)
        });
        let queue = Queue::behind(9).since(during);
        (queue.after, queue.interrupted, queue.routine)
    }

    #[test]
    fn who_had_most_of_the_time_counts() {
        // The tool that ran last did not keep a thread waiting that waited for long.
        assert_eq!(behind(&[(1, 70, 0), (2, 3, 0), (NOBODY, 2, 0), (2, 5, 0)]), (1, 0, None));
        assert_eq!(behind(&[(1, 2, 0), (2, 8, 0)]), (2, 0, None));
        assert_eq!(behind(&[(2, 3, 0), (NOBODY, 20, 0)]).0, NOBODY, "the processor was idle");
        assert_eq!(behind(&[]), (9, 0, None), "only who had it last is known");
        // A driver kept the processor from those who had it, too.
        assert_eq!(behind(&[(1, 10, 40), (NOBODY, 1, 50)]), (1, 90, Some(u64::from(NOBODY) + 100)));
    }
}
