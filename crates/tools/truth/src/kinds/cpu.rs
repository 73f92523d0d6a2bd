//! Processors.

use crate::cause::{Kind, Limit, Planted, Target, Whom};
use crate::plan::Plan;

pub const KINDS: &[Kind] = &[
    Kind { id: "spin-wait", answers: &["cpu.spin-wait"], most: 60.0, alone: false, plant: spin_wait },
    Kind { id: "dominant", answers: &["cpu.dominant"], most: 4.0, alone: true, plant: dominant },
    Kind {
        id: "single-thread",
        answers: &["cpu.single-thread"],
        most: 2.0,
        alone: true,
        plant: single_thread,
    },
    Kind {
        id: "kernel-spinlock",
        answers: &["cpu.kernel-spinlock"],
        most: 60.0,
        alone: false,
        plant: spinlock,
    },
    Kind { id: "verifier", answers: &["memory.verifier"], most: 60.0, alone: false, plant: verifier },
    Kind { id: "starvation", answers: &["cpu.starvation"], most: 5.0, alone: true, plant: starvation },
];

/// Threads wait for a lock by Sleep(0) and pause loops.
fn spin_wait(plan: &mut Plan, multiple: f64) -> Planted {
    let actor = plan.suspect("[\"main\", \"spin*24\"]");
    let unit = (0.2 * plan.duration).max(0.2);
    let cost = plan.most(multiple, unit) * unit;
    let start = format!("ntdll!RtlUserThreadStart;{}!Worker;{}!SpinLock::Acquire", actor.name, actor.name);
    plan.cpu_stacks(
        &actor,
        "spin",
        cost,
        &[
            (4, &format!("{start};KernelBase.dll!SleepEx;ntdll!NtDelayExecution;nt!NtDelayExecution;nt!KeDelayExecutionThread")),
            (3, &format!("{start};KernelBase.dll!SwitchToThread;ntdll!NtYieldExecution;nt!NtYieldExecution")),
            (2, &format!("{start};ntdll!RtlpEnterCriticalSectionContended")),
        ],
    );
    plan.cpu(
        &actor,
        "main",
        0.3,
        &format!("ntdll!RtlUserThreadStart;{}!main;{}!Compute", actor.name, actor.name),
    );
    Planted::by(Target::process(&actor))
        .needs(cost, Limit::Fixed(0.2))
        .needs(cost, Limit::OfTrace(0.2))
        .needs(cost / (cost + 0.3), Limit::Fixed(0.1))
        .costs_cpu(cost, &[&format!("{}!SpinLock::Acquire", actor.name)])
        .also(&["cpu.single-thread"])
}

/// A program takes most of what the processors do.
fn dominant(plan: &mut Plan, multiple: f64) -> Planted {
    let threads = plan.cpus.min(48);
    let actor = plan.suspect(&format!("\"worker*{threads}\""));
    let least = (0.8 * plan.duration).max(plan.busy * 0.3 / 0.7);
    let cost = (least * multiple).min(plan.room());
    plan.cpu(
        &actor,
        "worker",
        cost,
        &format!("ntdll!RtlUserThreadStart;{}!Worker;{}!Multiply", actor.name, actor.name),
    );
    Planted::by(Target::process(&actor))
        .needs(cost, Limit::OfTrace(0.8))
        .needs(cost, Limit::OfBusy(0.3))
        .needs(cost, Limit::Fixed(0.2))
        .costs_cpu(cost, &[&actor.label()])
        .also(&["cpu.single-thread"])
}

/// One thread is busy all the time, and the other processors have nothing to do. Half of the machines have a thread that rests.
fn single_thread(plan: &mut Plan, multiple: f64) -> Planted {
    let actor = plan.suspect("[\"main\", \"pool*7\"]");
    let full = multiple >= 0.8;
    let cost = if full { 0.97 * plan.duration } else { multiple * 0.9 * plan.duration };
    plan.cpu(
        &actor,
        "main",
        cost,
        &format!("ntdll!RtlUserThreadStart;{}!main;{}!Decode", actor.name, actor.name),
    );
    // A thread cannot be busier than always: what counts as plainly above the limit is all of the trace.
    let sure = if full { 2.0 } else { multiple };
    Planted::by(Target::process(&actor))
        .needs(sure, Limit::Fixed(1.0))
        .costs_cpu(cost, &[&actor.label()])
        .also_of(&Whom::Same, &["cpu.dominant"])
}

