//! Waits of threads for each other.

use crate::cause::{Kind, Limit, Planted, Target, Whom};
use crate::plan::Plan;

pub const KINDS: &[Kind] = &[
    Kind { id: "lock", answers: &["lock.contention"], most: 4.5, alone: false, plant: lock },
    Kind {
        id: "priority-inversion",
        answers: &["cpu.priority-inversion"],
        most: 10.0,
        alone: false,
        plant: inversion,
    },
    Kind { id: "ui-hang", answers: &["ui.hang"], most: 12.0, alone: false, plant: ui_hang },
    Kind {
        id: "service-waits",
        answers: &["security.service-waits"],
        most: 5.0,
        alone: false,
        plant: service_waits,
    },
    Kind {
        id: "formatting-chain",
        answers: &["service.formatting-chain"],
        most: 6.0,
        alone: false,
        plant: chain,
    },
];

/// Four threads want the critical section that a fifth holds.
fn lock(plan: &mut Plan, multiple: f64) -> Planted {
    let actor = plan.suspect("[\"holder\", \"worker*4\"]");
    let window = (multiple * 0.2).min(0.93) * plan.duration;
    let name = &actor.name;
    let work = format!("ntdll!RtlUserThreadStart;{name}!Worker;{name}!Order::Save");
    let from = plan.random.between(0.0, plan.duration * 0.97 - window);
    plan.table(
        "thread_activity",
        &format!(
            "thread = \"{}/worker\"\nrun = \"1ms\"\nwait = \"4ms\"\nfrom = \"{from:.3}s\"\nto = \"{:.3}s\"\nwait_reason = \"WrAlertByThreadId\"\nreadied_by = \"{}/holder\"\nstack = \"{work}\"\nwait_stack = \"{work};ntdll!RtlEnterCriticalSection;ntdll!RtlpEnterCriticalSectionContended;ntdll!RtlpWaitOnCriticalSection;ntdll!NtWaitForAlertByThreadId;nt!NtWaitForAlertByThreadId;nt!KeWaitForAlertByThreadId\"\nready_stack = \"ntdll!RtlUserThreadStart;{name}!Flush;{name}!Order::Save;ntdll!RtlLeaveCriticalSection;ntdll!NtAlertThreadByThreadId;nt!NtAlertThreadByThreadId\"",
            actor.pid,
            from + window,
            actor.pid
        ),
    );
    plan.busy += window * 0.8;
    plan.cpu(
        &actor,
        "holder",
        0.5 * window,
        &format!("ntdll!RtlUserThreadStart;{name}!Flush;{name}!Order::Save;{name}!Order::Serialize"),
    );
    // Four threads that wait for four fifths of the window: hardly ever nobody waits.
    Planted::by(Target::process(&actor))
        .needs(window * 0.99, Limit::OfTrace(0.2))
        .needs(window * 4.0 / 0.005, Limit::Fixed(100.0))
        // On two processors its own work leaves others little.
        .also(&["cpu.starvation"])
}

/// A thread of low priority holds what one of high priority waits for, and gets no processor.
fn inversion(plan: &mut Plan, multiple: f64) -> Planted {
    let low = plan.suspect("[{ name = \"low\", priority = 4 }]");
    let high = plan.program("[{ name = \"audio\", priority = 13 }]");
    // How much of a wait the other one is ready depends on where its own runs fall: a quarter to nearly all.
    let share = if multiple < 1.0 { 0.95 } else { 0.25 };
    let rounds = (multiple * (0.02 * plan.duration).max(0.05) / share / 0.06).max(1.0);
    let window = (rounds * 0.065).min(plan.duration * 0.95);
    let from = plan.random.between(0.0, plan.duration * 0.97 - window);
    let span = format!("from = \"{from:.3}s\"\nto = \"{:.3}s\"", from + window);
    plan.table(
        "thread_activity",
        &format!(
            "thread = \"{}/audio\"\npriority = 13\nrun = \"2ms\"\nwait = \"60ms\"\n{span}\nwait_reason = \"WrResource\"\nreadied_by = \"{}/low\"\nstack = \"{n}!Mix\"\nwait_stack = \"{n}!Mix;ntdll!RtlEnterCriticalSection;ntdll!NtWaitForAlertByThreadId;nt!KeWaitForAlertByThreadId\"\nready_stack = \"{l}!Scan;ntdll!RtlLeaveCriticalSection;ntdll!NtAlertThreadByThreadId\"",
            high.pid,
            low.pid,
            n = high.name,
            l = low.name
        ),
    );
    plan.table("thread_activity", &format!("thread = \"{}/low\"\npriority = 4\nrun = \"1ms\"\nwait = \"1ms\"\nready = \"58ms\"\n{span}\nstack = \"{}!Scan\"", low.pid, low.name));
    let cost = window * share * 60.0 / 65.0;
    Planted::by(Target::process(&low))
        .needs(cost, Limit::Fixed(0.05))
        .needs(cost, Limit::OfTrace(0.02))
        .needs(window / 0.062, Limit::Fixed(3.0))
        .also_of(&Whom::Anybody, &["lock.contention", "cpu.starvation"])
}

