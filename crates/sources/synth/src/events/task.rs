//! `[[task]]`: threads do one step after the other, and wait for locks, queues, disks and processors on the way.
//!
//! A thread that wants a processor gets a free one, first come, first served among equals; a thread of higher priority takes it from one of
//! lower priority within a slice. Between its steps nobody waits for anything: each wait has the thread, DPC or timer that ends it.

mod plan;

use super::Site;
use super::file::{Transfer, irp};
use crate::engine::{Arrivals, Engine, Running, Source, StackOwner, Style, Switch, Waiter, Wanting};
use crate::error::Result;
use crate::model::Task;
use crate::value::Dist;
use crate::world::{SLEEP, World};
use etwhy_base::rng::Xoshiro;
use etwhy_decode::kernel::events as kernel;
use plan::{Actor, Look, Part, Plan, Request, What, looks, what};
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

/// A run is looked at this often: others may want the processor.
const SLICE: i64 = 250_000;
/// A thread of equal priority waits this long at most.
const QUANTUM: i64 = 20_000_000;
/// A ready thread looks for a processor this often.
const RETRY: i64 = 20_000;
/// Between two rounds.
const TURN: i64 = 1000;
/// Between two events of a thread: stacks name their event by its time.
const APART: i64 = 500;
/// `KWAIT_REASON` WrQuantumEnd.
const QUANTUM_END: Switch = Switch { state: 1, reason: 30, mode: 0 };

/// The source that starts rounds.
struct Tasks {
    arrivals: Option<Arrivals>,
    /// Of tasks that repeat: threads that have not begun.
    starts: Vec<(i64, usize)>,
    threads: Vec<usize>,
    plan: Rc<Plan>,
    rng: Xoshiro,
    delayed: Option<i64>,
}

pub(crate) fn task(t: &Task, site: &Site, w: &mut World) -> Result<Box<dyn Source>> {
    let c = &site.common;
    let place = w.place.clone();
    let threads = w.processes.select(c.process.as_ref(), c.thread.as_ref(), &place, &site.span)?;
    if threads.is_empty() {
        return Err(site.fail(w, "it needs a process or thread = \"process/thread\""));
    }
    if t.steps.is_empty() || !c.stacks.is_empty() || c.blocks {
        return Err(
            site.fail(w, "it needs steps = [{ run = \"1ms\" }, ...], with `stack` in the table or in steps")
        );
    }
    let mut owners: Vec<usize> = threads.iter().map(|t| w.processes.thread(*t).process).collect();
    owners.sort_unstable();
    owners.dedup();
    let mut parts = Vec::new();
    for (n, step) in t.steps.iter().enumerate() {
        let (what, wait) = what(step, w).map_err(|e| site.fail(w, format!("step {}: {e}", n + 1)))?;
        let frames = step.stack.clone().or(c.stack.clone()).unwrap_or_default();
        let looks = looks(&frames, wait.as_ref(), &owners, w).map_err(|e| site.fail(w, e))?;
        parts.push(Part { what, switch: wait.map_or(Switch::WAITING, |w| w.switch()), looks });
    }
    let between = looks(&c.stack.clone().unwrap_or_default(), Some(&SLEEP), &owners, w);
    let between = between.map_err(|e| site.fail(w, e))?;
    let cpus = c.cpus.clone().map_or_else(Vec::new, |l| l.0);
    if let Some(wrong) = cpus.iter().find(|c| **c >= w.facts.cpus) {
        return Err(site.fail(w, format!("cpu {wrong}: the machine has {}", w.facts.cpus)));
    }
    let style = c.stack_style.as_ref().map_or(Ok(w.facts.style), |t| Style::parse(Some(t)));
    let style = style.map_err(|e| site.fail(w, e))?;
    let mut rng = Xoshiro::seeded(site.seed);
    let c = &w.processes.within_life(c, &threads, w.facts.stretch);
    let stretch = w.facts.stretch;
    let scaled = |t: crate::value::Time| (t.0 * stretch * 1e9) as i64;
    let from = c.from.map_or(0, scaled);
    let repeats = c.at.is_none() && c.count.is_none() && c.rate.is_none() && c.every.is_none();
    let arrivals =
        (!repeats).then(|| Arrivals::new(c, w.facts.duration, (stretch, w.facts.counts), &mut rng));
    let arrivals = arrivals.transpose().map_err(|e| site.fail(w, e))?;
    // They do not begin in step.
    let starts = threads.iter().rev().map(|t| (from + 1000 + rng.below(1_000_000) as i64, *t));
    let mut starts: Vec<_> = if repeats { starts.collect() } else { Vec::new() };
    starts.sort_unstable_by(|a, b| b.cmp(a));
    let plan = Plan {
        parts,
        between,
        ready: t.ready.clone().unwrap_or(Dist::constant(5e-6)),
        cpus: cpus.into(),
        repeats,
        from,
        to: c.to.map_or(w.facts.duration, scaled).min(w.facts.duration),
        style: if w.facts.switch_stacks { style } else { Style::None },
        salt: site.seed,
        rng: RefCell::new(Xoshiro::seeded(site.seed ^ 0x7A5C)),
        rounds: Cell::new(0),
        working: RefCell::default(),
    };
    Ok(Box::new(Tasks { arrivals, starts, threads, plan: Rc::new(plan), rng, delayed: None }))
}

