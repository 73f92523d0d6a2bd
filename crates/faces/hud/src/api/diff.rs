//! Two traces compared as a whole: findings, processes, drivers, functions, DPCs and ISRs, what was installed.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::reply::Reply;
use crate::trace::Trace;
use etwhy_diff::{Side, diff};

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "diff",
    about: "body: trace (before), other (after). What `etwhy diff --json` prints: changes with the intervals of their ratios",
    work: Work::Panel,
    answer,
};

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    let (before, after) = (call.trace()?, call.trace_named("other")?);
    Reply::json(&diff(&[side(&before), side(&after)]))
}

fn side(trace: &Trace) -> Side<'_> {
    Side { label: trace.name.clone(), db: &trace.db, findings: &trace.report.findings }
}
