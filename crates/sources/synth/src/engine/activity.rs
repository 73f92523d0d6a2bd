//! `[[thread_activity]]`: a thread runs, waits, is readied by somebody, waits for a processor, runs again.

use super::cpus::Running;
use super::interrupts::Dpc;
use super::sampler::Load;
use super::stack::Owner;
use super::{Engine, Source, Style, Switch};
use crate::error::Result;
use crate::model::{Frames, OneOrMany, ThreadActivity};
use crate::value::{Dist, Draw};
use crate::world::World;
use etwhy_base::rng::Xoshiro;
use etwhy_decode::kernel::events as kernel;
use std::io;

#[derive(Clone, Copy, Debug)]
enum State {
    /// Waits until it is readied at `due`.
    Waiting,
    /// Ready, wants a processor.
    Ready,
    /// Runs there until `due`.
    Running(u16),
}

/// One thread of an activity.
struct Actor {
    thread: usize,
    load: usize,
    state: State,
    due: i64,
    to: i64,
    cpus: Vec<u16>,
    run: Dist,
    wait: Dist,
    ready: Dist,
    readied_by: Option<usize>,
    /// The DPC that wakes it, and its processors in turn.
    dpc: Option<(Dpc, Vec<u16>, Dist)>,
    ready_stack: Option<usize>,
    wait_stack: Option<usize>,
    switch: Switch,
    style: Style,
    last_cpu: Option<u16>,
    /// Start of the run.
    since: i64,
    n: u64,
    from: i64,
    rng: Xoshiro,
}

/// A ready thread looks for a free processor this often.
const RETRY: i64 = 50_000;

/// Makes the sources of a table, and the load that gives its samples their stacks.
pub(crate) fn activity(
    table: &toml::Spanned<ThreadActivity>,
    w: &mut World,
    loads: &mut Vec<Load>,
    seed: u64,
) -> Result<Vec<Box<dyn Source>>> {
    let (a, span) = (table.get_ref(), table.span());
    let c = a.common();
    let place = w.place.clone();
    let fail = |e: String| place.error(Some(span.clone()), e);
    let threads = w.processes.select(c.process.as_ref(), c.thread.as_ref(), &place, &span)?;
    if threads.is_empty() {
        return Err(fail("it needs a process or thread = \"process/thread\"".into()));
    }
    let by = match &a.readied_by {
        None => None,
        Some(name) => {
            let (process, thread) = match name.split_once('/') {
                Some(_) => (None, Some(OneOrMany(vec![name.clone()]))),
                None => (Some(OneOrMany(vec![name.clone()])), None),
            };
            w.processes.select(process.as_ref(), thread.as_ref(), &place, &span)?.first().copied()
        }
    };
    if a.dpc.is_some() && by.is_some() {
        return Err(fail("readied_by and dpc: only one of them can wake a thread".into()));
    }
    if a.dpc.is_none() && (a.dpc_cpus.is_some() || a.dpc_time.is_some()) {
        return Err(fail("dpc_cpus and dpc_time need dpc = \"driver.sys!Routine\"".into()));
    }
    let dpc_cpus = a.dpc_cpus.clone().map_or_else(|| (0..w.facts.cpus).collect::<Vec<u16>>(), |l| l.0);
    if let Some(wrong) = dpc_cpus.iter().find(|c| **c >= w.facts.cpus) {
        return Err(fail(format!("cpu {wrong}: the machine has {}", w.facts.cpus)));
    }
    let load = Load::of_activity(&c, &threads, w, span.clone())?;
    let style = c.stack_style.as_ref().map_or(Ok(w.facts.style), |t| Style::parse(Some(t))).map_err(fail)?;
    loads.push(load);
    let dpc = a.dpc.as_deref().map(|routine| Dpc::new(routine, style, w)).transpose().map_err(fail)?;
    let dpc_time = a.dpc_time.clone().unwrap_or(Dist::constant(20e-6));
    let mut switch = Switch::WAITING;
    if let Some(name) = &a.wait_reason {
        switch.reason = Switch::reason(name).map_err(fail)?;
    }
    switch.mode = match a.wait_mode.as_deref().unwrap_or("user") {
        "user" => 1,
        "kernel" => 0,
        other => return Err(fail(format!("wait_mode = {other:?}: allowed are user and kernel"))),
    };
    let stretch = w.facts.stretch;
    let scaled = |t: crate::value::Time| (t.0 * stretch * 1e9) as i64;
    let mut sources: Vec<Box<dyn Source>> = Vec::new();
    for (i, &thread) in threads.iter().enumerate() {
        let owner = w.processes.thread(thread).process;
        let by_owner = by.map_or(1, |t| w.processes.thread(t).process);
        let mut stack = |frames: &Option<Frames>, process| match frames {
            None => Ok(None),
            Some(f) => w.stacks.intern(f, process, &mut w.images, &mut w.processes).map(Some).map_err(fail),
        };
        let wait_stack = stack(&a.wait_stack, owner)?;
        let ready_stack = stack(&a.ready_stack, by_owner)?;
        let mut rng = Xoshiro::seeded(seed ^ (i as u64) << 32);
        let wait = a.wait.clone().unwrap_or(Dist::constant(10e-3));
        let from = c.from.map_or(0, scaled);
        let first = wait.ns(&mut Draw { rng: &mut rng, n: 0, x: 0.0 });
        sources.push(Box::new(Actor {
            thread,
            load: loads.len() - 1,
            state: State::Waiting,
            due: from + rng.below(first.max(1) as u64) as i64,
            to: c.to.map_or(w.facts.duration, scaled),
            cpus: c.cpus.clone().map_or_else(|| (0..w.facts.cpus).collect(), |l| l.0),
            run: a.run.clone().unwrap_or(Dist::constant(1e-3)),
            wait,
            ready: a.ready.clone().unwrap_or(Dist::constant(5e-6)),
            readied_by: by,
            dpc: dpc.map(|dpc| (dpc, dpc_cpus.clone(), dpc_time.clone())),
            ready_stack,
            wait_stack,
            switch,
            style: if w.facts.switch_stacks { style } else { Style::None },
            last_cpu: None,
            since: 0,
            n: 0,
            from,
            rng,
        }));
    }
    Ok(sources)
}

