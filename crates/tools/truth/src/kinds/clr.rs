//! .NET.

use crate::cause::{Kind, Limit, Planted, Target};
use crate::plan::{Actor, Plan};

pub const KINDS: &[Kind] = &[
    Kind { id: "gc-pause", answers: &["clr.gc-pause"], most: 8.0, alone: false, plant: gc },
    Kind { id: "exceptions", answers: &["clr.exception-storm"], most: 20.0, alone: false, plant: exceptions },
    Kind { id: "jit", answers: &["clr.jit"], most: 6.0, alone: false, plant: jit },
    Kind { id: "clr-lock", answers: &["clr.lock-contention"], most: 9.0, alone: false, plant: contention },
    Kind {
        id: "pool-starved",
        answers: &["clr.thread-pool-starvation"],
        most: 2.0,
        alone: false,
        plant: starved,
    },
];

/// A .NET program, whose main thread works a little.
fn service(plan: &mut Plan) -> Actor {
    let actor = plan.suspect("[\"main\", \"pool*4\"]");
    plan.cpu(&actor, "main", 0.05 * plan.duration, &format!("ntdll!RtlUserThreadStart;{}!wmain;coreclr.dll!RunMain;jit!Orders.Program.Main;jit!Orders.Service.Handle", actor.name));
    actor
}

fn gc(plan: &mut Plan, multiple: f64) -> Planted {
    let actor = service(plan);
    let total = multiple * (0.1 * plan.duration).max(0.2);
    // Below the 200 ms at which one pause is enough.
    let count = (total / 0.12).ceil().max(4.0);
    let micros = (total / count * 1e6).round();
    plan.table("gc", &format!("process = \"{}\"\nthread = \"main\"\ncount = {count}\npause = \"{micros}us\"\ngeneration = 2\nheap = \"1GiB\"\narrival = \"exact\"\nto = \"{:.3}s\"", actor.pid, plan.duration * 0.98));
    let total = count * micros / 1e6;
    Planted::by(Target::process(&actor))
        .needs(total, Limit::Fixed(0.2))
        .needs(total, Limit::OfTrace(0.1))
        .costs_s(total)
}

fn exceptions(plan: &mut Plan, multiple: f64) -> Planted {
    let actor = service(plan);
    let least = (100.0 * plan.duration).max(500.0);
    let count = (multiple * least).round();
    plan.table("exception", &format!("process = \"{}\"\nthread = \"pool\"\nkind = \"System.FormatException\"\nmessage = \"Input string was not in a correct format.\"\ncount = {count}", actor.pid));
    Planted::by(Target::process(&actor))
        .needs(count, Limit::Fixed(500.0))
        .needs(count, Limit::OfTrace(100.0))
        .costs("exceptions", count)
}

fn jit(plan: &mut Plan, multiple: f64) -> Planted {
    let actor = service(plan);
    let total = multiple * (0.1 * plan.duration).max(0.5);
    let methods: Vec<String> = (0..130).map(|n| format!("\"Orders.Generated.Mapper{n}.Map\"")).collect();
    let each = (total / 130.0 * 1e6).round();
    plan.table("jit", &format!("process = \"{}\"\nthread = \"pool\"\nstarted = true\nduration = \"{each}us\"\nmethods = [{}]\nto = \"{:.3}s\"", actor.pid, methods.join(", "), plan.duration * 0.95));
    Planted::by(Target::process(&actor))
        .needs(total, Limit::Fixed(0.5))
        .needs(total, Limit::OfTrace(0.1))
        .costs_s(each * 130.0 / 1e6)
}

fn contention(plan: &mut Plan, multiple: f64) -> Planted {
    let actor = service(plan);
    let total = multiple * (0.1 * plan.duration).max(1.0);
    let count = (total / 0.004).max(100.0).round();
    let micros = (total / count * 1e6).round();
    plan.table("contention", &format!("process = \"{}\"\nthread = \"pool\"\ncount = {count}\nduration = \"{micros}us\"\nto = \"{:.3}s\"\nstack = \"{}!wmain;jit!Orders.Cache.Get;coreclr.dll!JIT_MonEnterWorker\"", actor.pid, plan.duration * 0.97, actor.name));
    let total = count * micros / 1e6;
    Planted::by(Target::process(&actor))
        .needs(total, Limit::Fixed(1.0))
        .needs(total, Limit::OfTrace(0.1))
        .needs(count, Limit::Fixed(50.0))
        .costs_s(total)
}

/// The pool adds a thread each half second, because nobody took what was queued.
fn starved(plan: &mut Plan, multiple: f64) -> Planted {
    let actor = service(plan);
    let count = (multiple * 4.0).round().max(1.0);
    let every = 0.5f64.min((plan.duration - 0.4) / count);
    let at: Vec<String> = (0..count as u32).map(|n| format!("{:.3}", 0.2 + every * f64::from(n))).collect();
    plan.table("manifest_event", &format!("process = \"{}\"\nprovider = \"e13c0d23-ccbc-4e12-931b-d9cc2eee27e4\"\nid = 55\nkeyword = \"0x10000\"\nat = [{}]\nfields = [{{ type = \"f64\", value = 1.0 }}, {{ type = \"u32\", value = {{ counter = [9, 1] }} }}, {{ type = \"u32\", value = 6 }}, {{ type = \"u16\", value = 9 }}]", actor.pid, at.join(", ")));
    Planted::by(Target::process(&actor)).needs(count, Limit::Fixed(4.0)).costs_s(count * 0.5)
}
