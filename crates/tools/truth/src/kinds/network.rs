//! Network.

use crate::cause::{Kind, Limit, Planted, Target};
use crate::plan::Plan;

pub const KINDS: &[Kind] = &[
    Kind { id: "dns-slow", answers: &["net.dns-slow"], most: 20.0, alone: false, plant: dns },
    Kind { id: "retransmits", answers: &["net.retransmits"], most: 15.0, alone: false, plant: retransmits },
    Kind {
        id: "connection-churn",
        answers: &["net.connection-churn"],
        most: 15.0,
        alone: false,
        plant: churn,
    },
];

/// Fields of a query and of its answer by the DNS client.
const ASK: &str = "{ type = \"u32\", value = 1 }, { type = \"u64\", value = 0 }, \"\", { type = \"u32\", value = 1 }, { type = \"u32\", value = 0 }, { type = \"u32\", value = 0 }, { type = \"u32\", value = 0 }";
const ANSWER: &str = "{ type = \"u32\", value = 1 }, { type = \"u64\", value = 0 }, { type = \"u32\", value = 0 }, \"10.1.2.3;\"";

fn dns(plan: &mut Plan, multiple: f64) -> Planted {
    let actor = plan.suspect("\"main\"");
    let domain = plan.word();
    // At the limit three queries share the two seconds.
    let count = (multiple * 3.0).round().max(1.0);
    let each = multiple * 2.0 / count;
    let window = plan.duration - each - 0.3;
    for (id, start, fields) in [(3006, 0.1, ASK), (3008, 0.1 + each, ANSWER)] {
        plan.table(
            "manifest_event",
            &format!("process = \"{}\"\nprovider = \"1c95126e-7eea-49a9-a3fe-a378b03ddb4d\"\nid = {id}\ncount = {count}\nfrom = \"{start:.4}s\"\nto = \"{:.4}s\"\narrival = \"exact\"\nfields = [\"host{{n}}.{domain}.com\", {fields}]", actor.pid, start + window),
        );
    }
    Planted::by(Target::process(&actor))
        .needs(count, Limit::Fixed(3.0))
        .needs(count * each, Limit::Fixed(2.0))
        .needs(each, Limit::Fixed(0.5))
        .costs_s(count * each)
}

fn retransmits(plan: &mut Plan, multiple: f64) -> Planted {
    let actor = plan.suspect("\"main\"");
    let again = (multiple * 20.0).round();
    for (op, count) in [("send", 1900.0), ("retransmit", again)] {
        plan.table(
            "network",
            &format!(
                "process = \"{}\"\nop = \"{op}\"\nremote = \"10.0.0.9:445\"\nsize = 1460\ncount = {count}",
                actor.pid
            ),
        );
    }
    Planted::by(Target::process(&actor))
        .needs(again, Limit::Fixed(20.0))
        .needs(again / 1900.0, Limit::Fixed(0.01))
        .costs("retransmits", again)
}

fn churn(plan: &mut Plan, multiple: f64) -> Planted {
    let actor = plan.suspect("\"main\"");
    let least = (20.0 * plan.duration).max(100.0);
    let count = (multiple * least).round();
    plan.table(
        "network",
        &format!("process = \"{}\"\nop = [\"connect\", \"send\", \"receive\", \"disconnect\"]\nremote = \"10.0.0.9:443\"\nsize = 300\ncount = {}", actor.pid, count * 4.0),
    );
    Planted::by(Target::process(&actor))
        .needs(count, Limit::Fixed(100.0))
        .needs(count, Limit::OfTrace(20.0))
        .costs("connections", count)
}
