//! The profiling interrupt: one sample per processor and interval, of whoever runs there.
//!
//! Half an interval before each round the loads are placed on the processors, so that a thread that is
//! sampled is switched in around its sample. Each load collects credit (how many processors it wants to
//! be on); whole credits are spent on threads, the rest is kept, so that shares come out right over time.

use super::arrivals::burst;
use super::cpus::Running;
use super::stack::Owner;
use super::{Engine, Source, Style, Switch};
use crate::error::{Result, SourceText};
use crate::model::{Common, Samples};
use crate::value::{Dist, Draw};
use crate::world::{StackSet, World};
use etwhy_base::rng::Xoshiro;
use etwhy_decode::kernel::events as kernel;
use std::collections::HashMap;
use std::io;
use std::ops::Range;

/// How much CPU a load wants.
#[derive(Clone, Debug)]
enum Want {
    /// Processors.
    Busy(Dist),
    /// Samples in the whole window.
    Total(f64),
    /// Only as stacks for threads that an activity runs.
    Nothing,
}

/// CPU use by some threads with some stacks.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    threads: Vec<usize>,
    /// Stacks by process.
    stacks: HashMap<usize, StackSet>,
    cpus: Vec<u16>,
    want: Want,
    from: i64,
    to: i64,
    burst: Option<(i64, i64)>,
    random: bool,
    /// Stacks in exact proportion to their weights.
    exact: bool,
    /// Placed so far, for totals.
    placed: f64,
    priority: Option<u8>,
    flags: u8,
    style: Style,
    switch: Switch,
    credit: f64,
    next_thread: usize,
    /// Last processor of each thread.
    homes: HashMap<usize, u16>,
}

/// The sampler with its loads.
pub(crate) struct Sampler {
    loads: Vec<Load>,
    interval: i64,
    stagger: i64,
    cpus: u16,
    round: i64,
    /// 0: place the loads, then 1 + processor.
    step: u16,
    rng: Xoshiro,
    taken: Vec<Option<Running>>,
    /// The first load of each thread: what it does when an event makes it run.
    by_thread: HashMap<usize, usize>,
    idle_ip: u64,
}

/// How long a thread takes from one processor to another.
const MOVE: i64 = 300;

impl Load {
    /// A load for the threads of an activity, which brings its own times.
    pub(crate) fn of_activity(
        c: &Common,
        threads: &[usize],
        w: &mut World,
        span: Range<usize>,
    ) -> Result<Load> {
        let mut load = Load::common(c, threads.to_vec(), w, span)?;
        load.want = Want::Nothing;
        Ok(load)
    }

    fn common(c: &Common, threads: Vec<usize>, w: &mut World, span: Range<usize>) -> Result<Load> {
        let c = &w.processes.within_life(c, &threads, w.facts.stretch);
        let mut stacks = HashMap::new();
        for &thread in &threads {
            let process = w.processes.thread(thread).process;
            if let std::collections::hash_map::Entry::Vacant(slot) = stacks.entry(process) {
                slot.insert(w.stack_set(c, process, span.clone())?);
            }
        }
        let fail = |e: String| w.place.error(Some(span.clone()), e);
        let stretch = w.facts.stretch;
        let scaled = |t: crate::value::Time| (t.0 * stretch * 1e9) as i64;
        let style = match &c.stack_style {
            None => w.facts.style,
            Some(text) => Style::parse(Some(text)).map_err(fail)?,
        };
        let cpus = match &c.cpus {
            Some(list) => list.0.clone(),
            None => (0..w.facts.cpus).collect(),
        };
        if let Some(wrong) = cpus.iter().find(|c| **c >= w.facts.cpus) {
            return Err(fail(format!(
                "cpu {wrong}: the machine has {} (0 to {})",
                w.facts.cpus,
                w.facts.cpus - 1
            )));
        }
        Ok(Load {
            threads,
            stacks,
            cpus,
            want: Want::Busy(Dist::constant(1.0)),
            from: c.from.map_or(0, scaled),
            to: c.to.map_or(w.facts.duration, scaled).min(w.facts.duration),
            burst: burst(c).map_err(fail)?,
            random: matches!(c.arrival.as_deref(), Some("poisson" | "random")),
            exact: c.arrival.as_deref() == Some("exact"),
            placed: 0.0,
            priority: None,
            flags: 0,
            style,
            switch: Switch::WAITING,
            credit: 0.0,
            next_thread: 0,
            homes: HashMap::new(),
        })
    }

