//! Parts of Windows and its neighbours that work in the background. Their findings know them by name, so the name is theirs.

use crate::cause::{Kind, Limit, Planted, Target};
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
