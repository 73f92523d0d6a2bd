//! What is to happen at a moment that only became known while the scenario ran: ends of short runs and of
//! interrupts, returns of blocked calls.

use super::cpus::Running;
use super::{Engine, Switch};
use etwhy_decode::kernel::events as kernel;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::io;

/// Something to do later.
pub(crate) type Action = Box<dyn for<'a> FnOnce(&mut Engine<'a>) -> io::Result<()>>;

/// What a thread does when it is back on a processor, which it is told.
pub(crate) type Then = Box<dyn for<'a> FnOnce(&mut Engine<'a>, u16) -> io::Result<()>>;

/// All that is to happen later.
#[derive(Default)]
pub(crate) struct Agenda {
    /// Ends of the short runs that events need: moment, processor, thread, number of the run.
    ends: BinaryHeap<Reverse<(i64, u16, usize, u64)>>,
    /// Moments when a processor's interrupts want to be looked at.
    interrupts: BinaryHeap<Reverse<(i64, u16)>>,
    actions: BinaryHeap<Reverse<(i64, u64)>>,
    waiting: HashMap<u64, Action>,
    next: u64,
    /// Threads that do something until then.
    busy: HashMap<usize, i64>,
    /// Threads that wait inside a call.
    blocked: HashSet<usize>,
}

/// How long a thread that came back waits before it tries again to get a processor.
const RETRY: i64 = 20_000;

impl Agenda {
    /// The interrupts of a processor want to be looked at then.
    pub(crate) fn wake_interrupts(&mut self, ns: i64, cpu: u16) {
        self.interrupts.push(Reverse((ns, cpu)));
    }
}

