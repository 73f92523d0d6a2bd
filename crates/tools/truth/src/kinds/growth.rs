//! Calls that take longer the more there were before.

use crate::cause::{Kind, Limit, Planted, Target, Whom};
use crate::plan::Plan;

pub const KINDS: &[Kind] = &[
    Kind {
        id: "slower-with-time",
        answers: &["growth.over-time"],
        most: 8.0,
        alone: false,
        plant: over_time,
    },
    Kind {
        id: "super-linear",
        answers: &["growth.super-linear"],
        most: 8.0,
        alone: false,
        plant: super_linear,
    },
    Kind { id: "slower-starts", answers: &["growth.process-start"], most: 5.0, alone: false, plant: starts },
];

/// Writes of one file take ten times as long at the end.
fn over_time(plan: &mut Plan, multiple: f64) -> Planted {
    let actor = plan.suspect("\"main\"");
    let count = 1200.0;
    let excess = plan.most(multiple, 0.06) * 0.05;
    // From a to 10 a, on average 4.5 a more than at the start.
    let first = (excess / count / 4.5 * 1e9).round();
    plan.busy += count * first * 5.5 / 1e9;
    plan.table(
        "file_io",
        &format!("process = \"{}\"\nthread = \"main\"\nop = \"write\"\nfile = 'C:\\data\\log.db'\nsize = 4096\ncount = {count}\nduration = {{ ramp = [\"{first}ns\", \"{}ns\"] }}", actor.pid, first * 10.0),
    );
    Planted::by(Target::process(&actor)).needs(excess, Limit::Fixed(0.05)).also(&["growth.super-linear"])
}

/// Each registry read looks through all earlier entries.
fn super_linear(plan: &mut Plan, multiple: f64) -> Planted {
    let actor = plan.suspect("\"main\"");
    let count: f64 = 1500.0;
    let excess = plan.most(multiple, 0.06) * 0.05;
    let step = excess * 2.0 / (count * count) * 1e9;
    plan.busy += excess;
    plan.table(
        "registry",
        &format!("process = \"{}\"\nthread = \"main\"\nop = \"query_value\"\nkey = 'HKLM\\SOFTWARE\\Example\\List'\nvalue = \"Entry\"\ncount = {count}\nduration = {{ poly = [\"2us\", \"{step:.2}ns\"] }}\nevery = {{ poly = [\"4us\", \"{:.2}ns\"] }}\nto = \"{:.3}s\"", actor.pid, step * 1.2, plan.duration * 0.97),
    );
    Planted::by(Target::process(&actor)).needs(excess, Limit::Fixed(0.05)).also(&["growth.over-time"])
}

/// Each start of a program takes longer than the one before.
fn starts(plan: &mut Plan, multiple: f64) -> Planted {
    let parent = plan.program("\"main\"");
    let child = format!("{}.exe", plan.word());
    let count: f64 = 45.0;
    let excess = (multiple * 0.5).min(plan.duration * 0.95 - count * 0.012);
    let step = excess * 2.0 / (count * count) * 1e6;
    plan.table(
        "process",
        &format!("name = \"{child}\"\nparent = \"{}\"\nstart = \"5ms\"\ncount = {count}\nlife = {{ poly = [\"10ms\", \"{step:.1}us\"] }}\nevery = {{ poly = [\"11ms\", \"{step:.1}us\"] }}", parent.pid),
    );
    Planted::by(Target::thing(&child))
        .needs(excess, Limit::Fixed(0.5))
        .also_of(&Whom::Named(parent.name), &["process.churn"])
}