    /// A `[[samples]]` table.
    pub(crate) fn new(table: &toml::Spanned<Samples>, w: &mut World) -> Result<Load> {
        let (s, span) = (table.get_ref(), table.span());
        let c = s.common();
        let place: SourceText = w.place.clone();
        let fail = |e: &str| place.error(Some(span.clone()), e);
        let mut threads = w.processes.select(c.process.as_ref(), c.thread.as_ref(), &place, &span)?;
        if threads.is_empty() {
            if c.process.is_none() && !s.in_dpc && !s.in_isr {
                return Err(fail("samples need a process (or thread = \"process/thread\")"));
            }
            threads = vec![0];
        }
        let mut load = Load::common(&c, threads, w, span.clone())?;
        let interval = w.facts.interval as f64 / 1e9;
        let wants = [
            s.busy.is_some(),
            s.cpu_percent.is_some(),
            s.cpu_time.is_some(),
            c.rate.is_some(),
            c.count.is_some(),
        ];
        if wants.iter().filter(|w| **w).count() > 1 {
            return Err(fail("give only one of busy, cpu_percent, cpu_time, rate or count"));
        }
        let factor = |dist: &Dist, by: f64| Want::Busy(dist.clone().scaled(by));
        load.want = if let Some(busy) = &s.busy {
            factor(busy, 1.0)
        } else if let Some(percent) = &s.cpu_percent {
            // "60%" reads as 0.6 already, 60 as percent.
            factor(percent, load.cpus.len() as f64 * percent.percent_factor())
        } else if let Some(time) = s.cpu_time {
            Want::Total(time.0 / interval * w.facts.stretch)
        } else if let Some(rate) = &c.rate {
            factor(rate, interval)
        } else if let Some(count) = c.count {
            Want::Total(count as f64 * w.facts.counts)
        } else {
            Want::Busy(Dist::constant(load.threads.len() as f64))
        };
        load.priority = s.priority;
        load.flags = u8::from(s.in_dpc) | u8::from(s.in_isr) << 1;
        if let Some(name) = &s.wait_reason {
            load.switch.reason = Switch::reason(name).map_err(|e| fail(&e))?;
        }
        Ok(load)
    }

    /// Processors wanted at a moment.
    fn wanted(&self, ns: i64, interval: i64, n: u64, rng: &mut Xoshiro) -> f64 {
        if ns < self.from || ns >= self.to {
            return 0.0;
        }
        let since = ns - self.from;
        if self.burst.is_some_and(|(on, off)| since % (on + off) >= on) {
            return 0.0;
        }
        let window = (self.to - self.from).max(1) as f64;
        let wanted = match &self.want {
            Want::Nothing => 0.0,
            Want::Busy(dist) => dist.draw(&mut Draw { rng, n, x: since as f64 / window }),
            Want::Total(total) if self.burst.is_none() && !self.random => {
                // Rounds that lie in the window with all their samples; the last one brings what is left.
                let first = self.from.div_euclid(interval) + i64::from(self.from % interval > 0);
                let last = (self.to - interval / 4).div_euclid(interval).max(first.max(1));
                let (round, rounds) = (ns / interval - first.max(1) + 1, last - first.max(1) + 1);
                let owed = (total * (round as f64 / rounds as f64).min(1.0)).round() - self.placed;
                return owed - self.credit;
            }
            Want::Total(total) => {
                let share = self.burst.map_or(1.0, |(on, off)| on as f64 / (on + off) as f64);
                total / (window * share / interval as f64)
            }
        };
        if self.random { wanted * rng.exponential() } else { wanted }
    }
}

