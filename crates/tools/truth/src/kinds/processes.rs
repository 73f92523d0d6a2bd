//! Processes that come and go, and what they ask of the machine.

use crate::cause::{Kind, Limit, Planted, Target, Whom};
use crate::plan::Plan;

pub const KINDS: &[Kind] = &[
    Kind { id: "process-churn", answers: &["process.churn"], most: 6.0, alone: false, plant: churn },
    Kind { id: "crash-loop", answers: &["process.crash-loop"], most: 10.0, alone: false, plant: crash_loop },
    Kind {
        id: "timer-resolution",
        answers: &["power.timer-resolution"],
        most: 2.0,
        alone: false,
        plant: timer,
    },
    Kind { id: "zombies", answers: &["process.zombies"], most: 20.0, alone: false, plant: zombies },
    Kind { id: "family", answers: &["cpu.dominant-program"], most: 5.0, alone: false, plant: family },
    Kind { id: "stall", answers: &["machine.stall"], most: 40.0, alone: true, plant: stall },
    Kind { id: "wmi-storm", answers: &["service.wmi-storm"], most: 20.0, alone: false, plant: wmi },
];

fn churn(plan: &mut Plan, multiple: f64) -> Planted {
    let parent = plan.suspect("\"main\"");
    let child = format!("{}.exe", plan.word());
    let least = (10.0 * plan.duration).max(50.0);
    let count = (multiple * least).round();
    let every = (plan.duration * 0.95 / count * 1e6).round();
    plan.table(
        "process",
        &format!("name = \"{child}\"\nparent = \"{}\"\nstart = \"10ms\"\ncount = {count}\nlife = \"{}us\"\nevery = \"{every}us\"", parent.pid, (every * 0.7).min(15_000.0).round()),
    );
    Planted::by(Target::process(&parent))
        .needs(count, Limit::Fixed(50.0))
        .needs(count, Limit::OfTrace(10.0))
        .costs("starts", count)
}

fn crash_loop(plan: &mut Plan, multiple: f64) -> Planted {
    let parent = plan.program("\"main\"");
    let name = format!("{}.exe", plan.word());
    let count = (multiple * 3.0).round().max(1.0);
    let every = plan.duration * 0.9 / count;
    plan.table(
        "process",
        &format!("name = \"{name}\"\nparent = \"{}\"\nsession = 0\nstart = \"40ms\"\ncount = {count}\nlife = \"{:.4}s\"\nevery = \"{every:.4}s\"\nexit_code = -1073741819", parent.pid, (every * 0.6).min(0.1)),
    );
    Planted::by(Target::thing(&name)).needs(count, Limit::Fixed(3.0)).costs("crashes", count)
}

/// A program asks for a fast clock, and the clock obeys.
fn timer(plan: &mut Plan, multiple: f64) -> Planted {
    let actor = plan.suspect("\"main\"");
    let period = (10_000.0 / multiple).round();
    let name = &actor.name;
    plan.table(
        "manifest_event",
        &format!("process = \"{p}\"\nprovider = \"331c3b3a-2005-44c2-ac5e-77220c37d6b4\"\nid = 63\nversion = 1\nat = [0.5]\nfields = [{{ type = \"u32\", value = {period} }}, {{ type = \"u32\", value = {p} }}, {{ type = \"u16\", value = {} }}, {{ type = \"utf16\", value = \"{name}\" }}, {{ type = \"u32\", value = 0 }}]", name.len() + 1, p = actor.pid),
    );
    plan.table("manifest_event", &format!("process = \"System\"\nprovider = \"331c3b3a-2005-44c2-ac5e-77220c37d6b4\"\nid = 95\nat = [0.5]\nfields = [{{ type = \"u32\", value = {period} }}]"));
    Planted::by(Target::process(&actor))
        .needs(10_000.0 / period, Limit::Fixed(1.0))
        .costs("period_ns", period * 100.0)
}

/// The whole machine stands still: the machine's own table says so.
fn stall(plan: &mut Plan, multiple: f64) -> Planted {
    let millis = (multiple * 10.0).round().max(1.0);
    let at = plan.random.between(0.2, plan.duration - 0.2 - millis / 1000.0);
    plan.stall = Some((at, millis / 1000.0));
    Planted::by(Target::thing("machine"))
        .needs(millis, Limit::Fixed(10.0))
        .also_of(&Whom::Anybody, &["trace.samples-missing"])
}

