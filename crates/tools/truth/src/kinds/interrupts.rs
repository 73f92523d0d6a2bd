//! DPCs and interrupts.

use crate::cause::{Kind, Limit, Planted, Target, Whom};
use crate::plan::Plan;

pub const KINDS: &[Kind] = &[
    Kind {
        id: "dpc-over-limit",
        answers: &["dpc.over-limit"],
        most: 100.0,
        alone: false,
        plant: dpc_over_limit,
    },
    Kind { id: "dpc-flood", answers: &["dpc.flood"], most: 4.0, alone: false, plant: dpc_flood },
    Kind {
        id: "dpc-watchdog",
        answers: &["dpc.watchdog-risk"],
        most: 1.9,
        alone: false,
        plant: dpc_watchdog,
    },
    Kind { id: "dpc-filter", answers: &["dpc.filter-in-path"], most: 8.0, alone: false, plant: dpc_filter },
    Kind {
        id: "isr-over-limit",
        answers: &["isr.over-limit"],
        most: 100.0,
        alone: false,
        plant: isr_over_limit,
    },
    Kind { id: "isr-storm", answers: &["isr.storm"], most: 2.5, alone: false, plant: isr_storm },
    Kind { id: "dpc-imbalance", answers: &["dpc.cpu-imbalance"], most: 4.0, alone: false, plant: imbalance },
];

/// Each DPC takes longer than Microsoft's 100 us. Others of the same machine are short.
fn dpc_over_limit(plan: &mut Plan, multiple: f64) -> Planted {
    let driver = plan.driver();
    let micros = (multiple * 100.0).round();
    // A few percent of one processor, spread over all.
    let count = (0.05 * plan.duration * 1e6 / micros).clamp(40.0, 600.0).round();
    let total = count * micros / 1e6;
    plan.busy += total;
    plan.table(
        "dpc",
        &format!(
            "routine = \"{driver}!Dpc\"\ncount = {count}\nduration = \"{micros}us\"\narrival = \"constant\""
        ),
    );
    let near = plan.driver();
    plan.table(
        "dpc",
        &format!("routine = \"{near}!Dpc\"\ncount = 200\nduration = \"55us\"\narrival = \"constant\""),
    );
    Planted::by(Target::thing(&driver))
        .needs(micros, Limit::Fixed(100.0))
        .costs_s(total)
        .also(&["dpc.flood", "dpc.watchdog-risk"])
}

/// One processor is full of short DPCs of one driver.
fn dpc_flood(plan: &mut Plan, multiple: f64) -> Planted {
    let driver = plan.driver();
    let total = multiple * 0.2 * plan.duration;
    let count = (total / 40e-6).round();
    let cpu = plan.random.below(plan.cpus as usize);
    plan.busy += total;
    plan.table(
        "dpc",
        &format!(
            "routine = \"{driver}!Interrupt\"\ncpus = {cpu}\ncount = {count}\ntotal = \"{}us\"\nduration = {{ lognormal = [1, 0.15] }}",
            (total * 1e6).round()
        ),
    );
    Planted::by(Target::thing(&driver))
        .needs(total, Limit::OfTrace(0.2))
        .costs_s(total)
        .also(&["dpc.over-limit", "dpc.cpu-imbalance"])
}

/// One DPC that the watchdog soon ends.
fn dpc_watchdog(plan: &mut Plan, multiple: f64) -> Planted {
    let driver = plan.driver();
    let millis = (multiple * 100.0).round();
    let at = plan.random.between(0.2, 0.8) * plan.duration;
    plan.busy += millis / 1000.0;
    plan.table("dpc", &format!("routine = \"{driver}!Dpc\"\nat = [{at:.3}]\nduration = \"{millis}ms\""));
    plan.table("dpc", &format!("routine = \"{driver}!Dpc\"\ncount = 300\nduration = \"15us\""));
    Planted::by(Target::thing(&driver))
        .needs(millis, Limit::Fixed(100.0))
        .costs_s(millis / 1000.0)
        .also(&["dpc.over-limit"])
}

