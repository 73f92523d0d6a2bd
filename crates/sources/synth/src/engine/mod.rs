//! The simulation: sources of events, one clock, the state of every processor.

mod activity;
mod arrivals;
mod cpus;
mod durations;
mod interrupts;
mod later;
mod objects;
mod sampler;
mod stack;

pub(crate) use crate::world::{Style, Switch};
pub(crate) use activity::activity;
pub(crate) use arrivals::Arrivals;
pub(crate) use cpus::{Cpus, Running};
pub(crate) use durations::Durations;
pub(crate) use interrupts::{Interrupts, interrupts};
pub(crate) use later::{Action, Pause, Then};
pub(crate) use objects::{ObjectStates, Waiter, Wanting};
pub(crate) use sampler::{Load, Sampler};
pub(crate) use stack::{Owner as StackOwner, key as stack_key};

use crate::output::Output;
use crate::truth::Truth;
use crate::world::World;
use etwhy_base::rng::Xoshiro;
use etwhy_etl::write::RecordBuf;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

/// Something that brings events at moments it knows ahead.
pub(crate) trait Source {
    /// Moment of its next event in nanoseconds, `None` when it is done.
    fn next(&self) -> Option<i64>;
    /// Brings the events of that moment and moves on.
    fn fire(&mut self, engine: &mut Engine) -> io::Result<()>;
    /// Whether its events come later while the machine stands still; else they do not come at all.
    fn waits_for_the_machine(&self) -> bool {
        true
    }
}

/// What sources share.
pub(crate) struct Engine<'w> {
    pub(crate) world: &'w World,
    pub(crate) out: Output,
    pub(crate) cpus: Cpus,
    pub(crate) truth: Truth,
    pub(crate) rng: Xoshiro,
    pub(crate) now: i64,
    pub(crate) switches: bool,
    /// Locks, queues and disks.
    pub(crate) objects: ObjectStates,
    agenda: later::Agenda,
}