impl Source for Tasks {
    fn next(&self) -> Option<i64> {
        let first = self.starts.last().map(|(at, _)| *at);
        self.delayed.or(first).or(self.arrivals.as_ref().and_then(Arrivals::next))
    }

    fn fire(&mut self, engine: &mut Engine) -> io::Result<()> {
        let now = engine.now;
        let plan = Rc::clone(&self.plan);
        let free = |t: &usize| {
            let elsewhere = engine.cpus.where_runs(*t).is_some_and(|cpu| engine.is_task(cpu, *t));
            let working = plan.working.borrow().contains(t);
            !working && !elsewhere && !engine.is_blocked(*t) && engine.alive(*t, now)
        };
        let wanted = match self.starts.last() {
            Some((_, thread)) => Some(*thread).filter(free),
            None => {
                let (n, count) = (plan.rounds.get() as usize, self.threads.len());
                let mut turns = (0..count).filter_map(|i| self.threads.get((n + i) % count).copied());
                turns.find(free)
            }
        };
        let gone = |t: &usize| engine.world.processes.thread(*t).end.is_some_and(|end| end <= now);
        let all_gone = self.starts.last().map_or_else(|| self.threads.iter().all(gone), |(_, t)| gone(t));
        if wanted.is_none() && !all_gone {
            self.delayed = Some(now + RETRY);
            return Ok(());
        }
        self.delayed = None;
        if self.starts.pop().is_none()
            && let Some(arrivals) = &mut self.arrivals
        {
            arrivals.advance(&mut self.rng);
        }
        let Some(thread) = wanted else { return Ok(()) };
        plan.working.borrow_mut().insert(thread);
        let a = Actor { thread, cpu: 0, part: usize::MAX, round: plan.next_round() };
        let waits = plan.look(engine, a).waits;
        let first = Actor { part: 0, ..a };
        match engine.cpus.where_runs(thread) {
            Some(cpu) => go(engine, plan, Actor { cpu, ..first }),
            None => {
                // A timer wakes it.
                let home = plan.cpus.get(first.round as usize % plan.cpus.len().max(1)).copied();
                let cpu = home.unwrap_or((thread % engine.cpus.len()) as u16);
                engine.set_blocked(thread, true);
                engine.ready_thread(cpu, thread, true)?;
                let ready = plan.draw(&plan.ready, a.round, now);
                come_back(engine, plan, Actor { cpu, ..first }, waits, ready, go_on())
            }
        }
    }
}

/// What a thread does when it is back: its next step.
type Next = Box<dyn for<'a> FnOnce(&mut Engine<'a>, Rc<Plan>, Actor) -> io::Result<()>>;

fn go_on() -> Next {
    Box::new(go)
}

