//! What a finding's culprit selects: the stretch in which it happened, and the rows and stacks that are its.

use super::verdict::verdict_of;
use crate::call::{Call, Endpoint, Fault, Work};
use crate::part::{Chosen, Kind};
use crate::reply::Reply;
use crate::trace::Trace;
use etwhy_analysis::operators::episode::{Who, episode};
use etwhy_rules::{Hit, Outcome};
use etwhy_sql::Cell;
use etwhy_trace::catalog::{dpc::DpcRow, image::ImageRow, isr::IsrRow, process::ProcessRow, stack::FrameRow};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "select",
    about: "body: finding (id), hit (number), within (a range: of the verdict of that part). range (null: all the time), filters, and the metric of stacks",
    work: Work::Panel,
    answer,
};

/// Range, filters, metric.
#[derive(Serialize, TS)]
pub(crate) struct Selection {
    /// None: all the time.
    pub(super) range: Option<[i64; 2]>,
    why: &'static str,
    filters: Vec<Chosen>,
    /// What to add up along stacks.
    metric: &'static str,
}

#[derive(Deserialize)]
struct Body {
    finding: String,
    #[serde(default)]
    hit: usize,
    /// It is a finding of the verdict of this range.
    #[serde(default)]
    within: Option<[i64; 2]>,
}

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    let body: Body = call.parse()?;
    let trace = call.trace()?;
    let part = body.within.map(|range| verdict_of(&trace, range, &call.cancel)).transpose()?;
    let report = part.as_deref().unwrap_or(&trace.report);
    let outcome = report.findings.iter().find(|outcome| outcome.id == body.finding);
    let outcome = outcome.ok_or_else(|| Fault::Missing(format!("there is no finding {}", body.finding)))?;
    let hit =
        outcome.hits.get(body.hit).ok_or_else(|| Fault::Missing("it has no such culprit".to_owned()))?;
    Reply::json(&selection(&trace, outcome, hit))
}

/// What to add up along stacks, by topic: the first metric whose events are there.
fn metric(trace: &Trace, topic: &str) -> &'static str {
    let wanted: &[(&str, &str)] = match topic {
        "interrupts" => &[("dpc", "sample"), ("dpc-time", "dpc")],
        "disks" => &[("disk-time", "disk_io")],
        "files" => &[("file-time", "file_io")],
        "registry" => &[("registry-time", "registry")],
        "user interface" => &[("wait", "cswitch")],
        _ => &[],
    };
    let there = |table: &str| trace.db.get(table).is_some_and(|table| table.rows() > 0);
    wanted.iter().find(|(_, table)| there(table)).map_or("cpu", |(name, _)| name)
}

fn number(hit: &Hit, name: &str) -> Option<i64> {
    match hit.values.get(name) {
        Some(Cell::I64(n)) => Some(*n),
        _ => None,
    }
}

fn word<'h>(hit: &'h Hit, name: &str) -> Option<&'h str> {
    match hit.values.get(name) {
        Some(Cell::Text(text)) if !text.is_empty() => Some(text),
        _ => None,
    }
}

/// What a culprit selects.
pub(super) fn selection(trace: &Trace, outcome: &Outcome, hit: &Hit) -> Selection {
    let extent = trace.extent();
    let (filters, who) = of_culprit(trace, outcome, hit);
    let told = match (number(hit, "start_ns"), number(hit, "end_ns"), number(hit, "since_ns")) {
        (Some(from), Some(to), _) if from < to => Some((from, to)),
        (_, _, Some(since)) if since < extent.last_ns => Some((since, extent.last_ns.saturating_add(1))),
        _ => None,
    };
    let found = who.and_then(|who| episode(&trace.db, extent.first_ns, extent.last_ns, &who));
    let why = if told.is_some() {
        "the finding names the time"
    } else if found.is_some() {
        "95 % of its cost falls in this range"
    } else {
        "active throughout the trace"
    };
    Selection {
        range: told.or(found).map(|(from, to)| [from, to]),
        why,
        filters,
        metric: metric(trace, &outcome.topic),
    }
}

/// Filters as the page has them, and whose episode it is.
fn of_culprit(trace: &Trace, outcome: &Outcome, hit: &Hit) -> (Vec<Chosen>, Option<Who>) {
    let module = word(hit, "driver").or_else(|| word(hit, "module"));
    let module = module
        .or_else(|| matches!(hit.culprit_kind.as_str(), "driver" | "module").then_some(hit.culprit.as_str()));
    if let Some(module) = module.filter(|name| is_module(trace, name)) {
        // A driver inside of another one's DPCs has none of its own: asked by module, panels of DPCs would be empty.
        let inside = outcome.topic == "interrupts" && !interrupts_of(trace, module);
        let kind = if inside { Kind::Frame } else { Kind::Module };
        return (vec![Chosen::new(kind, module, module)], Some(Who::Module(module.to_owned())));
    }
    if let Some(upid) = number(hit, "upid").or_else(|| process_called(trace, hit)) {
        let label = process_label(trace, upid).unwrap_or_else(|| hit.culprit.clone());
        return (vec![Chosen::new(Kind::Process, upid, label)], Some(Who::Process(upid)));
    }
    if let Some(cpu) = number(hit, "cpu") {
        return (vec![Chosen::new(Kind::Cpu, cpu, cpu.to_string())], Some(Who::Cpu(cpu)));
    }
    (Vec::new(), word(hit, "path").map(|path| Who::Path(path.to_owned())))
}

/// Whether a module has DPCs or ISRs of its own.
fn interrupts_of(trace: &Trace, module: &str) -> bool {
    let (dpcs, isrs) = (trace.db.read_or_empty::<DpcRow>(), trace.db.read_or_empty::<IsrRow>());
    let mut names = dpcs.iter().map(|row| row.module()).chain(isrs.iter().map(|row| row.module()));
    names.any(|name| name.eq_ignore_ascii_case(module))
}

/// Filters by a name that nothing in the trace has would empty every panel.
fn is_module(trace: &Trace, name: &str) -> bool {
    let is = |text: &str| text.eq_ignore_ascii_case(name);
    trace.db.read_or_empty::<FrameRow>().iter().any(|row| is(row.module()))
        || trace.db.read_or_empty::<ImageRow>().iter().any(|row| is(row.name()))
}

/// The process that a finding names without its number, if only one has that name.
fn process_called(trace: &Trace, hit: &Hit) -> Option<i64> {
    if hit.culprit_kind != "process" {
        return None;
    }
    let table = trace.db.read_or_empty::<ProcessRow>();
    let mut named = table.iter().zip(0i64..).filter(|(row, _)| {
        row.name().eq_ignore_ascii_case(&hit.culprit)
            || hit.culprit == format!("{} ({})", row.name(), row.pid())
    });
    let (_, upid) = named.next()?;
    named.next().is_none().then_some(upid)
}

fn process_label(trace: &Trace, upid: i64) -> Option<String> {
    let table = trace.db.read_or_empty::<ProcessRow>();
    table.get(upid).map(|row| format!("{} ({})", row.name(), row.pid()))
}
