//! Events of the tables: one source for all, one [`Kind`] per table.

mod alpc;
mod clr;
mod file;
mod generic;
mod lifecycle;
mod memory;
mod rundown;
mod system;
mod task;
mod user;

pub(crate) use alpc::alpc;
pub(crate) use clr::{contention, exception, gc, jit};
pub(crate) use file::{disk_io, file_io, hard_fault, minifilter};
pub(crate) use generic::generic;
pub(crate) use lifecycle::Lifecycle;
pub(crate) use memory::{handle, page_fault, pool, virtual_alloc, working_set};
pub(crate) use rundown::{rundown_end, rundown_start};
pub(crate) use system::{mark, network, registry, syscall};
pub(crate) use task::task;
pub(crate) use user::{guid as provider_guid, manifest_event, tracelogging};

use crate::engine::{Arrivals, Durations, Engine, Pause, Source, Style, Switch};
use crate::error::{Result, ScenarioError};
use crate::model::Common;
use crate::value::{Dist, Draw};
use crate::world::{StackSet, World};
use etwhy_base::rng::Xoshiro;
use etwhy_etl::write::RecordBuf;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::ops::Range;

/// What a table's events are.
pub(crate) trait Kind {
    /// Brings one event.
    fn emit(&mut self, cx: &mut Cx) -> io::Result<()>;
    /// True when the thread keeps its processor for the event's duration (it does not wait).
    fn holds(&self) -> bool {
        false
    }
    /// How many operations an event stands for: each takes the event's duration.
    fn parts(&self) -> u64 {
        1
    }
    /// Draws what happens inside an event besides its own part, and says how much longer it takes for that, in nanoseconds.
    fn inside(&mut self, _draw: &mut Draw<'_>) -> i64 {
        0
    }
    /// When an event that took `duration` needs its thread, after its begin. In between the thread may wait.
    fn moments(&self, duration: i64) -> VecDeque<i64> {
        (1..=self.parts().max(1) as i64).map(|part| part * (duration + PART_GAP) - PART_GAP).collect()
    }
}

/// One event in the making.
pub(crate) struct Cx<'e, 'w> {
    pub(crate) engine: &'e mut Engine<'w>,
    pub(crate) rng: &'e mut Xoshiro,
    /// Nanoseconds.
    pub(crate) now: i64,
    pub(crate) cpu: u16,
    /// Thread index.
    pub(crate) thread: usize,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    /// How many events came before in this table.
    pub(crate) n: u64,
    /// Where in the table's window.
    pub(crate) x: f64,
    /// Nanoseconds.
    pub(crate) duration: i64,
    stack: Option<usize>,
    style: Style,
}

/// Whether a kernel record names its thread and process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    /// `PERFINFO_TRACE_HEADER`: it does not.
    Perf,
    /// `SYSTEM_TRACE_HEADER`: it does.
    System,
    /// `SYSTEM_TRACE_HEADER` without times.
    Compact,
}

impl Cx<'_, '_> {
    /// Draws from a distribution.
    pub(crate) fn draw(&mut self) -> Draw<'_> {
        Draw { rng: self.rng, n: self.n, x: self.x }
    }

    /// A whole number from an optional distribution.
    pub(crate) fn whole(&mut self, dist: &Option<Dist>, default: u64) -> u64 {
        dist.as_ref().map_or(default, |d| d.whole(&mut self.draw()))
    }

    /// One of a list, in turn.
    pub(crate) fn turn<'l, T>(&self, list: &'l [T]) -> Option<&'l T> {
        list.get((self.n % list.len().max(1) as u64) as usize)
    }

    /// A kernel record, `after` nanoseconds from now.
    pub(crate) fn kernel(
        &mut self,
        head: Head,
        event: impl Into<u16>,
        version: u8,
        after: i64,
        build: impl FnOnce(&mut RecordBuf) -> &mut RecordBuf,
    ) -> io::Result<()> {
        let (pointer, pid, tid, hook) = (self.engine.pointer(), self.pid, self.tid, event.into());
        self.engine.add(self.cpu, self.now + after, |r, t| {
            match head {
                Head::Perf => r.perfinfo(pointer, hook, version, t),
                Head::System => r.system(pointer, hook, version, t, pid, tid, (1, 1)),
                Head::Compact => r.compact(pointer, hook, version, t, pid, tid),
            };
            build(r);
            r
        })
    }

    /// Any record of the process's own pointer size, `after` nanoseconds from now.
    pub(crate) fn user(
        &mut self,
        after: i64,
        build: impl FnOnce(&mut RecordBuf, u8, i64) -> &mut RecordBuf,
    ) -> io::Result<()> {
        let narrow = self.engine.world.processes.thread(self.thread).narrow;
        let pointer = if narrow { 4 } else { self.engine.pointer() };
        self.engine.add(self.cpu, self.now + after, |r, t| build(r, pointer, t))
    }

    /// The table's stack, for the event `after` nanoseconds from now.
    pub(crate) fn stack(&mut self, after: i64) -> io::Result<()> {
        let Some(stack) = self.stack else { return Ok(()) };
        let owner = crate::engine::StackOwner { ns: self.now + after, cpu: self.cpu, thread: self.thread };
        self.engine.stack(&owner, stack, self.style, None)
    }

    /// The table's stack of this event.
    pub(crate) fn table_stack(&self) -> Option<usize> {
        self.stack
    }

    /// Name of the process.
    pub(crate) fn process_name(&self) -> String {
        let process = self.engine.world.processes.thread(self.thread).process;
        self.engine.world.processes.list.get(process).map_or_else(String::new, |p| p.name.clone())
    }

    /// Counts the event for the truth, by process and operation.
    pub(crate) fn count(&mut self, table: &'static str, op: &str, figures: &[(&'static str, i64)]) {
        let process = self.process_name();
        let name = if op.is_empty() { process } else { format!("{process}/{op}") };
        self.engine.tally(table, &name, figures);
    }

    /// Timestamp of a moment relative to now.
    pub(crate) fn ticks(&self, after: i64) -> i64 {
        self.engine.out.ticks(self.now + after)
    }
}