/// Does the step that an actor has come to.
fn go(e: &mut Engine, plan: Rc<Plan>, a: Actor) -> io::Result<()> {
    let look = plan.look(e, a);
    let next = Actor { part: a.part.saturating_add(1), ..a };
    let Some(part) = plan.parts.get(a.part) else { return end_round(e, plan, a) };
    match &part.what {
        What::Run(time) => {
            let time = plan.draw(time, a.round, e.now).max(1000);
            e.take(a.cpu, Running { thread: a.thread, load: None, stack: look.runs }, Switch::PREEMPTED)?;
            run(e, plan, a, time, e.now)
        }
        What::Sleep(time) => {
            let time = plan.draw(time, a.round, e.now).max(1000);
            leave(e, a, part.switch)?;
            let ready = plan.draw(&plan.ready, a.round, e.now);
            e.at(
                e.now + time,
                Box::new(move |e| {
                    e.ready_thread(a.cpu, a.thread, true)?;
                    come_back(e, plan, next, look.waits, ready, go_on())
                }),
            );
            Ok(())
        }
        What::Acquire(at) => {
            let Some(lock) = e.objects.locks.get_mut(*at) else { return Ok(()) };
            if lock.owner.is_none() {
                lock.owner = Some(a.thread);
                return go(e, plan, next);
            }
            let waiter = waiter(e, &plan, next, look);
            if let Some(lock) = e.objects.locks.get_mut(*at) {
                lock.waiters.push_back(waiter);
            }
            leave(e, a, part.switch)
        }
        What::Release(at) => {
            let world = e.world;
            let name = world.objects.locks.get(*at).map_or("", |o| o.name.as_str());
            let Some(lock) = e.objects.locks.get_mut(*at) else { return Ok(()) };
            if lock.owner != Some(a.thread) {
                let message = format!("a task releases the lock {name:?}, which it does not have");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
            }
            let waiter = lock.waiters.pop_front();
            lock.owner = waiter.as_ref().map(|w| w.thread);
            if let Some(waiter) = waiter {
                e.tally("lock", name, &[("count", 1), ("total_ns", e.now - waiter.since)]);
                wake(e, &plan, a, look, waiter)?;
                e.at(e.now + APART, Box::new(move |e| go(e, plan, next)));
                return Ok(());
            }
            go(e, plan, next)
        }
        What::Put(at, items) => {
            let items = plan.whole(items, a.round, 1);
            let mut after = 0;
            let world = e.world;
            let name = world.objects.queues.get(*at).map_or("", |o| o.name.as_str());
            for _ in 0..items {
                let Some(queue) = e.objects.queues.get_mut(*at) else { break };
                match queue.waiters.pop_front() {
                    None => queue.items += 1,
                    Some(waiter) => {
                        e.tally("queue", name, &[("count", 1), ("total_ns", e.now - waiter.since)]);
                        wake(e, &plan, a, look, waiter)?;
                        after = APART;
                    }
                }
            }
            e.at(e.now + after, Box::new(move |e| go(e, plan, next)));
            Ok(())
        }
        What::Take(at) => {
            let Some(queue) = e.objects.queues.get_mut(*at) else { return Ok(()) };
            if queue.items > 0 {
                queue.items -= 1;
                return go(e, plan, next);
            }
            let waiter = waiter(e, &plan, next, look);
            if let Some(queue) = e.objects.queues.get_mut(*at) {
                queue.waiters.push_back(waiter);
            }
            leave(e, a, part.switch)
        }
        What::Transfer(request) => transfer(e, &plan, request, a, (look, part.switch)),
    }
}

/// One who waits until somebody wakes him.
fn waiter(e: &Engine, plan: &Rc<Plan>, next: Actor, look: Look) -> Waiter {
    let (plan, ready) = (Rc::clone(plan), plan.draw(&plan.ready, next.round, e.now));
    let go = Box::new(move |e: &mut Engine| on_processor(e, plan, next, look.waits, false, go_on()));
    Waiter { thread: next.thread, since: e.now, ready, go }
}

/// ReadyThread by a running thread; the waiter gets a processor after its time.
fn wake(e: &mut Engine, plan: &Plan, a: Actor, look: Look, waiter: Waiter) -> io::Result<()> {
    e.ready_thread(a.cpu, waiter.thread, false)?;
    if e.switches {
        e.stack_now(a.cpu, a.thread, look.wakes, plan.style)?;
    }
    e.at(e.now + waiter.ready, waiter.go);
    Ok(())
}

/// The thread waits.
fn leave(e: &mut Engine, a: Actor, why: Switch) -> io::Result<()> {
    e.set_blocked(a.thread, true);
    e.forget_load(a.cpu, a.thread);
    e.release(a.cpu, a.thread, why)
}

fn come_back(
    e: &mut Engine,
    plan: Rc<Plan>,
    a: Actor,
    waits: Option<usize>,
    ready: i64,
    next: Next,
) -> io::Result<()> {
    e.at(e.now + ready.max(0), Box::new(move |e| on_processor(e, plan, a, waits, false, next)));
    Ok(())
}

