//! Processors that are slower than they could be, and those that do nothing but switch.

use crate::cause::{Kind, Limit, Planted, Target, Whom};
use crate::plan::Plan;

pub const KINDS: &[Kind] = &[
    Kind { id: "throttled", answers: &["cpu.throttled"], most: 4.0, alone: true, plant: throttled },
    Kind { id: "power-limit", answers: &["cpu.power-limit"], most: 3.0, alone: true, plant: power_limit },
    Kind {
        id: "switch-storm",
        answers: &["cpu.context-switch-storm"],
        most: 2.4,
        alone: true,
        plant: switches,
    },
    Kind { id: "wake-ups", answers: &["power.wake-up-storm"], most: 2.5, alone: true, plant: wake_ups },
];

/// A program that would use most of all processors.
fn load(plan: &mut Plan) {
    let actor = plan.program(&format!("\"worker*{}\"", plan.cpus));
    let seconds = (plan.capacity() * 0.75 - plan.busy).max(0.1);
    let n = &actor.name;
    plan.cpu(&actor, "worker", seconds, &format!("ntdll!RtlUserThreadStart;{n}!Worker;{n}!Shade"));
}

/// What processors report: their speed and the most that they may have, in percent.
fn speed(plan: &mut Plan, percent: f64, most: f64) {
    let cpus: Vec<String> = (0..plan.cpus).map(|cpu| cpu.to_string()).collect();
    plan.table(
        "manifest_event",
        &format!(
            "process = \"System\"\nprovider = \"0f67e49f-fe51-4e9f-b490-6f2948cc6027\"\nid = 10\nversion = 3\ncount = {}\narrival = \"exact\"\nfields = [{{ type = \"u32\", value = 6 }}, {{ type = \"u32\", value = {} }}, {{ type = \"u16\", value = 0 }}, {{ type = \"u8\", value = {{ cycle = [{}] }} }}, {{ type = \"u32\", value = {percent} }}, {{ type = \"u32\", value = 0 }}, {{ type = \"u32\", value = 5 }}, {{ type = \"u32\", value = {most} }}, {{ type = \"u32\", value = 80 }}, {{ type = \"u32\", value = 0 }}, {{ type = \"bool\", value = false }}, {{ type = \"bool\", value = false }}, {{ type = \"bool\", value = false }}]",
            plan.cpus * 20,
            (percent * 30.0).round(),
            cpus.join(", ")
        ),
    );
}

/// The firmware keeps the processors slow while they are busy.
fn throttled(plan: &mut Plan, multiple: f64) -> Planted {
    load(plan);
    let percent = (80.0 / multiple).round().min(100.0);
    speed(plan, percent, 100.0);
    if percent < 100.0 {
        let cpus: Vec<String> = (0..plan.cpus).map(|cpu| cpu.to_string()).collect();
        plan.table(
            "manifest_event",
            &format!("process = \"System\"\nprovider = \"0f67e49f-fe51-4e9f-b490-6f2948cc6027\"\nid = 47\ncount = {}\nto = \"0.2s\"\nfields = [{{ type = \"u16\", value = 0 }}, {{ type = \"u8\", value = {{ cycle = [{}] }} }}, {{ type = \"u32\", value = {percent} }}]", plan.cpus, cpus.join(", ")),
        );
    }
    Planted::by(Target::thing("firmware"))
        .needs(80.0 / percent, Limit::Fixed(1.0))
        .costs("speed_percent", percent)
        .also_of(&Whom::Anybody, &["cpu.power-limit", "cpu.starvation"])
}

/// The power plan allows only a part of the processors' speed.
fn power_limit(plan: &mut Plan, multiple: f64) -> Planted {
    load(plan);
    let percent = (95.0 / multiple).round().min(100.0);
    speed(plan, percent, percent);
    Planted::by(Target::thing("power plan"))
        .needs(95.0 / percent, Limit::Fixed(1.0))
        .costs("limit_percent", percent)
        .also_of(&Whom::Anybody, &["cpu.throttled", "cpu.starvation"])
}

/// Threads wake up without doing anything. By a timer: a thread that readies another one has to run for it. Their periods vary: in step with the
/// sampling no sample would ever meet them.
fn switches(plan: &mut Plan, multiple: f64) -> Planted {
    let least = 20_000f64.max(5_000.0 * f64::from(plan.cpus));
    // So many that a machine is still written in a second.
    let rate = (multiple * least).min(220_000.0 / plan.duration);
    let pairs = (rate / 40_000.0).ceil().clamp(1.0, f64::from(plan.cpus) / 2.0);
    let names: Vec<String> = (0..pairs as u32 * 2).map(|n| format!("\"t{n}\"")).collect();
    let actor = plan.suspect(&format!("[{}]", names.join(", ")));
    let period = pairs * 2.0 / rate * 1e6;
    let wait = (period - 8.0).max(4.0);
    for n in 0..pairs as u32 * 2 {
        plan.table(
            "thread_activity",
            &format!("thread = \"{p}/t{n}\"\ncpus = {n}\nrun = \"8us\"\nwait = {{ lognormal = [\"{:.1}us\", 0.1] }}\nready = \"2us\"\nwait_reason = \"UserRequest\"\nstack = \"{}!Ping\"", (wait - 2.0).max(2.0),
                actor.name, p = actor.pid),
        );
    }
    plan.busy += rate * plan.duration * 8e-6;
    // Threads that make as many each as a processor may are enough on any machine.
    let least = if rate >= pairs * 2.0 * 5_000.0 { 20_000.0 } else { least };
    Planted::by(Target::process(&actor))
        .needs(rate, Limit::Fixed(least))
        .also_of(&Whom::Anybody, &["cpu.single-thread"])
}

/// A program sleeps a moment at a time on a machine that has nothing to do.
fn wake_ups(plan: &mut Plan, multiple: f64) -> Planted {
    let actor = plan.suspect("[\"tick0\", \"tick1\"]");
    let rate = multiple * 900.0;
    let wait = (2.0 / rate * 1e6 - 20.0).round();
    let name = &actor.name;
    for n in 0..2 {
        plan.table(
            "thread_activity",
            &format!("thread = \"{}/tick{n}\"\nrun = \"20us\"\nwait = \"{wait}us\"\nwait_reason = \"DelayExecution\"\nstack = \"ntdll!RtlUserThreadStart;{name}!Poll\"\nwait_stack = \"ntdll!RtlUserThreadStart;{name}!Poll;KernelBase.dll!SleepEx;ntdll!NtDelayExecution;nt!NtDelayExecution;nt!KeDelayExecutionThread\"", actor.pid),
        );
    }
    plan.busy += rate * plan.duration * 20e-6;
    Planted::by(Target::process(&actor))
        .needs(rate, Limit::Fixed(900.0))
        // And at most 15 % of the processors may be busy.
        .needs(0.15 * plan.capacity(), Limit::OfBusy(1.0))
}