/// Threads wait for a spin lock of the kernel.
fn spinlock(plan: &mut Plan, multiple: f64) -> Planted {
    let actor = plan.suspect("\"worker*24\"");
    let unit = (0.1 * plan.duration).max(0.1);
    let multiple = plan.most(multiple, unit);
    let part = (multiple * 0.05).min(0.6);
    let cost = (multiple * unit).max((plan.busy + 0.4) * part / (1.0 - part)).min(plan.room());
    let call = format!(
        "ntdll!RtlUserThreadStart;{}!Worker;ntdll!NtSetEvent;nt!NtSetEvent;nt!KeSetEvent",
        actor.name
    );
    plan.cpu(&actor, "worker", cost, &format!("{call};nt!KxWaitForSpinLockAndAcquire"));
    plan.cpu(&actor, "worker", 0.2, &call);
    Planted::by(Target::process(&actor))
        .needs(cost, Limit::Fixed(0.1))
        .needs(cost, Limit::OfTrace(0.1))
        // A fifth of the program's own time is enough, however busy the machine is; here it is more.
        .costs_cpu(cost, &["ntoskrnl.exe!KxWaitForSpinLockAndAcquire"])
        .also(&["cpu.spin-wait"])
}

/// Driver Verifier checks every call of a driver.
fn verifier(plan: &mut Plan, multiple: f64) -> Planted {
    let victim = plan.program("\"worker*16\"");
    let cost = plan.most(multiple, 0.1) * 0.1;
    let call = format!("ntdll!RtlUserThreadStart;{}!Worker;ntdll!NtWriteFile;nt!NtWriteFile", victim.name);
    plan.cpu(&victim, "worker", cost, &format!("{call};nt!VerifierIofCallDriver;nt!VfIoAllocateIrp1;nt!ViPoolDelayFreeTrimThreadRoutine;verifierext.sys!XdvExAllocatePool"));
    plan.cpu(&victim, "worker", 0.3, &format!("{call};Ntfs.sys!NtfsFsdWrite"));
    Planted::by(Target::thing("Driver Verifier"))
        .needs(cost, Limit::Fixed(0.1))
        .needs(cost, Limit::OfTrace(0.01))
        .costs_cpu(cost, &["ntoskrnl.exe!VerifierIofCallDriver"])
}

/// Busy threads leave no processor to somebody's window.
fn starvation(plan: &mut Plan, multiple: f64) -> Planted {
    let threads = plan.cpus;
    let hog = plan.suspect(&format!("\"worker*{threads}\""));
    let victim = plan.program("\"ui\"");
    // Below the limit there are processors to spare: nobody waits longer than planned.
    let share = if multiple < 1.0 { 0.6 } else { 0.85 };
    let load = (plan.capacity() * share - plan.busy).max(0.0);
    plan.cpu(
        &hog,
        "worker",
        load,
        &format!("ntdll!RtlUserThreadStart;{}!Worker;{}!Loop", hog.name, hog.name),
    );
    // So many times ready for 30 ms before it runs for 2.
    let rounds = (multiple * 0.1 * plan.duration / 0.03).round().max(1.0);
    let period = plan.duration * 0.9 / rounds;
    let wait = ((period - 0.032) * 1e6).max(200.0).round();
    plan.table(
        "thread_activity",
        &format!(
            "thread = \"{}/ui\"\nrun = \"2ms\"\nwait = \"{wait}us\"\nready = \"30ms\"\nwait_reason = \"WrUserRequest\"\nstack = \"ntdll!RtlUserThreadStart;{}!main;user32.dll!DispatchMessageW\"",
            victim.pid, victim.name
        ),
    );
    plan.busy += rounds * 0.002;
    Planted::by(Target::process(&hog))
        .needs(rounds * 0.03, Limit::OfTrace(0.1))
        .needs(rounds, Limit::Fixed(5.0))
        .also(&["cpu.dominant"])
        .also_of(&Whom::Anybody, &["cpu.priority-inversion"])
}
