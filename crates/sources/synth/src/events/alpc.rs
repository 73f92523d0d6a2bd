//! `[[alpc]]`: a client calls a server and waits for the reply; the server may call another one first.
//!
//! Each call is a chain of waits: the client leaves its processor, the server is readied by it, works, readies
//! the client. With `messages = false` the same happens without ALPC events (a lock handed on, a pipe).

use super::{Cx, Head, Kind, Site, events, one_of_names};
use crate::engine::{Engine, Pause, Source, StackOwner, Style, Switch, Then};
use crate::error::Result;
use crate::model::{Alpc, Frames, OneOrMany};
use crate::value::Dist;
use crate::world::World;
use etwhy_decode::kernel::KernelEvent;
use etwhy_decode::kernel::events::ALPC;
use std::cell::Cell;
use std::io;
use std::rc::Rc;

/// One server of the chain.
struct Stage {
    threads: Vec<usize>,
    service: Dist,
    stack: Option<usize>,
}

/// What all calls of a table share.
struct Plan {
    stages: Vec<Stage>,
    ready: Dist,
    port: String,
    messages: bool,
    head: Head,
    style: Style,
    next_message: Cell<u32>,
}

struct Calls(Rc<Plan>);

/// One step of one call.
#[derive(Clone, Copy)]
struct Step {
    caller: usize,
    caller_cpu: u16,
    caller_stack: Option<usize>,
    /// Which server is called.
    stage: usize,
    /// Number of the event in its table.
    n: u64,
    /// Nanoseconds from readied to running.
    ready: i64,
}

/// KWAIT_REASON of a client and of a server.
const REPLY: Switch = Switch { state: 5, reason: 17, mode: 1 };
const RECEIVE: Switch = Switch { state: 5, reason: 16, mode: 1 };
/// A server that has no free thread is asked again this much later.
const RETRY: i64 = 20_000;

pub(crate) fn alpc(t: &Alpc, site: &Site, w: &mut World) -> Result<Box<dyn Source>> {
    let place = w.place.clone();
    let mut stages = Vec::new();
    for (i, name) in t.servers.0.iter().enumerate() {
        let list = Some(OneOrMany(vec![name.clone()]));
        let threads = match name.contains('/') {
            true => w.processes.select(None, list.as_ref(), &place, &site.span)?,
            false => w.processes.select(list.as_ref(), None, &place, &site.span)?,
        };
        let Some(&first) = threads.first() else {
            return Err(site.fail(w, format!("server {name:?} has no threads")));
        };
        let owner = w.processes.thread(first).process;
        let frames: Option<&Frames> = t.server_stacks.get(i).or(t.server_stacks.last());
        let stack = frames.map(|f| w.stacks.intern(f, owner, &mut w.images, &mut w.processes));
        let service = t.service.get(i).or(t.service.last()).cloned();
        stages.push(Stage {
            threads,
            service: service.unwrap_or(Dist::constant(100e-6)),
            stack: stack.transpose().map_err(|e| site.fail(w, e))?,
        });
    }
    if stages.is_empty() {
        return Err(site.fail(w, "it needs servers = [\"svchost.exe/rpc\"]"));
    }
    let heads = [("perfinfo", Head::Perf), ("system", Head::System)];
    let head = one_of_names("header", t.header.as_deref().unwrap_or("perfinfo"), &heads);
    let plan = Plan {
        stages,
        ready: t.ready.clone().unwrap_or(Dist::constant(8e-6)),
        port: t.port.clone().unwrap_or_else(|| "\\RPC Control\\synthetic".into()),
        messages: t.messages.unwrap_or(true),
        head: head.map_err(|e| site.fail(w, e))?,
        style: w.facts.style,
        next_message: Cell::new((site.seed as u32 & 0xFF) << 20 | 1),
    };
    events(site, w, t.duration.clone(), Box::new(Calls(Rc::new(plan))))
}

impl Kind for Calls {
    fn holds(&self) -> bool {
        true
    }

    fn emit(&mut self, cx: &mut Cx) -> io::Result<()> {
        let plan = Rc::clone(&self.0);
        if cx.engine.switches && cx.engine.cpus.brief_until(cx.cpu).is_none() {
            // An activity's thread: it comes and goes by itself and cannot wait here.
            cx.engine.truth.homeless += 1;
            return Ok(());
        }
        let ready = plan.ready.ns(&mut cx.draw()).max(1000);
        let (caller, caller_cpu, caller_stack) = (cx.thread, cx.cpu, cx.table_stack());
        let step = Step { caller, caller_cpu, caller_stack, stage: 0, n: cx.n, ready };
        let (rest, client, began) = (cx.duration.max(1000), cx.process_name(), cx.now);
        call(
            cx.engine,
            plan,
            step,
            Box::new(move |e, cpu| {
                e.tally("alpc", &client, &[("count", 1), ("total_ns", e.now - began)]);
                e.keep_busy(caller, e.now + rest + 1000);
                e.cpus.set_brief(cpu, e.now + rest);
                e.end_run_at(e.now + rest, cpu, caller);
                Ok(())
            }),
        )
    }
}

/// An ALPC event of a thread.
fn message(
    e: &mut Engine,
    plan: &Plan,
    cpu: u16,
    thread: usize,
    event: KernelEvent,
    id: u32,
) -> io::Result<()> {
    if !plan.messages {
        return Ok(());
    }
    let t = e.world.processes.thread(thread);
    let (pointer, pid, tid) = (e.pointer(), t.pid, t.tid);
    e.add(cpu, e.now, |r, ticks| {
        match plan.head {
            Head::System => r.system(pointer, event.hook, 2, ticks, pid, tid, (1, 1)),
            _ => r.perfinfo(pointer, event.hook, 2, ticks),
        };
        match event {
            ALPC::ALPC_Wait_For_New_Message => r.u32(1).utf16z(&plan.port),
            ALPC::ALPC_Unwait => r.u32(0),
            _ => r.u32(id),
        };
        r
    })
}

