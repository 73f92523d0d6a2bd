//! Which traces there are.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::reply::Reply;

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
    let fact = |column: &str| trace.db.get("trace").and_then(|table| table.text(0, column)).unwrap_or("");
    serde_json::json!({
        "trace": number,
        "name": trace.name,
        "trace_id": fact("recording_id"),
        "machine_id": fact("machine_id"),
        // Which recording it is, for links that are opened elsewhere.
        "start_ms": trace.start_ms(),
        "first_ns": extent.first_ns,
        "last_ns": extent.last_ns,
        "cpus": extent.cpus,
        "sentence": trace.report.sentence,
    })
}