impl Sampler {
    pub(crate) fn new(loads: Vec<Load>, w: &World, idle_ip: u64) -> Sampler {
        let (interval, cpus) = (w.facts.interval, w.facts.cpus);
        let threads =
            |(at, load): (usize, &Load)| load.threads.iter().map(move |t| (*t, at)).collect::<Vec<_>>();
        let by_thread = loads.iter().enumerate().rev().flat_map(threads).collect();
        Sampler {
            by_thread,
            loads,
            interval,
            stagger: (interval / 4 / i64::from(cpus)).max(1),
            cpus,
            round: 1,
            step: 0,
            rng: Xoshiro::seeded(w.facts.seed ^ 0x5A3),
            taken: vec![None; usize::from(cpus)],
            idle_ip,
        }
    }

    /// Chooses who is on each processor in the coming interval.
    fn place(&mut self, engine: &mut Engine) -> io::Result<()> {
        let ns = self.round * self.interval;
        self.taken.iter_mut().for_each(|t| *t = None);
        let count = self.loads.len();
        for i in 0..count {
            // Who comes first changes, so that an overcommitted machine is shared fairly.
            let at = (i + self.round as usize) % count;
            let Some(load) = self.loads.get_mut(at) else { continue };
            let wanted = load.wanted(ns, self.interval, self.round as u64, &mut self.rng).max(0.0);
            // What could not be placed is not owed for ever: a machine that is full stays full.
            load.credit = (load.credit + wanted).min(wanted + load.threads.len() as f64 + 8.0);
            if wanted == 0.0 && (ns >= load.to || load.burst.is_some()) {
                load.credit = load.credit.fract();
            }
            let mut tries = load.threads.len();
            while load.credit >= 1.0 && tries > 0 {
                tries -= 1;
                let thread = load.threads.get(load.next_thread % load.threads.len()).copied().unwrap_or(0);
                load.next_thread = (load.next_thread + 1) % load.threads.len();
                // The switch to it comes half an interval before the sample, and must find it alive.
                if !engine.alive(thread, ns)
                    || engine.switches && (engine.is_blocked(thread) || !engine.alive(thread, engine.now))
                    || engine
                        .cpus
                        .where_runs(thread)
                        .is_some_and(|c| engine.is_task(c, thread) && engine.cpus.brief_until(c).is_none())
                {
                    continue;
                }
                if thread != 0 && self.taken.iter().flatten().any(|r| r.thread == thread) {
                    continue;
                }
                // One that runs for an event stays where it is.
                let held = engine.cpus.where_runs(thread).filter(|c| engine.is_task(*c, thread));
                let home = held.or(load.homes.get(&thread).copied());
                let start = load.next_thread;
                let n = load.cpus.len();
                let rotated = (0..n).filter_map(|k| load.cpus.get((start + k) % n)).copied();
                let free = |c: &u16| self.taken.get(usize::from(*c)).is_some_and(Option::is_none);
                let Some(cpu) = home.filter(free).or_else(|| rotated.into_iter().find(|c| free(c))) else {
                    break;
                };
                if held.is_some_and(|h| h != cpu) {
                    continue;
                }
                if let Some(slot) = self.taken.get_mut(usize::from(cpu)) {
                    *slot = Some(Running { thread, load: Some(at), stack: None });
                }
                load.homes.insert(thread, cpu);
                load.credit -= 1.0;
                load.placed += 1.0;
            }
        }
        // Leavers first: a thread is switched out of one processor before it is switched in on another.
        let mut moved = false;
        for pass in 0..2 {
            if pass == 1 && moved && engine.switches {
                // A thread does not arrive at the moment at which it leaves.
                engine.now += MOVE;
                engine.out.advance(engine.now)?;
            }
            for cpu in 0..self.cpus {
                let old = engine.cpus.load(cpu);
                let new = self.taken.get(usize::from(cpu)).copied().flatten();
                let moves = old.is_some_and(|o| o.thread != 0 && new.is_none_or(|n| n.thread != o.thread));
                if pass == 0 && !moves {
                    continue;
                }
                let stays = |t: usize| self.taken.iter().flatten().any(|r| r.thread == t);
                let why = match old {
                    Some(o) if stays(o.thread) => Switch::PREEMPTED,
                    Some(Running { load: Some(l), .. }) => {
                        self.loads.get(l).map_or(Switch::WAITING, |l| l.switch)
                    }
                    _ => Switch::WAITING,
                };
                if pass == 0 {
                    let elsewhere = old.is_some_and(|o| stays(o.thread));
                    if elsewhere {
                        engine.place(cpu, None, why)?;
                        moved = true;
                    }
                } else {
                    engine.place(cpu, new, why)?;
                }
            }
        }
        Ok(())
    }