/// A window does not look at its messages: Windows says so.
fn ui_hang(plan: &mut Plan, multiple: f64) -> Planted {
    let actor = plan.suspect("\"ui\"");
    let millis = (multiple * 200.0).round();
    let at = plan.random.between(millis / 1000.0 + 0.05, plan.duration - 0.1);
    plan.table(
        "manifest_event",
        &format!(
            "process = \"{}\"\nprovider = \"8c416c79-d49b-4f01-a467-e56d3aa8234c\"\nid = 38\nat = [{at:.3}]\nkeyword = \"0x40000\"\nfields = [{{ type = \"u32\", value = 1 }}, {{ type = \"u32\", value = {millis} }}, {{ type = \"u32\", value = 520 }}, {{ type = \"u32\", value = 540 }}, \"Edit\", \"MainWindow\", \"{}\", {{ type = \"u32\", value = 513 }}, {{ type = \"u64\", value = 1 }}]",
            actor.pid, actor.name
        ),
    );
    // The thread has no context switches: nothing tells who made it wait.
    Planted::by(Target::thing("[unknown]")).needs(millis, Limit::Fixed(200.0)).costs_s(millis / 1000.0)
}

/// Threads wait in a filter for its service.
fn service_waits(plan: &mut Plan, multiple: f64) -> Planted {
    let service = plan
        .known(&["MsMpEng.exe", "CSFalconService.exe", "SophosFileScanner.exe", "mfetp.exe"])
        .unwrap_or_else(|| "MsMpEng.exe".to_owned());
    let service = plan.process(&service, "\"scan*2\"", "session = 0");
    let victim = plan.program("\"main*2\"");
    let unit = (0.1 * plan.duration).max(0.5);
    let window = (multiple * unit / 2.0 * 44.0 / 40.0).min(plan.duration * 0.93);
    let from = plan.random.between(0.0, plan.duration * 0.97 - window);
    let work = format!("ntdll!RtlUserThreadStart;{}!main", victim.name);
    plan.table(
        "thread_activity",
        &format!(
            "thread = \"{}/main\"\nrun = \"4ms\"\nwait = \"40ms\"\nfrom = \"{from:.3}s\"\nto = \"{:.3}s\"\nwait_reason = \"Executive\"\nreadied_by = \"{}/scan\"\nstack = \"{work};{}!Compile\"\nwait_stack = \"{work};KernelBase.dll!CreateFileW;ntdll!NtCreateFile;nt!NtCreateFile;nt!IopCreateFile;nt!ObOpenObjectByNameEx;nt!IopParseDevice;nt!IofCallDriver;fltmgr.sys!FltpCreate;fltmgr.sys!FltpPerformPostCallbacks;WdFilter.sys!MpPostCreate;fltmgr.sys!FltSendMessage;nt!KeWaitForSingleObject\"\nready_stack = \"ntdll!RtlUserThreadStart;{s}!ScanThread;fltlib.dll!FilterReplyMessage;fltmgr.sys!FltpReplyMessage;nt!KeSetEvent\"",
            victim.pid,
            from + window,
            service.pid,
            victim.name,
            s = service.name
        ),
    );
    plan.busy += window * 0.2;
    plan.cpu(
        &service,
        "scan",
        0.2,
        &format!("ntdll!RtlUserThreadStart;{}!ScanThread;mpengine.dll!ScanFile", service.name),
    );
    let waits = 2.0 * window * 40.0 / 44.0;
    Planted::by(Target::process(&service))
        .needs(waits, Limit::Fixed(0.5))
        .needs(waits, Limit::OfTrace(0.1))
        .needs(waits / 0.04, Limit::Fixed(5.0))
}

/// Behind each answer are other services that wait for each other.
fn chain(plan: &mut Plan, multiple: f64) -> Planted {
    let actor = plan.suspect("\"main\"");
    let first = plan.process("svchost.exe", "\"rpc\"", "session = 0\nservices = [\"EventLog\"]");
    let second = plan.program("\"provider\"");
    let third = plan.process("lsass.exe", "\"lookup\"", "session = 0");
    let unit = 500.0;
    let calls = (multiple * unit).round().max(1.0);
    // Twice the tenth of the trace that they have to take at the limit, and never more than all of it.
    let each = (0.2 * plan.duration / unit).min(0.8 * plan.duration / calls).min(plan.room() / calls);
    let part = ((each * 1e6 - 50.0) / 3.0).max(20.0).round();
    plan.busy += calls * part * 3.0 / 1e6;
    plan.table(
        "alpc",
        &format!(
            "process = \"{}\"\nthread = \"main\"\nservers = [\"{}/rpc\", \"{}/provider\", \"{}/lookup\"]\nservice = [\"{part}us\", \"{part}us\", \"{part}us\"]\nport = '\\RPC Control\\epmapper'\nto = \"{:.3}s\"\ncount = {calls}\nstack = \"ntdll!RtlUserThreadStart;{}!main;rpcrt4.dll!NdrClientCall3;ntdll!NtAlpcSendWaitReceivePort\"",
            actor.pid,
            first.pid,
            second.pid,
            third.pid,
            plan.duration * 0.97,
            actor.name
        ),
    );
    Planted::by(Target::process(&actor))
        .needs(calls, Limit::Fixed(500.0))
        .needs(calls * each, Limit::OfTrace(0.1))
}