fn stack(e: &mut Engine, plan: &Plan, cpu: u16, thread: usize, stack: Option<usize>) -> io::Result<()> {
    match stack {
        Some(stack) if e.switches => e.stack(&StackOwner { ns: e.now, cpu, thread }, stack, plan.style, None),
        _ => Ok(()),
    }
}

fn number(plan: &Plan) -> u32 {
    let id = plan.next_message.get();
    plan.next_message.set(id.wrapping_add(1));
    id
}

/// The caller sends, readies the server and waits.
fn call(e: &mut Engine, plan: Rc<Plan>, step: Step, then: Then) -> io::Result<()> {
    let Step { caller, caller_cpu: cpu, .. } = step;
    let Some(server) = plan.stages.get(step.stage).and_then(|s| {
        let free = |t: &&usize| {
            e.alive(**t, e.now) && !e.is_blocked(**t) && e.busy_until(**t) <= e.now && **t != caller
        };
        let count = s.threads.len();
        let turns = (0..count).filter_map(|i| s.threads.get((step.n as usize + i) % count));
        turns.into_iter().find(free).copied()
    }) else {
        // All of its threads are at work: the caller spins for a moment.
        if e.switches {
            e.keep_busy(caller, e.now + 2 * RETRY);
            e.cpus.set_brief(cpu, e.now + 2 * RETRY);
            e.hold_run(cpu);
        }
        e.at(e.now + RETRY, Box::new(move |e| call(e, plan, step, then)));
        return Ok(());
    };
    let id = number(&plan);
    message(e, &plan, cpu, caller, ALPC::ALPC_Send_Message, id)?;
    e.ready_thread(cpu, server, false)?;
    stack(e, &plan, cpu, caller, step.caller_stack)?;
    message(e, &plan, cpu, caller, ALPC::ALPC_Wait_For_Reply, id)?;
    e.set_blocked(caller, true);
    e.set_blocked(server, true);
    e.at(
        e.now + 1000,
        Box::new(move |e| {
            e.forget_load(cpu, caller);
            e.release(cpu, caller, REPLY)
        }),
    );
    e.at(e.now + step.ready, Box::new(move |e| serve(e, plan, step, server, id, then)));
    Ok(())
}

/// The server gets a processor, works, calls the next one, works, replies.
fn serve(e: &mut Engine, plan: Rc<Plan>, step: Step, server: usize, id: u32, then: Then) -> io::Result<()> {
    let Some(stage) = plan.stages.get(step.stage) else { return Ok(()) };
    let (service, own) = (stage.service.clone(), stage.stack);
    let pause = Pause::simple(server, step.caller_cpu, own);
    e.resume(
        pause,
        Box::new(move |e, cpu| {
            e.set_blocked(server, true);
            stack(e, &plan, cpu, server, own)?;
            message(e, &plan, cpu, server, ALPC::ALPC_Unwait, 0)?;
            message(e, &plan, cpu, server, ALPC::ALPC_Receive_Message, id)?;
            let half = {
                let mut rng = e.rng.clone();
                let ns = service.ns(&mut crate::value::Draw { rng: &mut rng, n: step.n, x: 0.0 });
                e.rng = rng;
                (ns / 2).max(1000)
            };
            let last = step.stage + 1 >= plan.stages.len();
            e.at(
                e.now + half,
                Box::new(move |e| {
                    let back: Then = Box::new({
                        let plan = Rc::clone(&plan);
                        move |e, cpu| {
                            e.set_blocked(server, true);
                            let at = e.now + half;
                            e.at(at, Box::new(move |e| reply(e, plan, step, server, (cpu, id), own, then)));
                            Ok(())
                        }
                    });
                    if last {
                        return back(e, cpu);
                    }
                    let next = Step {
                        caller: server,
                        caller_cpu: cpu,
                        caller_stack: own,
                        stage: step.stage + 1,
                        ..step
                    };
                    call(e, plan, next, back)
                }),
            );
            Ok(())
        }),
    )
}

/// The server replies, readies the caller and waits for the next message. A reply has the id of its message: by that
/// (`PORT_MESSAGE.MessageId`) the kernel finds who asked.
fn reply(
    e: &mut Engine,
    plan: Rc<Plan>,
    step: Step,
    server: usize,
    (cpu, id): (u16, u32),
    own: Option<usize>,
    then: Then,
) -> io::Result<()> {
    message(e, &plan, cpu, server, ALPC::ALPC_Send_Message, id)?;
    e.ready_thread(cpu, step.caller, false)?;
    stack(e, &plan, cpu, server, own)?;
    message(e, &plan, cpu, server, ALPC::ALPC_Wait_For_New_Message, 0)?;
    e.at(
        e.now + 1000,
        Box::new(move |e| {
            e.set_blocked(server, false);
            e.release(cpu, server, RECEIVE)
        }),
    );
    let pause = Pause::simple(step.caller, step.caller_cpu, step.caller_stack);
    e.at(
        e.now + step.ready,
        Box::new(move |e| {
            e.resume(
                pause,
                Box::new(move |e, cpu| {
                    stack(e, &plan, cpu, step.caller, step.caller_stack)?;
                    message(e, &plan, cpu, step.caller, ALPC::ALPC_Unwait, 0)?;
                    message(e, &plan, cpu, step.caller, ALPC::ALPC_Receive_Message, id)?;
                    then(e, cpu)
                }),
            )
        }),
    );
    Ok(())
}