/// An event whose threads all wait looks again this much later.
const BLOCKED_RETRY: i64 = 50_000;

/// An event whose thread finds no free processor looks again this much later.
const ROOM_RETRY: i64 = 15_000;

/// The source of a table.
pub(crate) struct Events {
    arrivals: Arrivals,
    threads: Vec<usize>,
    cpus: Vec<u16>,
    stacks: HashMap<usize, StackSet>,
    style: Style,
    durations: Durations,
    kind: Box<dyn Kind>,
    /// The thread waits for the end of each operation.
    blocks: bool,
    rng: Xoshiro,
    /// The event that is due waits until then for its thread.
    delayed: Option<i64>,
}

/// Where a table stands, and what it says about itself.
pub(crate) struct Site {
    pub(crate) common: Common,
    pub(crate) span: Range<usize>,
    pub(crate) seed: u64,
}

impl Site {
    /// An error of this table.
    pub(crate) fn fail(&self, w: &World, message: impl Into<String>) -> ScenarioError {
        w.place.error(Some(self.span.clone()), message)
    }
}

/// Makes the source of a table.
pub(crate) fn events(
    site: &Site,
    w: &mut World,
    duration: Option<Dist>,
    kind: Box<dyn Kind>,
) -> Result<Box<dyn Source>> {
    let c = &site.common;
    let place = w.place.clone();
    let mut threads = w.processes.select(c.process.as_ref(), c.thread.as_ref(), &place, &site.span)?;
    if threads.is_empty() {
        // Nobody named: the System process.
        threads = w.processes.list.get(1).map(|p| p.threads.clone()).unwrap_or_default();
        threads.truncate(1);
    }
    let mut stacks = HashMap::new();
    for &thread in &threads {
        let process = w.processes.thread(thread).process;
        if let std::collections::hash_map::Entry::Vacant(slot) = stacks.entry(process) {
            slot.insert(w.stack_set(c, process, site.span.clone())?);
        }
    }
    let mut rng = Xoshiro::seeded(site.seed);
    let c = &w.processes.within_life(c, &threads, w.facts.stretch);
    let arrivals = Arrivals::new(c, w.facts.duration, (w.facts.stretch, w.facts.counts), &mut rng);
    let arrivals = arrivals.map_err(|e| site.fail(w, e))?;
    let total = c.total.map(|t| t.0 * w.facts.counts / kind.parts().max(1) as f64);
    let duration = duration.unwrap_or(Dist::constant(20e-6));
    let durations = Durations::new(duration, total, arrivals.count(), site.seed);
    let style = c.stack_style.as_ref().map_or(Ok(w.facts.style), |t| Style::parse(Some(t)));
    let cpus = c.cpus.clone().map_or_else(Vec::new, |l| l.0);
    if let Some(wrong) = cpus.iter().find(|c| **c >= w.facts.cpus) {
        return Err(site.fail(w, format!("cpu {wrong}: the machine has {}", w.facts.cpus)));
    }
    Ok(Box::new(Events {
        arrivals,
        threads,
        cpus,
        stacks,
        style: style.map_err(|e| site.fail(w, e))?,
        durations: durations.map_err(|e| site.fail(w, e))?,
        kind,
        blocks: c.blocks,
        rng,
        delayed: None,
    }))
}

impl Source for Events {
    fn next(&self) -> Option<i64> {
        self.delayed.or(self.arrivals.next())
    }