fn wmi(plan: &mut Plan, multiple: f64) -> Planted {
    let actor = plan.suspect("\"main\"");
    let host = plan.process("WmiPrvSE.exe", "\"main*4\"", "session = 0");
    let service = plan.process("svchost.exe", "\"wmi\"", "session = 0\nservices = [\"Winmgmt\"]");
    let least = (10.0 * plan.duration).max(30.0);
    let count = (multiple * least).round();
    let host_cpu = (plan.most(multiple, 0.05) * 0.05).min(2.0);
    plan.table(
        "manifest_event",
        &format!("process = \"{}\"\nprovider = \"1418ef04-b0b4-4623-bf7e-d74ab47bbdaa\"\nid = 11\ncount = {count}\nfields = [\"{{00000000-0000-0000-0000-000000000000}}\", {{ type = \"u32\", value = {{ counter = [1, 1] }} }}, {{ type = \"u32\", value = {{ counter = [1, 1] }} }}, \"Start IWbemServices::ExecQuery - root\\\\cimv2 : SELECT * FROM Win32_Process\", \"PC\", \"PC.example.com\", \"DOMAIN\\\\me\", {{ type = \"u32\", value = {} }}, {WMI_REST}]", service.pid, actor.pid),
    );
    plan.cpu(
        &host,
        "main",
        host_cpu,
        "ntdll!RtlUserThreadStart;WmiPrvSE.exe!Run;cimwin32.dll!Process::EnumerateInstances",
    );
    Planted::by(Target::process(&actor))
        .needs(count, Limit::Fixed(30.0))
        .needs(count, Limit::OfTrace(10.0))
        .costs("operations", count)
}

/// Start of the process, namespace, and whether the client is on this machine.
const WMI_REST: &str = "{ type = \"u64\", value = 1 }, \"root\\\\cimv2\", { type = \"bool\", value = true }";

/// A program keeps a handle to each process that it has started.
fn zombies(plan: &mut Plan, multiple: f64) -> Planted {
    let actor = plan.suspect("\"main\"");
    let child = format!("{}.exe", plan.word());
    let count = (multiple * 200.0).round();
    let first = 4096 * (10_000 + 5_000 * plan.random.below(50));
    let late = plan.duration - 0.5;
    plan.table(
        "event",
        &format!("type = \"Process/Defunct\"\nprocess = \"{p}\"\ncount = {count}\nfrom = \"{late:.3}s\"\nto = \"{:.3}s\"\nfields = {{ UniqueProcessKey = {{ counter = [{first}, 4096] }}, ProcessId = {{ counter = [200000, 4] }}, ParentId = {p}, SessionId = 0, ExitStatus = 0, ImageFileName = \"{child}\", CommandLine = \"{child} -once\" }}", late + 0.1, p = actor.pid),
    );
    plan.table(
        "event",
        &format!("type = \"Object/HandleDCEnd\"\nprocess = \"{p}\"\ncount = {count}\nfrom = \"{:.3}s\"\nto = \"{:.3}s\"\nfields = {{ Object = {{ counter = [{first}, 4096] }}, ProcessId = {p}, Handle = {{ counter = [400, 4] }}, ObjectType = 7 }}", late + 0.2, late + 0.3, p = actor.pid),
    );
    Planted::by(Target::process(&actor))
        .needs(count, Limit::Fixed(200.0))
        .costs("cost_bytes", count * 65_536.0)
}

/// A program and its children of the same name, none of which is large.
fn family(plan: &mut Plan, multiple: f64) -> Planted {
    let name = format!("{}.exe", plan.word());
    let parent = plan.process(&name, "\"main\"", "");
    let least = (0.8 * plan.duration).max(plan.busy * 0.3 / 0.7);
    let cost = (least * multiple).min(plan.room());
    let children = 8 + plan.random.below(6);
    for _ in 0..children {
        let child = plan.process(&name, "\"main*2\"", &format!("parent = \"{}\"", parent.pid));
        plan.cpu(
            &child,
            "main",
            cost / children as f64,
            &format!("ntdll!RtlUserThreadStart;{name}!Run;{name}!Render"),
        );
    }
    Planted::by(Target::thing(&name))
        .needs(cost, Limit::OfTrace(0.8))
        .needs(cost, Limit::OfBusy(0.3))
        .needs(cost, Limit::Fixed(0.2))
        .costs_cpu(cost, &[&name])
}
