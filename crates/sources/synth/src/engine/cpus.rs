//! Who runs on each processor, and the context switches that follow.

use super::{Engine, Interrupts};
use crate::world::Switch;
use etwhy_decode::kernel::events as kernel;
use std::collections::HashMap;
use std::io;

/// Someone on a processor: thread, and where its samples take their stacks from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Running {
    pub(crate) thread: usize,
    /// Index of the load of the sampler.
    pub(crate) load: Option<usize>,
    /// The stack of the event that it runs for, if it has one.
    pub(crate) stack: Option<usize>,
}

#[derive(Debug, Default)]
struct Cpu {
    /// Placed by the sampler, for about one sampling interval.
    load: Option<Running>,
    /// Placed by an activity or an event; comes before the load.
    task: Option<Running>,
    /// Whom the context switches say to run.
    switched_in: usize,
    interrupts: Interrupts,
    /// Number of the task that has it.
    run: u64,
    /// When the task ends, if it is the short run of an event.
    brief: Option<i64>,
    /// A context switch that waits for the end of an interrupt.
    deferred: Option<Switch>,
}

/// All processors.
pub(crate) struct Cpus {
    list: Vec<Cpu>,
    /// Thread to processor, for whoever runs.
    places: HashMap<usize, u16>,
}

impl Cpus {
    pub(crate) fn new(count: u16) -> Cpus {
        Cpus { list: (0..count).map(|_| Cpu::default()).collect(), places: HashMap::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len().max(1)
    }

    /// Where a thread runs now.
    pub(crate) fn where_runs(&self, thread: usize) -> Option<u16> {
        if thread == 0 { None } else { self.places.get(&thread).copied() }
    }

    /// True when no activity or event holds the processor (a load may).
    pub(crate) fn is_free(&self, cpu: u16) -> bool {
        self.list.get(usize::from(cpu)).is_some_and(|c| c.task.is_none())
    }

    /// Who runs: a task before a load.
    pub(crate) fn running(&self, cpu: u16) -> Option<Running> {
        self.list.get(usize::from(cpu)).and_then(|c| c.task.or(c.load))
    }

    /// The load's thread, whether or not a task holds the processor now.
    pub(crate) fn load(&self, cpu: u16) -> Option<Running> {
        self.list.get(usize::from(cpu)).and_then(|c| c.load)
    }

    /// Whom the context switches say to run.
    pub(crate) fn switched_in(&self, cpu: u16) -> usize {
        self.list.get(usize::from(cpu)).map_or(0, |c| c.switched_in)
    }

    /// True while a DPC or ISR runs on a processor: no thread does.
    pub(crate) fn is_interrupted(&self, cpu: u16, ns: i64) -> bool {
        self.list.get(usize::from(cpu)).is_some_and(|c| c.interrupts.at(ns).is_some())
    }

    /// When the DPC or ISR that runs on a processor ends.
    pub(crate) fn interrupt_end(&self, cpu: u16, ns: i64) -> Option<i64> {
        let interrupts = &self.list.get(usize::from(cpu))?.interrupts;
        interrupts.at(ns).map(|p| p.end)
    }

    /// Number of the task on a processor.
    pub(crate) fn run(&self, cpu: u16) -> u64 {
        self.list.get(usize::from(cpu)).map_or(0, |c| c.run)
    }

    /// The task's planned end no longer holds.
    pub(crate) fn new_run(&mut self, cpu: u16) {
        if let Some(c) = self.list.get_mut(usize::from(cpu)) {
            c.run += 1;
        }
    }

    /// When the short run on a processor ends.
    pub(crate) fn brief_until(&self, cpu: u16) -> Option<i64> {
        self.list.get(usize::from(cpu)).and_then(|c| c.brief)
    }

    /// The task on a processor is the short run of an event.
    pub(crate) fn set_brief(&mut self, cpu: u16, until: i64) {
        if let Some(c) = self.list.get_mut(usize::from(cpu)) {
            c.brief = Some(until);
        }
    }

    /// DPCs and ISRs.
    pub(crate) fn interrupts(&mut self, cpu: u16) -> Option<&mut Interrupts> {
        self.list.get_mut(usize::from(cpu)).map(|c| &mut c.interrupts)
    }
}

impl Engine<'_> {
    /// Gives a processor to a task.
    pub(crate) fn take(&mut self, cpu: u16, task: Running, old: Switch) -> io::Result<()> {
        if let Some(c) = self.cpus.list.get_mut(usize::from(cpu)) {
            c.task = Some(task);
            c.run += 1;
            c.brief = None;
        }
        self.settle(cpu, old)
    }

