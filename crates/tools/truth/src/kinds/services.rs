//! Parts of Windows and its neighbours that work in the background. Their findings know them by name, so the name is theirs.

use crate::cause::{Kind, Limit, Planted, Target, Whom};
use crate::plan::Plan;

pub const KINDS: &[Kind] = &[
    Kind {
        id: "ngen",
        answers: &["service.ngen-storm"],
        most: 15.0,
        alone: false,
        plant: |plan, m| works(plan, m, &["mscorsvw.exe", "ngen.exe"]),
    },
    Kind {
        id: "cloud-sync",
        answers: &["service.cloud-sync"],
        most: 15.0,
        alone: false,
        plant: |plan, m| works(plan, m, &["OneDrive.exe", "Dropbox.exe"]),
    },
    Kind {
        id: "search-index",
        answers: &["service.search-indexing"],
        most: 15.0,
        alone: false,
        plant: |plan, m| works(plan, m, &["SearchIndexer.exe"]),
    },
    Kind {
        id: "telemetry",
        answers: &["service.telemetry"],
        most: 15.0,
        alone: false,
        plant: |plan, m| works(plan, m, &["CompatTelRunner.exe", "DeviceCensus.exe"]),
    },
    Kind {
        id: "update",
        answers: &["service.update"],
        most: 15.0,
        alone: false,
        plant: |plan, m| works(plan, m, &["TiWorker.exe", "wuauclt.exe"]),
    },
    Kind {
        id: "maintenance",
        answers: &["service.maintenance"],
        most: 15.0,
        alone: false,
        plant: |plan, m| works(plan, m, &["Defrag.exe", "VSSVC.exe"]),
    },
    Kind {
        id: "eventlog",
        answers: &["service.eventlog-amplification"],
        most: 4.0,
        alone: false,
        plant: eventlog,
    },
];

/// It uses the processors.
fn works(plan: &mut Plan, multiple: f64, names: &[&str]) -> Planted {
    let name = plan.known(names).unwrap_or_else(|| names.first().copied().unwrap_or_default().to_owned());
    let actor = plan.process(&name, "\"worker*12\"", "session = 0");
    let unit = (0.3 * plan.duration).max(1.0);
    let cost = plan.most(multiple, unit) * unit;
    plan.cpu(&actor, "worker", cost, &format!("ntdll!RtlUserThreadStart;{name}!Worker;{name}!Work"));
    Planted::by(Target::process(&actor))
        .needs(cost, Limit::Fixed(1.0))
        .needs(cost, Limit::OfTrace(0.3))
        .costs_cpu(cost, &[&actor.label()])
        .also(&["cpu.single-thread"])
}

/// The Event Log service reads the registry many times for each text.
fn eventlog(plan: &mut Plan, multiple: f64) -> Planted {
    let client = plan.program("\"main\"");
    let service = plan.process("svchost.exe", "\"rpc*2\"", "session = 0\nservices = [\"EventLog\"]");
    let reads = (multiple * 10_000.0).round();
    let total = (reads * 6e-6).min(plan.room() / 2.0);
    let to = plan.duration * 0.97;
    let stack = "ntdll!RtlUserThreadStart;rpcrt4.dll!NdrStubCall2;wevtsvc.dll!EvtRpcMessageRender;KernelBase.dll!FormatMessageW;ntdll!RtlFindMessage;KernelBase.dll!RegQueryValueExW;ntdll!NtQueryValueKey;nt!NtQueryValueKey";
    plan.busy += total;
    plan.table(
        "registry",
        &format!("process = \"{}\"\nop = \"query_value\"\nkey = ['HKLM\\SYSTEM\\CurrentControlSet\\Control\\MUI\\UILanguages', 'HKLM\\SYSTEM\\CurrentControlSet\\Services\\EventLog\\Application\\Service']\nvalue = [\"Preferred\", \"EventMessageFile\"]\ncount = {reads}\ntotal = \"{}us\"\nduration = \"5us\"\nstack_style = \"keys\"\nstack = \"{stack}\"\nto = \"{to:.3}s\"", service.pid, (total * 1e6).round()),
    );
    plan.table(
        "alpc",
        &format!("process = \"{}\"\nservers = [\"{}/rpc\"]\nservice = [\"60us\"]\nport = '\\RPC Control\\eventlog'\ncount = 400\nto = \"{to:.3}s\"", client.pid, service.pid),
    );
    plan.busy += 0.05;
    // The finding says which service in its sentence; the process is the only one with it.
    let mut target = Target::thing("svchost.exe");
    target.own.extend(service.own);
    target.own.push("svchost.exe (EventLog)".to_owned());
    Planted::by(target)
        .needs(reads, Limit::Fixed(10_000.0))
        .costs("reads", reads)
        .also(&["registry.storm", "registry.repeated-reads"])
        .also_of(&Whom::Named(client.name), &["service.formatting-chain"])
}
