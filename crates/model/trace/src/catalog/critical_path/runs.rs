//! The runs of all threads, as far back as paths reach.

use super::walk::{NEVER, NOBODY, Piece};
use crate::event::{Context, Event};
use crate::model::stack::NO_STACK;
use crate::model::switch::WAITING;
use std::collections::VecDeque;

/// Runs that are kept where nobody asked for a time range beforehand: seconds of a busy machine, minutes of a quiet one.
const MAX_RUNS: usize = 1 << 19;

/// What came back sooner gets no stack, except where somebody asked for the path: it explains little, and there are many.
const MIN_STACK_OFF_NS: i64 = 5_000_000;

/// Of less time in DPCs and ISRs nobody asks whose they were: every run of a busy machine has some.
const MIN_INTERRUPTED_NS: i64 = 100_000;

#[derive(Default)]
pub(super) struct Runs {
    /// Runs of each thread, in time order.
    pub threads: Vec<VecDeque<Piece>>,
    /// Thread that runs on each processor.
    open: Vec<Option<u32>>,
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
            after: if switch.old_tid == 0 { NOBODY } else { switch.old_utid },
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