    /// Ends a task; the processor falls back to its load or to idle.
    pub(crate) fn release(&mut self, cpu: u16, thread: usize, why: Switch) -> io::Result<()> {
        match self.cpus.list.get_mut(usize::from(cpu)) {
            Some(c) if c.task.is_some_and(|t| t.thread == thread) => {
                c.task = None;
                c.run += 1;
                c.brief = None;
            }
            _ => return Ok(()),
        }
        self.settle(cpu, why)
    }

    /// The thread does not fall back to what the sampler placed it for: it waits.
    pub(crate) fn forget_load(&mut self, cpu: u16, thread: usize) {
        if self.switches
            && let Some(c) = self.cpus.list.get_mut(usize::from(cpu))
            && c.load.is_some_and(|l| l.thread == thread)
        {
            c.load = None;
        }
    }

    /// Places a load (or nothing) for the coming interval.
    pub(crate) fn place(&mut self, cpu: u16, load: Option<Running>, why: Switch) -> io::Result<()> {
        if let Some(c) = self.cpus.list.get_mut(usize::from(cpu)) {
            c.load = load;
        }
        self.settle(cpu, why)
    }

    /// The interrupts of a processor are over for now: does the context switch that waited for it.
    pub(crate) fn settle_deferred(&mut self, cpu: u16) -> io::Result<()> {
        match self.cpus.list.get(usize::from(cpu)).and_then(|c| c.deferred) {
            Some(why) => self.settle(cpu, why),
            None => Ok(()),
        }
    }

    /// Records a context switch when the thread that should run is not the one that does.
    fn settle(&mut self, cpu: u16, old: Switch) -> io::Result<()> {
        let wanted = self.cpus.running(cpu).map_or(0, |r| r.thread);
        let now = self.now;
        let Some(c) = self.cpus.list.get_mut(usize::from(cpu)) else { return Ok(()) };
        if self.switches && c.interrupts.at(now).is_some() {
            // No thread is switched while a DPC or ISR has the processor.
            c.deferred.get_or_insert(old);
            return Ok(());
        }
        c.deferred = None;
        let before = std::mem::replace(&mut c.switched_in, wanted);
        if before == wanted {
            return Ok(());
        }
        if self.cpus.places.get(&before) == Some(&cpu) {
            self.cpus.places.remove(&before);
        }
        if wanted != 0 {
            self.cpus.places.insert(wanted, cpu);
        }
        if !self.switches {
            return Ok(());
        }
        let threads = &self.world.processes;
        let (new, old_thread) = (threads.thread(wanted), threads.thread(before));
        // The idle thread is always ready to go on.
        let old = if before == 0 { Switch { state: 2, reason: 0, mode: 0 } } else { old };
        let pointer = self.pointer();
        self.out.add(cpu, self.now, |r, t| {
            r.perfinfo(pointer, kernel::Thread::CSwitch.hook, 4, t).u32(new.tid).u32(old_thread.tid);
            r.u8(new.priority).u8(old_thread.priority).u8(0).u8(0).u8(old.reason).u8(old.mode).u8(old.state);
            r.u8(cpu as u8).u32(1).u32(0)
        })
    }
}
