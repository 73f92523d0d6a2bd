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
    about: "body: range, filters (processes). What `etwhy why --top 20 --from --to --json` says of the range (the trace is read again for it), and \
            which findings name these processes",
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
    /// Whom the findings below name, if a filter says so: one of them each.
    processes: Vec<Process>,
    /// Whom they do not name.
    excluded: Vec<Process>,
    /// Findings that name such a process, with the numbers of their hits.
    named: Vec<Named>,
    /// Findings that are of the machine, not of a process: filters say nothing of them.
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
    let asked = part.numbers(Kind::Process);
    let known = |numbers: &[i64]| -> Vec<(i64, Process)> {
        numbers.iter().filter_map(|&upid| Some((upid, identity::process(&trace, upid)?))).collect()
    };
    let (wanted, excluded) = (known(asked.wanted()), known(asked.unwanted()));
    let (mut named, mut machine_wide) = (Vec::new(), Vec::new());
    if !wanted.is_empty() || !excluded.is_empty() {
        for outcome in &report.findings {
            match hits_of(outcome, &wanted, &excluded) {
                _ if outcome.hits.is_empty() => {}
                None => machine_wide.push(outcome.id.clone()),
                Some(hits) if hits.is_empty() => {}
                Some(hits) => named.push(Named { finding: outcome.id.clone(), hits }),
            }
        }
    }
    let people = |list: Vec<(i64, Process)>| list.into_iter().map(|(_, process)| process).collect();
    let (processes, excluded) = (people(wanted), people(excluded));
    let mut unused: Vec<&'static str> =
        part.filters.iter().map(|f| f.kind).filter(|kind| *kind != Kind::Process).map(Kind::name).collect();
    unused.dedup();
    Reply::json(&Verdict { range: part.range, report, processes, excluded, named, machine_wide, unused })
}

/// The verdict of a range, kept for whoever asks again.
pub(super) fn verdict_of(trace: &Trace, [from, to]: [i64; 2], cancel: &Cancel) -> Result<Arc<Report>, Fault> {
    trace.cached(&format!("verdict {from} {to}"), || {
        let report = trace.verdict_within([from, to], cancel)?;
        let bytes = serde_json::to_vec(&report).map_or(0, |text| text.len().saturating_mul(4));
        Ok((report, bytes))
    })
}

/// Hits that name a process that is wanted and none that is excluded; none if no hit names any process.
fn hits_of(outcome: &Outcome, wanted: &[(i64, Process)], excluded: &[(i64, Process)]) -> Option<Vec<usize>> {
    let number = |hit: &Hit| match hit.values.get("upid") {
        Some(Cell::I64(n)) => Some(*n),
        _ => None,
    };
    let names = |hit: &Hit| hit.culprit_kind == "process" || number(hit).is_some();
    if !outcome.hits.iter().any(names) {
        return None;
    }
    let is = |hit: &Hit, (upid, process): &(i64, Process)| match number(hit) {
        Some(number) => number == *upid,
        // Without a number a name means all instances of that name.
        None => {
            let called = format!("{} ({})", process.name, process.pid);
            names(hit) && (hit.culprit == called || hit.culprit.eq_ignore_ascii_case(&process.name))
        }
    };
    let counts = |hit: &Hit| {
        let among = |list: &[(i64, Process)]| list.iter().any(|one| is(hit, one));
        (wanted.is_empty() || among(wanted)) && !among(excluded)
    };
    Some(outcome.hits.iter().enumerate().filter(|(_, hit)| counts(hit)).map(|(at, _)| at).collect())
}
