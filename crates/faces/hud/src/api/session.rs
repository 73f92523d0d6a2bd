//! Which traces there are.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::reply::Reply;
use etwhy_trace::catalog::trace::TraceRow;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "session",
    about: "program, readonly, folders whose traces may be opened, and of each trace: number, name, trace_id (of the content, whatever the file is called), machine_id, start_ms (of the clock), first_ns, last_ns, cpus, the verdict's sentence",
    work: Work::Known,
    answer,
};

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    let traces: Vec<serde_json::Value> =
        call.hud.traces().iter().enumerate().map(|(number, trace)| describe(number, trace)).collect();
    Reply::json(&serde_json::json!({
        "program": call.hud.host.program(),
        "readonly": call.hud.readonly,
        "folders": if call.hud.readonly { Vec::new() } else { call.hud.folders.shown() },
        "traces": traces,
    }))
}

/// What the page knows of a trace from the start.
pub fn describe(number: usize, trace: &crate::trace::Trace) -> serde_json::Value {
    let extent = trace.extent();
    let facts = trace.db.read_or_empty::<TraceRow>();
    let facts = facts.first();
    serde_json::json!({
        "trace": number,
        "name": trace.name,
        "trace_id": facts.map_or("", |row| row.recording_id()),
        "machine_id": facts.map_or("", |row| row.machine_id()),
        // Which recording it is, for links that are opened elsewhere.
        "start_ms": trace.start_ms(),
        "first_ns": extent.first_ns,
        "last_ns": extent.last_ns,
        "cpus": extent.cpus,
        "sentence": trace.report.sentence,
    })
}