impl<'w> Engine<'w> {
    pub(crate) fn new(world: &'w World, out: Output, switches: bool) -> Engine<'w> {
        Engine {
            cpus: Cpus::new(world.facts.cpus),
            truth: Truth::new(world),
            rng: Xoshiro::seeded(world.facts.seed),
            world,
            out,
            now: 0,
            switches,
            objects: ObjectStates::new(world),
            agenda: later::Agenda::default(),
        }
    }

    /// Runs all sources to their ends, or to the end of the trace.
    pub(crate) fn run(
        &mut self,
        sources: &mut [Box<dyn Source>],
        end: i64,
        progress: &mut dyn FnMut(u64),
    ) -> io::Result<()> {
        let mut queue: BinaryHeap<Reverse<(i64, usize)>> =
            sources.iter().enumerate().filter_map(|(i, s)| Some(Reverse((s.next()?, i)))).collect();
        let mut reported = 0;
        while let Some(Reverse((due, at))) = queue.pop() {
            if due >= end {
                continue;
            }
            if let Some(later) = self.world.facts.stalled_until(due)
                && sources.get(at).is_some_and(|s| s.waits_for_the_machine())
            {
                queue.push(Reverse((later, at)));
                continue;
            }
            self.catch_up(due)?;
            self.now = self.now.max(due);
            self.out.advance(self.now)?;
            let Some(source) = sources.get_mut(at) else { continue };
            source.fire(self)?;
            if let Some(next) = source.next() {
                queue.push(Reverse((next.max(due), at)));
            }
            if self.out.bytes() - reported > 4 << 20 {
                reported = self.out.bytes();
                progress(reported);
            }
        }
        self.catch_up(end)?;
        self.now = self.now.max(end);
        self.out.advance(self.now)?;
        self.finish_interrupts()
    }

    /// Counts what was recorded, for the truth. Once the session is silent, only other providers' events are.
    pub(crate) fn tally(&mut self, table: &'static str, name: &str, figures: &[(&'static str, i64)]) {
        if self.now < self.world.facts.silent_from || table == "event" {
            self.truth.tally.add(table, name, figures);
        }
    }

    /// Adds a record.
    pub(crate) fn add(
        &mut self,
        cpu: u16,
        ns: i64,
        build: impl FnOnce(&mut RecordBuf, i64) -> &mut RecordBuf,
    ) -> io::Result<()> {
        self.out.add(cpu, ns, build)
    }

    /// Pointer size of the machine.
    pub(crate) fn pointer(&self) -> u8 {
        self.world.facts.pointer_size
    }

    /// The processor where a thread's event happens, and makes the thread run there for `hold` when context
    /// switches are recorded: events without ids are attributed by them.
    pub(crate) fn run_briefly(
        &mut self,
        thread: usize,
        allowed: &[u16],
        n: u64,
        hold: i64,
        stack: Option<usize>,
    ) -> io::Result<u16> {
        let until = self.now + hold.max(1000);
        if let Some(cpu) = self.cpus.where_runs(thread) {
            if self.switches {
                self.stay(cpu, thread, until, stack)?;
            }
            return Ok(cpu);
        }
        let count = self.cpus.len() as u64;
        let home = |n: u64| match allowed {
            [] => ((thread as u64 * 7 + n / 64) % count) as u16,
            list => list.get((n % list.len() as u64) as usize).copied().unwrap_or(0),
        };
        if !self.switches || thread == 0 {
            return Ok(home(n));
        }
        let tries = if allowed.is_empty() { count } else { allowed.len() as u64 };
        let order = || (0..tries).map(|i| home(if allowed.is_empty() { n + 64 * i } else { n + i }));
        // Where nobody is; else where only a load is.
        let free = |c: &u16| self.cpus.is_free(*c) && !self.cpus.is_interrupted(*c, self.now);
        let idle = order().find(|cpu| free(cpu) && self.cpus.running(*cpu).is_none());
        let Some(cpu) = idle.or_else(|| order().find(free)) else {
            self.truth.homeless += 1;
            return Ok(home(n));
        };
        self.take(cpu, Running { thread, load: None, stack }, Switch::PREEMPTED)?;
        self.cpus.set_brief(cpu, until);
        self.end_run_at(until, cpu, thread);
        Ok(cpu)
    }

    /// True when [`Engine::run_briefly`] will find a processor for a thread.
    pub(crate) fn has_room(&self, thread: usize, allowed: &[u16]) -> bool {
        if !self.switches || thread == 0 {
            return true;
        }
        if let Some(cpu) = self.cpus.where_runs(thread) {
            return !self.cpus.is_interrupted(cpu, self.now);
        }
        let free = |c: u16| self.cpus.is_free(c) && !self.cpus.is_interrupted(c, self.now);
        match allowed {
            [] => (0..self.cpus.len() as u16).any(free),
            list => list.iter().any(|c| free(*c)),
        }
    }

    /// A thread that runs already stays where it is for its event: the sampler must not move it meanwhile.
    fn stay(&mut self, cpu: u16, thread: usize, until: i64, stack: Option<usize>) -> io::Result<()> {
        let load = self.cpus.load(cpu).filter(|l| l.thread == thread).and_then(|l| l.load);
        match self.cpus.brief_until(cpu) {
            // Somebody else's business, which ends by itself: an activity or a blocked call that went on.
            None if !self.cpus.is_free(cpu) => return Ok(()),
            Some(end) if end >= until => return Ok(()),
            _ => {}
        }
        // A load says what its threads do; only others are sampled with the stacks of their events.
        let stack = if load.is_some() { None } else { stack };
        self.take(cpu, Running { thread, load, stack }, Switch::PREEMPTED)?;
        self.cpus.set_brief(cpu, until);
        self.end_run_at(until, cpu, thread);
        Ok(())
    }
}