    fn sample(&mut self, cpu: u16, engine: &mut Engine) -> io::Result<()> {
        let now = engine.now;
        let running = engine.cpus.running(cpu);
        let silent = now >= engine.world.facts.silent_from || engine.world.facts.unsampled.contains(&cpu);
        let interrupt = engine.interrupt_at(cpu, now);
        let (thread, mut flags, style, stack) = match (running, &interrupt) {
            (Some(r), None) => {
                let of_thread = self.by_thread.get(&r.thread).copied();
                let load = r.load.or(of_thread).and_then(|l| self.loads.get_mut(l));
                let process = engine.world.processes.thread(r.thread).process;
                let mut load = load;
                let stack = r.stack.or_else(|| {
                    let l = load.as_mut()?;
                    let set = l.stacks.get_mut(&process)?;
                    if l.exact { set.pick_exact() } else { set.pick(&mut self.rng) }
                });
                let somewhere = engine.world.processes.list.get(process).and_then(|p| p.somewhere);
                let stack = stack.or(somewhere.filter(|_| r.thread != 0));
                let flags = load.as_ref().map_or(0, |l| l.flags);
                let priority = load.as_ref().and_then(|l| l.priority);
                let priority = priority.unwrap_or(engine.world.processes.thread(r.thread).priority);
                let style = load.map_or(engine.world.facts.style, |l| l.style);
                (r.thread, flags | priority << 3, style, stack)
            }
            (_, Some(i)) => (engine.cpus.switched_in(cpu), 0, i.style, i.stack),
            (None, None) => (0, 0, Style::None, None),
        };
        if let Some(i) = &interrupt {
            flags |= if i.isr { 2 } else { 1 };
        }
        let idle = thread == 0 && flags & 3 == 0;
        if silent {
            return Ok(());
        }
        engine.truth.sample(cpu, thread, stack, flags & 3);
        if idle && !engine.world.facts.idle_samples || !engine.world.facts.samples {
            return Ok(());
        }
        let roam = style != Style::Keys;
        let ip = match stack.and_then(|s| engine.world.stacks.list.get(s)) {
            Some(stack) => stack.instruction(&mut self.rng, roam),
            None => self.idle_ip,
        };
        let tid = engine.world.processes.thread(thread).tid;
        let pointer = engine.pointer();
        engine.add(cpu, now, |r, t| {
            r.perfinfo(pointer, kernel::PerfInfo::SampledProfile.hook, 2, t)
                .ptr(ip)
                .u32(tid)
                .u16(1)
                .u8(flags)
                .u8(0)
        })?;
        match stack {
            Some(stack) => engine.stack(&Owner { ns: now, cpu, thread }, stack, style, Some(ip)),
            None => Ok(()),
        }
    }
}

impl Source for Sampler {
    fn next(&self) -> Option<i64> {
        let round = self.round * self.interval;
        Some(match self.step {
            0 => round - self.interval / 2,
            n => round + i64::from(n - 1) * self.stagger,
        })
    }

    fn waits_for_the_machine(&self) -> bool {
        false
    }

    fn fire(&mut self, engine: &mut Engine) -> io::Result<()> {
        match self.step {
            _ if engine.world.facts.stalled_until(engine.now).is_some() => {}
            0 => self.place(engine)?,
            n => self.sample(n - 1, engine)?,
        }
        self.step += 1;
        if self.step > self.cpus {
            self.step = 0;
            self.round += 1;
        }
        Ok(())
    }
}