impl Actor {
    fn draw(&mut self, which: fn(&Actor) -> &Dist) -> i64 {
        let dist = which(self).clone();
        let x = (self.due - self.from) as f64 / (self.to - self.from).max(1) as f64;
        dist.ns(&mut Draw { rng: &mut self.rng, n: self.n, x: x.clamp(0.0, 1.0) })
    }

    /// ReadyThread, by whoever wakes it.
    fn get_ready(&mut self, engine: &mut Engine) -> io::Result<()> {
        let tid = engine.world.processes.thread(self.thread).tid;
        let pointer = engine.pointer();
        let woken_by = match self.dpc.clone() {
            None => None,
            Some((dpc, cpus, time)) => {
                let at = (self.thread + self.n as usize) % cpus.len().max(1);
                let cpu = cpus.get(at).copied().unwrap_or(0);
                let own = time.ns(&mut Draw { rng: &mut self.rng, n: self.n, x: 0.0 }).max(1000);
                if let Some(free) = engine.run_dpc(cpu, dpc, own) {
                    self.due = free;
                    return Ok(());
                }
                Some(cpu)
            }
        };
        // Without a named readier a timer's DPC does it.
        let (cpu, flags) = match self.readied_by {
            Some(by) => (engine.run_briefly(by, &[], self.n, 3000, self.ready_stack)?, 0),
            None => (woken_by.or(self.last_cpu).unwrap_or(0), 1),
        };
        if engine.switches {
            engine.add(cpu, engine.now, |r, t| {
                r.perfinfo(pointer, kernel::Thread::ReadyThread.hook, 2, t)
                    .u32(tid)
                    .u8(1)
                    .u8(0)
                    .u8(flags)
                    .u8(0)
            })?;
            engine.stack_now(cpu, self.readied_by.unwrap_or(0), self.ready_stack, self.style)?;
        }
        self.state = State::Ready;
        self.due += self.draw(|a| &a.ready);
        Ok(())
    }

    fn get_processor(&mut self, engine: &mut Engine) -> io::Result<()> {
        let n = self.cpus.len();
        let start = self.thread + self.n as usize;
        let rotated = (0..n).filter_map(|i| self.cpus.get((start + i) % n.max(1))).copied();
        let now = engine.now;
        let free = |c: &u16| engine.cpus.is_free(*c) && !engine.cpus.is_interrupted(*c, now);
        // The last processor, else one where nobody is, else one where only a load is.
        let last = self.last_cpu.filter(|c| free(c) && engine.cpus.running(*c).is_none());
        let empty = rotated.clone().find(|c| free(c) && engine.cpus.running(*c).is_none());
        let Some(cpu) = last.or(empty).or_else(|| rotated.clone().find(free)) else {
            self.due += RETRY;
            return Ok(());
        };
        let task = Running { thread: self.thread, load: Some(self.load), stack: None };
        engine.take(cpu, task, Switch::PREEMPTED)?;
        if engine.switches
            && let Some(stack) = self.wait_stack
        {
            // The stack of a context switch is the one that the new thread waited with.
            let owner = Owner { ns: engine.now, cpu, thread: self.thread };
            engine.stack(&owner, stack, self.style, None)?;
        }
        self.last_cpu = Some(cpu);
        self.state = State::Running(cpu);
        let run = self.draw(|a| &a.run).max(1000);
        self.due += run;
        self.since = engine.now;
        Ok(())
    }
}

impl Source for Actor {
    fn next(&self) -> Option<i64> {
        (self.due < self.to || matches!(self.state, State::Running(_))).then_some(self.due)
    }

    fn fire(&mut self, engine: &mut Engine) -> io::Result<()> {
        self.due = self.due.max(engine.now);
        if !engine.alive(self.thread, self.due) && !matches!(self.state, State::Running(_)) {
            self.due += 1_000_000;
            return Ok(());
        }
        match self.state {
            State::Waiting => self.get_ready(engine),
            State::Ready => self.get_processor(engine),
            State::Running(cpu) => {
                // Not in the middle of an event of its own.
                let busy = engine.busy_until(self.thread);
                if busy > engine.now {
                    self.due = busy;
                    return Ok(());
                }
                engine.truth.ran(self.thread, engine.now - self.since);
                engine.release(cpu, self.thread, self.switch)?;
                self.n += 1;
                self.state = State::Waiting;
                self.due += self.draw(|a| &a.wait).max(1000);
                Ok(())
            }
        }
    }
}
