//! Disks and page faults that go to them. Each cause has a disk of its own; disk 0 belongs to the innocent.

use crate::cause::{Kind, Limit, Planted, Target, Whom};
use crate::plan::Plan;

pub const KINDS: &[Kind] = &[
    Kind { id: "disk-slow", answers: &["disk.slow"], most: 2.2, alone: false, plant: slow },
    Kind { id: "disk-saturated", answers: &["disk.saturated"], most: 2.0, alone: false, plant: saturated },
    Kind { id: "flush-storm", answers: &["disk.flush-storm"], most: 15.0, alone: false, plant: flushes },
    Kind {
        id: "small-random",
        answers: &["disk.small-random"],
        most: 4.0,
        alone: false,
        plant: small_random,
    },
    Kind {
        id: "hard-faults",
        answers: &["memory.hard-faults"],
        most: 20.0,
        alone: false,
        plant: hard_faults,
    },
    Kind { id: "disk-stall", answers: &["disk.stall"], most: 2.2, alone: false, plant: stall },
];

/// Each read takes longer than a disk should.
fn slow(plan: &mut Plan, multiple: f64) -> Planted {
    let disk = plan.disk();
    let victim = plan.program("\"main\"");
    let millis = multiple * 50.0;
    let count = 30.0;
    let total = count * millis / 1000.0;
    plan.table(
        "disk_io",
        &format!("process = \"{}\"\nop = \"read\"\ndisk = {disk}\nfile = 'C:\\data\\base.mdb'\ncount = {count}\nsize = \"64KB\"\nduration = \"{millis:.3}ms\"\nto = \"{:.3}s\"", victim.pid, plan.duration * 0.96),
    );
    Planted::by(Target::thing(&format!("disk {disk}")))
        .needs(millis, Limit::Fixed(50.0))
        .needs(total, Limit::Fixed(1.0))
        .costs_s(total)
        .also_of(&Whom::Named(victim.name), &["disk.saturated"])
}

/// A program keeps a disk busy all the time, or only part of it.
fn saturated(plan: &mut Plan, multiple: f64) -> Planted {
    let disk = plan.disk();
    let actor = plan.suspect("\"main\"");
    let full = multiple >= 0.8;
    let share = if full { 0.985 } else { multiple * 0.9 };
    let count = (plan.duration * share / 0.002).round();
    plan.table(
        "disk_io",
        &format!("process = \"{}\"\nthread = \"main\"\nop = \"write\"\ndisk = {disk}\nfile = 'D:\\backup\\image.vhdx'\ncount = {count}\nsize = \"1MiB\"\nduration = \"2ms\"\narrival = \"exact\"", actor.pid),
    );
    let sure = if full { 2.0 } else { multiple };
    Planted::by(Target::process(&actor)).needs(sure, Limit::Fixed(1.0)).costs_s(count * 0.002)
}

/// A program flushes after every line.
fn flushes(plan: &mut Plan, multiple: f64) -> Planted {
    let disk = plan.disk();
    let actor = plan.suspect("\"main\"");
    let total = multiple * 0.05 * plan.duration;
    let count = (55.0 * plan.duration).max(total / 0.002).round();
    plan.table(
        "disk_io",
        &format!("process = \"{}\"\nthread = \"main\"\nop = \"flush\"\ndisk = {disk}\nfile = 'C:\\logs\\app.log'\ncount = {count}\nsize = \"0\"\ntotal = \"{}us\"\nduration = \"1ms\"\nto = \"{:.3}s\"\narrival = \"exact\"", actor.pid, (total * 1e6).round(), plan.duration * 0.97),
    );
    Planted::by(Target::process(&actor))
        .needs(total, Limit::OfTrace(0.05))
        .needs(count, Limit::Fixed(50.0))
        .costs_s(total)
}

/// A program reads a little from everywhere.
fn small_random(plan: &mut Plan, multiple: f64) -> Planted {
    let disk = plan.disk();
    let actor = plan.suspect("\"main\"");
    let total = multiple * 0.2 * plan.duration;
    let count = (total / 0.001).max(620.0).round();
    plan.table(
        "disk_io",
        &format!("process = \"{}\"\nthread = \"main\"\nop = \"read\"\ndisk = {disk}\nfile = 'C:\\data\\base.mdb'\ncount = {count}\nsize = \"4KiB\"\ntotal = \"{}us\"\nduration = \"1ms\"\noffset = {{ uniform = [0, \"200GiB\"] }}\nto = \"{:.3}s\"\narrival = \"exact\"", actor.pid, (total * 1e6).round(), plan.duration * 0.98),
    );
    Planted::by(Target::process(&actor))
        .needs(total, Limit::OfTrace(0.2))
        .needs(count, Limit::Fixed(500.0))
        .needs(total / count, Limit::Fixed(0.0003))
        .costs_s(total)
        .also(&["disk.saturated"])
}

/// Threads wait for pages from the disk.
fn hard_faults(plan: &mut Plan, multiple: f64) -> Planted {
    let actor = plan.suspect("\"main*8\"");
    let total = (multiple * (0.1 * plan.duration).max(0.5)).min(8.0 * plan.duration * 0.7);
    let count = (total / 0.003).max(130.0).round();
    plan.table(
        "hard_fault",
        &format!("process = \"{}\"\nthread = \"main\"\nfile = 'C:\\Program Files\\app\\start.dll'\ncount = {count}\nsize = \"16KiB\"\ntotal = \"{}us\"\nduration = {{ lognormal = [1, 0.1] }}\nto = \"{:.3}s\"", actor.pid, (total * 1e6).round(), plan.duration * 0.96),
    );
    Planted::by(Target::process(&actor))
        .needs(total, Limit::Fixed(0.5))
        .needs(total, Limit::OfTrace(0.1))
        .needs(count, Limit::Fixed(100.0))
        .costs_s(total)
}

/// One read takes as long as thousands of others.
fn stall(plan: &mut Plan, multiple: f64) -> Planted {
    let disk = plan.disk();
    let victim = plan.program("\"main\"");
    let millis = (multiple * 1000.0).round();
    for (count, duration, span) in [
        (1.0, format!("{millis}ms"), "from = \"0.1s\"\nto = \"0.12s\"".to_owned()),
        (
            40.0,
            "200us".to_owned(),
            format!("from = \"{:.3}s\"\nto = \"{:.3}s\"", 0.2 + millis / 1000.0, plan.duration * 0.97),
        ),
    ] {
        plan.table(
            "disk_io",
            &format!("process = \"{}\"\nop = \"read\"\ndisk = {disk}\nfile = 'C:\\data\\base.mdb'\ncount = {count}\nsize = \"64KB\"\nduration = \"{duration}\"\n{span}", victim.pid),
        );
    }
    Planted::by(Target::thing(&format!("disk {disk}")))
        .needs(millis, Limit::Fixed(1000.0))
        .costs_s(millis / 1000.0)
}