impl Engine<'_> {
    /// Does something at a moment.
    pub(crate) fn at(&mut self, ns: i64, action: Action) {
        let number = self.agenda.next;
        self.agenda.next += 1;
        self.agenda.waiting.insert(number, action);
        self.agenda.actions.push(Reverse((ns, number)));
    }

    /// Ends the run of a thread then, if it is still that run.
    pub(crate) fn end_run_at(&mut self, ns: i64, cpu: u16, thread: usize) {
        let run = self.cpus.run(cpu);
        self.agenda.ends.push(Reverse((ns, cpu, thread, run)));
    }

    /// A thread does something that must not be interrupted by its own next event.
    pub(crate) fn keep_busy(&mut self, thread: usize, until: i64) {
        if thread != 0 {
            let entry = self.agenda.busy.entry(thread).or_insert(until);
            *entry = until.max(*entry);
        }
    }

    /// Until when a thread is busy with an event.
    pub(crate) fn busy_until(&self, thread: usize) -> i64 {
        self.agenda.busy.get(&thread).copied().unwrap_or(0)
    }

    /// A thread waits inside a call, or no longer.
    pub(crate) fn set_blocked(&mut self, thread: usize, blocked: bool) {
        if blocked {
            self.agenda.blocked.insert(thread);
        } else {
            self.agenda.blocked.remove(&thread);
        }
    }

    /// True while a thread waits inside a call.
    pub(crate) fn is_blocked(&self, thread: usize) -> bool {
        self.agenda.blocked.contains(&thread)
    }

    /// Does everything that is due up to a moment, in time order.
    pub(crate) fn catch_up(&mut self, until: i64) -> io::Result<()> {
        loop {
            let end = self.agenda.ends.peek().map(|Reverse(e)| e.0);
            let interrupt = self.agenda.interrupts.peek().map(|Reverse(i)| i.0);
            let action = self.agenda.actions.peek().map(|Reverse(a)| a.0);
            let Some(due) = [end, interrupt, action].into_iter().flatten().min().filter(|d| *d <= until)
            else {
                return Ok(());
            };
            self.now = self.now.max(due);
            self.out.advance(self.now)?;
            if interrupt == Some(due) {
                if let Some(Reverse((_, cpu))) = self.agenda.interrupts.pop() {
                    self.end_interrupts(cpu)?;
                }
            } else if action == Some(due) {
                if let Some(Reverse((_, number))) = self.agenda.actions.pop()
                    && let Some(action) = self.agenda.waiting.remove(&number)
                {
                    action(self)?;
                }
            } else if let Some(Reverse((_, cpu, thread, run))) = self.agenda.ends.pop()
                && self.cpus.run(cpu) == run
            {
                self.release(cpu, thread, Switch::WAITING)?;
            }
        }
    }

    /// Ends all interrupts that still run or wait when the trace ends.
    pub(crate) fn finish_interrupts(&mut self) -> io::Result<()> {
        while let Some(Reverse((due, cpu))) = self.agenda.interrupts.pop() {
            self.now = self.now.max(due);
            self.out.advance(self.now)?;
            self.end_interrupts(cpu)?;
        }
        Ok(())
    }

    /// A running thread waits from a moment on, for `wait` nanoseconds; then it is readied by `by` (a timer's
    /// DPC when nobody is named), gets a processor `ready` nanoseconds later and goes on with `then`, which
    /// is told the processor.
    pub(crate) fn block(&mut self, pause: Pause, then: Then) {
        self.agenda.blocked.insert(pause.thread);
        let Pause { cpu, thread, from, wait, .. } = pause;
        self.at(
            from,
            Box::new(move |e| {
                e.forget_load(cpu, thread);
                e.release(cpu, thread, pause.why)?;
                e.at(e.now + wait, Box::new(move |e| e.wake(pause, then)));
                Ok(())
            }),
        );
    }

    fn wake(&mut self, pause: Pause, then: Then) -> io::Result<()> {
        match pause.by {
            Some(by) if !self.is_blocked(by) && self.alive(by, self.now) => {
                let cpu = self.run_briefly(by, &[], 0, 3000, None)?;
                self.ready_thread(cpu, pause.thread, false)?;
            }
            _ => self.ready_thread(pause.cpu, pause.thread, true)?,
        }
        self.at(self.now + pause.ready, Box::new(move |e| e.resume(pause, then)));
        Ok(())
    }

    /// The run on a processor goes on beyond its planned end.
    pub(crate) fn hold_run(&mut self, cpu: u16) {
        self.cpus.new_run(cpu);
    }

    /// ReadyThread, on the processor of whoever readies: a thread, or a DPC there.
    pub(crate) fn ready_thread(&mut self, cpu: u16, thread: usize, in_dpc: bool) -> io::Result<()> {
        if !self.switches {
            return Ok(());
        }
        let tid = self.world.processes.thread(thread).tid;
        let pointer = self.pointer();
        self.add(cpu, self.now, |r, t| {
            r.perfinfo(pointer, kernel::Thread::ReadyThread.hook, 2, t)
                .u32(tid)
                .u8(1)
                .u8(0)
                .u8(u8::from(in_dpc))
                .u8(0)
        })
    }

    /// A free processor, the given one if it is free.
    pub(crate) fn free_cpu(&self, wish: u16) -> Option<u16> {
        let count = self.cpus.len() as u16;
        let free =
            |c: &u16| self.cpus.is_free(*c) && !(self.switches && self.cpus.is_interrupted(*c, self.now));
        let order = || (0..count).map(|i| (wish + i) % count);
        order().find(|c| free(c) && self.cpus.running(*c).is_none()).or_else(|| order().find(free))
    }

    /// A thread gets a processor as soon as one is free.
    pub(crate) fn resume(&mut self, pause: Pause, then: Then) -> io::Result<()> {
        let Some(cpu) = self.free_cpu(pause.cpu) else {
            self.at(self.now + RETRY, Box::new(move |e| e.resume(pause, then)));
            return Ok(());
        };
        self.agenda.blocked.remove(&pause.thread);
        let task = Running { thread: pause.thread, load: None, stack: pause.stack };
        if self.switches {
            self.take(cpu, task, Switch::PREEMPTED)?;
        }
        then(self, cpu)
    }
}

impl Pause {
    /// Only who comes back where.
    pub(crate) fn simple(thread: usize, cpu: u16, stack: Option<usize>) -> Pause {
        Pause { thread, cpu, from: 0, wait: 0, ready: 0, why: Switch::WAITING, by: None, stack }
    }
}

/// A wait of a running thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pause {
    pub(crate) thread: usize,
    /// Where it runs now.
    pub(crate) cpu: u16,
    /// When it leaves the processor.
    pub(crate) from: i64,
    /// How long until it is readied.
    pub(crate) wait: i64,
    /// How long from there to a processor, if one is free.
    pub(crate) ready: i64,
    pub(crate) why: Switch,
    /// Who readies it.
    pub(crate) by: Option<usize>,
    /// Of its samples when it goes on.
    pub(crate) stack: Option<usize>,
}