/// A ready thread gets a processor, sooner or later.
fn on_processor(
    e: &mut Engine,
    plan: Rc<Plan>,
    a: Actor,
    waits: Option<usize>,
    wanted: bool,
    next: Next,
) -> io::Result<()> {
    let priority = e.world.processes.thread(a.thread).priority;
    let Some(cpu) = processor(e, &plan, a, priority) else {
        if !wanted {
            let cpus = Rc::clone(&plan.cpus);
            e.objects.wanting.push(Wanting { thread: a.thread, priority, cpus });
        }
        e.at(e.now + RETRY, Box::new(move |e| on_processor(e, plan, a, waits, true, next)));
        return Ok(());
    };
    e.objects.wanting.retain(|w| w.thread != a.thread);
    e.set_blocked(a.thread, false);
    let a = Actor { cpu, ..a };
    let runs = plan.look(e, a).runs;
    e.take(cpu, Running { thread: a.thread, load: None, stack: runs }, Switch::PREEMPTED)?;
    if e.switches
        && let Some(stack) = waits
    {
        // The stack of a context switch is the one that the new thread waited with.
        e.stack(&StackOwner { ns: e.now, cpu, thread: a.thread }, stack, plan.style, None)?;
    }
    e.at(e.now + APART, Box::new(move |e| next(e, plan, a)));
    Ok(())
}

fn uses(cpus: &[u16], cpu: u16) -> bool {
    cpus.is_empty() || cpus.contains(&cpu)
}

/// A free processor that nobody of higher priority, and nobody who came earlier, waits for.
fn processor(e: &Engine, plan: &Plan, a: Actor, priority: u8) -> Option<u16> {
    let wanting = &e.objects.wanting;
    let place = wanting.iter().position(|w| w.thread == a.thread).unwrap_or(wanting.len());
    let goes_first =
        |(at, w): (usize, &Wanting)| w.priority > priority || at < place && w.priority == priority;
    let claimed = |cpu: u16| wanting.iter().enumerate().any(|w| uses(&w.1.cpus, cpu) && goes_first(w));
    let free = |cpu: &u16| {
        let quiet = !(e.switches && e.cpus.is_interrupted(*cpu, e.now));
        e.cpus.is_free(*cpu) && quiet && uses(&plan.cpus, *cpu) && !claimed(*cpu)
    };
    let count = e.cpus.len() as u16;
    let order = || (0..count).map(|i| (a.cpu + i) % count);
    order().find(|c| free(c) && e.cpus.running(*c).is_none()).or_else(|| order().find(free))
}

/// Runs on, slice by slice.
fn run(e: &mut Engine, plan: Rc<Plan>, a: Actor, left: i64, since: i64) -> io::Result<()> {
    let slice = left.min(SLICE);
    e.at(e.now + slice, Box::new(move |e| ran(e, plan, a, left - slice, since)));
    Ok(())
}

fn ran(e: &mut Engine, plan: Rc<Plan>, a: Actor, left: i64, since: i64) -> io::Result<()> {
    if let Some(until) = e.interrupted_until(a.cpu).filter(|_| e.switches) {
        // A thread does nothing while a DPC or ISR has its processor.
        e.at(until + 400, Box::new(move |e| ran(e, plan, a, left, since)));
        return Ok(());
    }
    if left <= 0 {
        return go(e, plan, Actor { part: a.part + 1, ..a });
    }
    let own = e.world.processes.thread(a.thread).priority;
    let others = || e.objects.wanting.iter().filter(|w| uses(&w.cpus, a.cpu));
    let higher = others().any(|w| w.priority > own);
    let equal = e.now - since >= QUANTUM && others().any(|w| w.priority == own);
    if !higher && !equal {
        return run(e, plan, a, left, since);
    }
    leave(e, a, if higher { Switch::PREEMPTED } else { QUANTUM_END })?;
    let next: Next = Box::new(move |e, plan, a| run(e, plan, a, left, e.now));
    // Who was preempted was in no wait: it goes on where it was.
    let stack = plan.look(e, a).runs;
    come_back(e, plan, a, stack, 0, next)
}

fn end_round(e: &mut Engine, plan: Rc<Plan>, a: Actor) -> io::Result<()> {
    if plan.repeats && e.now + TURN < plan.to && e.alive(a.thread, e.now + TURN) {
        let next = Actor { part: 0, round: plan.next_round(), ..a };
        e.at(e.now + TURN, Box::new(move |e| go(e, plan, next)));
        return Ok(());
    }
    leave(e, a, SLEEP.switch())?;
    e.set_blocked(a.thread, false);
    plan.working.borrow_mut().remove(&a.thread);
    Ok(())
}