/// A filter between the network card and TCP takes a share of the card's DPCs; another one only passes packets on.
fn dpc_filter(plan: &mut Plan, multiple: f64) -> Planted {
    let filter = plan.driver();
    let passing = plan.driver();
    let miniport = plan.driver();
    let total = (0.1 * plan.capacity()).clamp(0.4, 1.2);
    let share = (multiple * 0.1).min(0.9);
    plan.busy += total;
    let host = format!(
        "nt!KiRetireDpcList;nt!KiExecuteAllDpcs;ndis.sys!ndisInterruptDpc;{miniport}!Receive;ndis.sys!ndisMIndicateNetBufferListsToOpen"
    );
    let up = format!("{host};{passing}+0x1a40;ndis.sys!NdisFIndicateReceiveNetBufferLists");
    plan.table(
        "dpc",
        &format!(
            "routine = \"ndis.sys!ndisInterruptDpc\"\ncount = {}\ntotal = \"{}us\"\nduration = {{ lognormal = [1, 0.15] }}\nstacks = [\n{{ weight = {}, frames = \"{up};{filter}+0x3a10\" }},\n{{ weight = {}, frames = \"{up};{filter}+0x2000;ndis.sys!NdisFIndicateReceiveNetBufferLists;tcpip.sys!TcpReceive\" }},\n{{ weight = 0.01, frames = \"{host};{passing}+0x1a90\" }},\n]",
            (total / 40e-6).round(),
            (total * 1e6).round(),
            share.max(0.001),
            (0.99 - share).max(0.01),
        ),
    );
    let cost = total * share;
    Planted::by(Target::thing(&filter))
        // Of the DPCs of its adapter: packets of other adapters are none of its.
        .needs(cost / total, Limit::Fixed(0.1))
        .needs(cost, Limit::Fixed(0.05))
        .needs(cost, Limit::OfTrace(0.02))
        .also(&["security.network-filter"])
}

/// Each interrupt routine takes longer than 25 us.
fn isr_over_limit(plan: &mut Plan, multiple: f64) -> Planted {
    let driver = plan.driver();
    let micros = (multiple * 25.0).round();
    let count = (0.04 * plan.duration * 1e6 / micros).clamp(300.0, 1500.0).round();
    let total = count * micros / 1e6;
    plan.busy += total;
    plan.table("isr", &format!("routine = \"{driver}!Isr\"\nkind = \"msi\"\ncount = {count}\nduration = \"{micros}us\"\narrival = \"constant\""));
    // A short DPC that these interrupt is not over its limit.
    let short = plan.driver();
    plan.table(
        "dpc",
        &format!("routine = \"{short}!Dpc\"\ncount = 2000\nduration = \"60us\"\narrival = \"constant\""),
    );
    plan.busy += 0.12;
    Planted::by(Target::thing(&driver)).needs(micros, Limit::Fixed(25.0)).costs_s(total).also(&["isr.storm"])
}

/// A device interrupts without end.
fn isr_storm(plan: &mut Plan, multiple: f64) -> Planted {
    let driver = plan.driver();
    let rate = multiple * 20_000.0;
    let cpu = plan.random.below(plan.cpus as usize);
    let count = (rate * plan.duration).round();
    let total = count * 5e-6;
    plan.busy += total;
    plan.table("isr", &format!("routine = \"{driver}!Isr\"\nvector = 145\nclaimed = false\ncount = {count}\nduration = \"5us\"\ncpus = {cpu}\narrival = \"constant\""));
    Planted::by(Target::thing(&driver)).needs(rate, Limit::Fixed(20_000.0)).costs_s(total)
}

/// All packets are received on one processor.
fn imbalance(plan: &mut Plan, multiple: f64) -> Planted {
    let miniport = plan.driver();
    let total = multiple * 0.2 * plan.duration;
    let cpu = plan.random.below(plan.cpus as usize);
    plan.busy += total;
    plan.table(
        "dpc",
        &format!(
            "routine = \"ndis.sys!ndisInterruptDpc\"\ncpus = {cpu}\ncount = {}\ntotal = \"{}us\"\nduration = {{ lognormal = [1, 0.15] }}\nstack = \"nt!KiRetireDpcList;nt!KiExecuteAllDpcs;ndis.sys!ndisInterruptDpc;{miniport}!Receive;tcpip.sys!TcpReceive\"",
            (total / 40e-6).round(),
            (total * 1e6).round()
        ),
    );
    Planted::by(Target::thing("ndis.sys"))
        .needs(total, Limit::OfTrace(0.2))
        // One of at least four processors.
        .needs(f64::from(plan.cpus), Limit::Fixed(if plan.cpus < 4 { 4.0 } else { 0.1 }))
        .costs_s(total)
        .also(&["dpc.flood", "dpc.over-limit"])
        // Threads that are ready on that processor wait for it.
        .also_of(&Whom::Named(miniport), &["cpu.starvation"])
}
