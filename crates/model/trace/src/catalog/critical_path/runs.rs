//! The runs of all threads, as far back as paths reach.

use super::walk::{NEVER, NOBODY, Piece};
use crate::event::{Context, Event};
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
    /// Thread that runs on each processor.
    open: Vec<Option<u32>>,
    latest: LatestRuns,
    /// Runs kept, and those that ever were.
    kept: usize,
    pub seen: usize,
    /// Kept runs at which some are forgotten, if more than [`MAX_RUNS`].
    limit: usize,
    first_ns: i64,
}

impl Runs {
    /// A context switch. `all`: nothing may be forgotten.
    pub fn switch(&mut self, event: &Event<'_>, cx: &mut Context<'_>, all: bool) {
        let switch = cx.model.switches.current;
        let cpu = event.record.cpu;
        let index = usize::from(cpu);
        if self.open.len() <= index {
            self.open.resize(index + 1, None);
        }
        let new = (switch.new_tid != 0).then_some(switch.new_utid);
        let old = self.open.get_mut(index).and_then(|slot| std::mem::replace(slot, new));
        if let (Some(old), Some(run)) = (old, switch.old_run)
            && let Some(piece) = self.threads.get_mut(old as usize).and_then(VecDeque::back_mut)
        {
            piece.to = event.ns;
            piece.interrupted = run.interrupted_ns;
            piece.routine = run
                .routine
                .filter(|_| run.interrupted_ns >= MIN_INTERRUPTED_NS)
                .map(|routine| cx.place(None, routine));
        }
        let since = match (switch.ready_ns, switch.prev) {
            (Some(ready), _) => event.ns.saturating_sub(ready),
            (None, prev) => prev.map_or(event.ns, |prev| prev.ns),
        };
        self.latest.switch(cpu, event.ns, &switch);
        let mut queue = Queue::behind(if switch.old_tid == 0 { NOBODY } else { switch.old_utid });
        if new.is_some() && event.ns.saturating_sub(since) >= LONG_READY_NS {
            queue = queue.since(self.latest.during(cpu, since, event.ns));
        }
        let Some(new) = new else { return };
        if self.threads.len() <= new as usize {
            self.threads.resize_with(new as usize + 1, VecDeque::new);
        }
        let explains = all || switch.since_last_ns.is_none_or(|off| off >= MIN_STACK_OFF_NS);
        let piece = Piece {
            from: event.ns,
            to: i64::MAX,
            left: switch.prev.map_or(NEVER, |prev| prev.ns),
            ready: switch.ready_ns.map_or(NEVER, |ready| event.ns.saturating_sub(ready)),
            // The idle thread does nothing that could explain a wait: an interrupt came while it ran.
            by: switch
                .ready
                .and_then(|ready| ready.by)
                .filter(|by| cx.model.threads.get(*by).is_some_and(|thread| thread.tid != 0))
                .unwrap_or(NOBODY),
            in_dpc: switch.ready.is_some_and(|ready| ready.in_dpc),
            waited: switch.prev.is_none_or(|prev| prev.state == WAITING),
            reason: switch.prev.map_or(u8::MAX, |prev| prev.reason),
            cpu,
            ticket: match explains {
                true => cx.stack_ticket_if_recorded(event, Some(switch.new_tid), Some(new)),
                false => NO_STACK,
            },
            interrupted: 0,
            routine: None,
            after: queue.after,
            ready_interrupted: queue.interrupted,
            ready_routine: queue
                .routine
                .filter(|_| queue.interrupted >= MIN_INTERRUPTED_NS)
                .map(|routine| cx.place(None, routine)),
        };
        if let Some(pieces) = self.threads.get_mut(new as usize) {
            if pieces.is_empty() {
                // Many threads run once.
                pieces.reserve_exact(1);
            }
            pieces.push_back(piece);
        }
        if self.seen == 0 {
            self.first_ns = event.ns;
        }
        self.seen += 1;
        self.kept += 1;
        if !all && self.kept >= self.limit.max(MAX_RUNS) {
            self.forget(event.ns);
        }
    }

    /// Takes over what interrupted the runs that go on now: of a window that was late the last one does.
    pub fn look_at_open(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        for (cpu, open) in self.open.iter().enumerate() {
            let Some(utid) = *open else { continue };
            let Ok(cpu) = u16::try_from(cpu) else { continue };
            let Some(running) = cx.model.cpus.running(cpu, event.ns).filter(|r| r.utid == utid) else {
                continue;
            };
            let interrupted = cx.model.cpus.interrupted_ns(cpu).saturating_sub(running.interrupted_ns);
            let routine =
                cx.model.cpus.interrupting_routine(cpu).filter(|_| interrupted >= MIN_INTERRUPTED_NS);
            let routine = routine.map(|routine| cx.place(None, routine));
            let last = self.threads.get_mut(utid as usize).and_then(VecDeque::back_mut);
            if let Some(piece) = last.filter(|piece| piece.to == i64::MAX) {
                (piece.interrupted, piece.routine) = (interrupted, routine);
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
    use super::*;

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
