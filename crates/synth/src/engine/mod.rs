//! The simulation: sources of events, one clock, the state of every processor.

mod activity;
mod arrivals;
mod cpus;
mod interrupts;
mod sampler;
mod stack;

pub(crate) use activity::activity;
pub(crate) use arrivals::Arrivals;
pub(crate) use cpus::{Cpus, Running, Switch};
pub(crate) use interrupts::{Pending, interrupts};
pub(crate) use sampler::{Load, Sampler};
pub(crate) use stack::{Owner as StackOwner, Style, key as stack_key};

use crate::output::Output;
use crate::rng::Rng;
use crate::truth::Truth;
use crate::world::World;
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
}

/// What sources share.
pub(crate) struct Engine<'w> {
    pub(crate) world: &'w World,
    pub(crate) out: Output,
    pub(crate) cpus: Cpus,
    pub(crate) truth: Truth,
    pub(crate) rng: Rng,
    pub(crate) now: i64,
    pub(crate) switches: bool,
    /// Ends of the short runs that events need, see [`Engine::run_briefly`].
    ends: BinaryHeap<Reverse<(i64, u16, usize)>>,
}

impl<'w> Engine<'w> {
    pub(crate) fn new(world: &'w World, out: Output, switches: bool) -> Engine<'w> {
        Engine {
            cpus: Cpus::new(world.facts.cpus),
            truth: Truth::new(world),
            rng: Rng::new(world.facts.seed),
            world,
            out,
            now: 0,
            switches,
            ends: BinaryHeap::new(),
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
            self.end_runs(due)?;
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
        self.end_runs(end)?;
        self.now = self.now.max(end);
        self.out.advance(self.now)
    }

    fn end_runs(&mut self, until: i64) -> io::Result<()> {
        while let Some(&Reverse((due, cpu, thread))) = self.ends.peek() {
            if due > until {
                break;
            }
            self.ends.pop();
            self.now = self.now.max(due);
            self.out.advance(self.now)?;
            self.release(cpu, thread, Switch::WAITING)?;
        }
        Ok(())
    }

    /// Adds a record.
    pub(crate) fn add(
        &mut self,
        cpu: u16,
        ns: i64,
        build: impl FnOnce(&mut RecordBuf, i64),
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
        if let Some(cpu) = self.cpus.where_runs(thread) {
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
        let free = (0..tries).map(|i| home(if allowed.is_empty() { n + 64 * i } else { n + i }));
        let Some(cpu) = free.into_iter().find(|&cpu| self.cpus.is_free(cpu)) else { return Ok(home(n)) };
        self.take(cpu, Running { thread, load: None, stack }, Switch::PREEMPTED)?;
        self.ends.push(Reverse((self.now + hold.max(1000), cpu, thread)));
        Ok(cpu)
    }
}