    fn fire(&mut self, engine: &mut Engine) -> io::Result<()> {
        let (n, x) = self.arrivals.place();
        let now = engine.now;
        let count = self.threads.len();
        let turns = (0..count).map(|i| (n as usize).wrapping_add(i) % count);
        let alive = turns.filter_map(|i| self.threads.get(i)).copied().filter(|t| engine.alive(*t, now));
        let holds = self.kind.holds();
        // When somebody has time: not inside another event of the same thread.
        let free = |thread: usize| match engine.is_blocked(thread) {
            true => now + BLOCKED_RETRY,
            false if holds && engine.switches => engine.busy_until(thread).max(now),
            false => now,
        };
        let soonest = alive.map(|t| (free(t), t)).min_by_key(|(at, _)| *at);
        // Every processor may be taken by others.
        let soonest = soonest.map(|(at, t)| match engine.has_room(t, &self.cpus) {
            true => (at, t),
            false => (at.max(now + ROOM_RETRY), t),
        });
        match soonest {
            Some((at, _)) if at > now => {
                self.delayed = Some(at);
                return Ok(());
            }
            _ => self.delayed = None,
        }
        self.arrivals.advance(&mut self.rng);
        // Nobody of them lives: the event does not happen.
        let Some((_, thread)) = soonest else { return Ok(()) };
        let own = self.durations.next(&mut self.rng, n, x);
        let duration = own + self.kind.inside(&mut Draw { rng: &mut self.rng, n, x });
        let holds = holds && !self.blocks;
        let hold = if holds { duration + 2000 } else { 3000 };
        if holds {
            engine.keep_busy(thread, now + hold);
        }
        let t = engine.world.processes.thread(thread);
        let (pid, tid, process) = (t.pid, t.tid, t.process);
        let stack = self.stacks.get(&process).and_then(|s| s.pick(&mut self.rng));
        let cpu = engine.run_briefly(thread, &self.cpus, n, hold, stack)?;
        let now = engine.now;
        let style = self.style;
        let mut cx =
            Cx { engine, rng: &mut self.rng, now, cpu, thread, pid, tid, n, x, duration, stack, style };
        self.kind.emit(&mut cx)?;
        let duration = cx.duration;
        if self.blocks && engine.switches && engine.cpus.brief_until(cpu).is_some() {
            let ends = self.kind.moments(duration).into_iter().map(|after| now + after);
            wait_for_ends(engine, cpu, (thread, stack), ends.collect());
        }
        Ok(())
    }
}

/// The operations of one event follow each other after this pause.
const PART_GAP: i64 = 2000;

/// `KWAIT_REASON` of a thread that waits for a file, a key or a device.
const EXECUTIVE: Switch = Switch { state: 5, reason: 0, mode: 0 };

/// A thread leaves its processor soon after now, and is back at the first of the moments, if a processor is free then; and so on.
fn wait_for_ends(
    engine: &mut Engine,
    cpu: u16,
    (thread, stack): (usize, Option<usize>),
    mut ends: VecDeque<i64>,
) {
    const LEAVES: i64 = 1500;
    const READY: i64 = 1000;
    let Some(end) = ends.pop_front() else { return };
    let from = engine.now + LEAVES;
    // An operation that is over before the thread could leave needs no wait.
    let wait = end - READY - from;
    if wait < 1000 {
        let until = end.max(engine.now) + 3000;
        engine.cpus.set_brief(cpu, until);
        engine.hold_run(cpu);
        engine.end_run_at(until, cpu, thread);
        engine.at(
            end.max(engine.now + 500),
            Box::new(move |e| {
                wait_for_ends(e, cpu, (thread, stack), ends);
                Ok(())
            }),
        );
        return;
    }
    let pause = Pause { thread, cpu, from, wait, ready: READY, why: EXECUTIVE, by: None, stack };
    engine.block(
        pause,
        Box::new(move |e, cpu| {
            let until = e.now + PART_GAP + 5000;
            e.keep_busy(thread, until);
            e.cpus.set_brief(cpu, until);
            e.end_run_at(until, cpu, thread);
            let start = end + PART_GAP;
            e.at(
                start.max(e.now),
                Box::new(move |e| {
                    wait_for_ends(e, cpu, (thread, stack), ends);
                    Ok(())
                }),
            );
            Ok(())
        }),
    );
}

/// The name that goes with a value.
pub(crate) fn name_of<T: PartialEq>(names: &[(&'static str, T)], value: T) -> &'static str {
    names.iter().find(|(_, v)| *v == value).map_or("", |(n, _)| n)
}

/// The value that goes with a name, or a message with all names.
pub(crate) fn one_of_names<T: Copy>(what: &str, name: &str, allowed: &[(&str, T)]) -> Result<T, String> {
    let found = allowed.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, t)| *t);
    let names = crate::error::one_of(allowed.iter().map(|(n, _)| *n));
    found.ok_or_else(|| format!("{what} = {name:?}: allowed are {names}"))
}