/// The thread asks for a transfer and waits for its end, which the disk's DPC brings.
fn transfer(
    e: &mut Engine,
    plan: &Rc<Plan>,
    request: &Request,
    a: Actor,
    (look, switch): (Look, Switch),
) -> io::Result<()> {
    let world = e.world;
    let (plan, pointer) = (Rc::clone(plan), e.pointer());
    let thread = world.processes.thread(a.thread);
    let (pid, tid) = (thread.pid, thread.tid);
    let process = world.processes.list.get(thread.process).map_or_else(String::new, |p| p.name.clone());
    let size = plan.whole(&request.size, a.round, 65536).clamp(512, u64::from(u32::MAX)) as u32;
    let offset = plan.whole(&request.offset, a.round, a.round * u64::from(size));
    let file = request.files.get(a.round as usize % request.files.len().max(1));
    let file = file.map_or(0, |f| world.files.address(*f));
    let object = 0xFFFF_9D02_0000_0000 + (plan.salt % 64 * 1024 + a.round % 1024) * 0x180;
    let salt = plan.salt ^ (a.part as u64) << 20 ^ (a.thread as u64) << 32;
    let (packet, file_packet) = (irp(a.round, salt), irp(a.round, salt ^ 0x77));
    let flush = request.op == kernel::DiskIo::FlushBuffers;
    let mut done = Transfer {
        op: request.op,
        disk: request.disk,
        flags: 0x0006_0043,
        size,
        offset,
        file,
        irp: packet,
        tid,
    };
    if flush {
        (done.size, done.offset, done.file) = (0, 0, 0);
    }
    if let Some(op) = request.file_op {
        e.add(a.cpu, e.now, |r, t| {
            r.perfinfo(pointer, op.hook, 3, t);
            if flush {
                return r.ptr(file_packet).ptr(object).ptr(file).u32(tid);
            }
            r.u64(offset).ptr(file_packet).ptr(object).ptr(file).u32(tid).u32(size).u32(0x0006_0900)
        })?;
        e.stack_now(a.cpu, a.thread, look.waits, plan.style)?;
    }
    e.add(a.cpu, e.now + APART, |r, t| {
        r.system(pointer, done.init().hook, 3, t, pid, tid, (1, 1)).ptr(packet).u32(tid)
    })?;
    if let Some(stack) = look.waits {
        e.stack(&StackOwner { ns: e.now + APART, cpu: a.cpu, thread: a.thread }, stack, plan.style, None)?;
    }
    let own = e.objects.service(world, request.disk, request.service.as_ref());
    let took = e.objects.transfer(world, request.disk, e.now, own).max(3000);
    let (name, figures) = done.figures(took);
    e.tally("disk_io", &format!("{process}/{name}"), &figures);
    let (began, file_op) = (e.now, request.file_op);
    let ready = plan.draw(&plan.ready, a.round, e.now);
    let (started, span) = (e.out.ticks(began), e.out.span(began, began + took));
    // The disk gets the request before its thread leaves the processor.
    e.at(began + 2 * APART, Box::new(move |e| leave(e, a, switch)));
    let next = Actor { part: a.part + 1, ..a };
    let back: Next = Box::new(move |e, plan, a| {
        match file_op {
            Some(_) => {
                let extra = if flush { 0 } else { u64::from(size) };
                e.add(a.cpu, e.now, |r, t| {
                    r.perfinfo(pointer, kernel::FileIo::OperationEnd.hook, 3, t)
                        .ptr(file_packet)
                        .ptr(extra)
                        .u32(0)
                })?;
                let mut figures = vec![("count", 1), ("total_ns", e.now - began)];
                if !flush {
                    figures.push(("bytes", size.into()));
                }
                e.tally("file_io", &format!("{process}/{name}"), &figures);
            }
            None => {
                let address = 0x7FF6_4000_0000 + a.round % (1 << 20) * 4096;
                e.add(a.cpu, e.now, |r, t| {
                    r.perfinfo(pointer, kernel::PageFault::HardFault.hook, 2, t);
                    r.i64(started).u64(offset).ptr(address).ptr(file).u32(tid).u32(size)
                })?;
                e.stack_now(a.cpu, a.thread, look.waits, plan.style)?;
                let figures = [("count", 1), ("bytes", size.into()), ("total_ns", e.now - began)];
                e.tally("hard_fault", &process, &figures);
            }
        }
        go(e, plan, a)
    });
    e.at(
        began + took,
        Box::new(move |e| {
            e.add(a.cpu, e.now, |r, t| done.done(r.perfinfo(pointer, done.op.hook, 3, t), span))?;
            e.ready_thread(a.cpu, a.thread, true)?;
            come_back(e, plan, next, look.waits, ready, back)
        }),
    );
    Ok(())
}
