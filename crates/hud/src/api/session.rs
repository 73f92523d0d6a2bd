//! Which traces there are.

use crate::call::{Call, Endpoint, Fault};
use crate::reply::Reply;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "session",
    about: "program, readonly, and of each trace: number, name, first_ns, last_ns, cpus, the verdict's sentence",
    answer,
};

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    let traces: Vec<serde_json::Value> =
        call.hud.traces().iter().enumerate().map(|(number, trace)| describe(number, trace)).collect();
    Reply::json(&serde_json::json!({
        "program": call.hud.host.program(),
        "readonly": call.hud.readonly,
        "traces": traces,
    }))
}

/// What the page knows of a trace from the start.
pub fn describe(number: usize, trace: &crate::trace::Trace) -> serde_json::Value {
    let extent = trace.extent();
    serde_json::json!({
        "trace": number,
        "name": trace.name,
        "first_ns": extent.first_ns,
        "last_ns": extent.last_ns,
        "cpus": extent.cpus,
        "sentence": trace.report.sentence,
    })
}
