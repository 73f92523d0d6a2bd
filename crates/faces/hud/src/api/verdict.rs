//! The verdict of a part: of a range of time, and what of it names a process.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::fault::Cancel;
use crate::identity::{self, Process};
use crate::part::{Kind, Part};
use crate::reply::Reply;
use crate::trace::Trace;
use etwhy_report::Report;
use etwhy_rules::{Hit, Outcome};
use etwhy_sql::Cell;
use serde::Serialize;
use std::sync::Arc;
use ts_rs::TS;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "verdict",
    about: "body: range, filters (a process). What `etwhy why --top 20 --from --to --json` says of the range (the trace is read again for it), and \
            which findings name the process",
    work: Work::Reading,
    answer,
};

/// The verdict of a part.
#[derive(Serialize, TS)]
#[ts(rename = "PartVerdict")]
pub(crate) struct Verdict {
    /// None: the whole trace.
    range: Option<[i64; 2]>,
    #[ts(type = "Report")]
    report: Report,
    /// Whom the findings below name, if a filter says so.
    process: Option<Process>,
    /// Findings that name this process, with the numbers of their hits.
    named: Vec<Named>,
    /// Findings that are of the machine, not of a process: the filter says nothing of them.
    machine_wide: Vec<String>,
    /// Filters that do not apply to a verdict.
    unused: Vec<&'static str>,
}

/// A finding that names a process.
#[derive(Serialize, TS)]
#[ts(rename = "NamedFinding")]
struct Named {
    finding: String,
    hits: Vec<usize>,
}

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    let part = Part::parse(call)?;
    let trace = call.trace()?;
    let report = match part.range {
        None => trace.report.clone(),
        Some(range) => (*verdict_of(&trace, range, &call.cancel)?).clone(),
    };
    let wanted = part.filters.iter().find(|filter| filter.kind == Kind::Process && !filter.not);
    let upid = wanted.and_then(|filter| filter.value.as_i64());
    let process = upid.and_then(|upid| identity::process(&trace, upid));
    let (mut named, mut machine_wide) = (Vec::new(), Vec::new());
    if let (Some(upid), Some(process)) = (upid, &process) {
        for outcome in &report.findings {
            match hits_of(outcome, upid, process) {
                _ if outcome.hits.is_empty() => {}
                None => machine_wide.push(outcome.id.clone()),
                Some(hits) if hits.is_empty() => {}
                Some(hits) => named.push(Named { finding: outcome.id.clone(), hits }),
            }
        }
    }
    let mut unused: Vec<&'static str> =
        part.filters.iter().map(|f| f.kind).filter(|kind| *kind != Kind::Process).map(Kind::name).collect();
    unused.dedup();
    Reply::json(&Verdict { range: part.range, report, process, named, machine_wide, unused })
}

/// The verdict of a range, kept for whoever asks again.
pub(super) fn verdict_of(trace: &Trace, [from, to]: [i64; 2], cancel: &Cancel) -> Result<Arc<Report>, Fault> {
    trace.cached(&format!("verdict {from} {to}"), || {
        let report = trace.verdict_within([from, to], cancel)?;
        let bytes = serde_json::to_vec(&report).map_or(0, |text| text.len().saturating_mul(4));
        Ok((report, bytes))
    })
}

/// Hits that name a process; none if none of them names any.
fn hits_of(outcome: &Outcome, upid: i64, process: &Process) -> Option<Vec<usize>> {
    let called = format!("{} ({})", process.name, process.pid);
    let number = |hit: &Hit| match hit.values.get("upid") {
        Some(Cell::I64(n)) => Some(*n),
        _ => None,
    };
    let names = |hit: &Hit| hit.culprit_kind == "process" || number(hit).is_some();
    if !outcome.hits.iter().any(names) {
        return None;
    }
    let is = |hit: &Hit| match number(hit) {
        Some(number) => number == upid,
        // Without a number a name means all instances of that name.
        None => names(hit) && (hit.culprit == called || hit.culprit.eq_ignore_ascii_case(&process.name)),
    };
    Some(outcome.hits.iter().enumerate().filter(|(_, hit)| is(hit)).map(|(at, _)| at).collect())
}
