//! Which traces there are.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::reply::Reply;
use crate::trace::Trace;
use etwhy_trace::catalog::trace::TraceRow;
use serde::Serialize;
use ts_rs::TS;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "session",
    about: "program, readonly, folders whose traces may be opened, and of each trace: number, name, trace_id (of the content, whatever the file is called), machine_id, start_ms (of the clock), first_ns, last_ns, cpus, the verdict's sentence",
    work: Work::Known,
    answer,
};

#[derive(Serialize, TS)]
pub(crate) struct Session {
    program: String,
    readonly: bool,
    /// Folders whose traces may be opened.
    folders: Vec<String>,
    traces: Vec<TraceInfo>,
}

/// What the page knows of a trace from the start.
#[derive(Serialize, TS)]
pub(crate) struct TraceInfo {
    trace: usize,
    name: String,
    /// Tells this recording from all others.
    trace_id: String,
    machine_id: String,
    /// Start by the clock, milliseconds since 1970 UTC: which recording it is, for links that are opened elsewhere.
    start_ms: Option<f64>,
    first_ns: i64,
    last_ns: i64,
    cpus: i64,
    /// The verdict's sentence.
    sentence: String,
}

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    let traces = call.hud.traces();
    Reply::json(&Session {
        program: call.hud.host.program(),
        readonly: call.hud.readonly,
        folders: if call.hud.readonly { Vec::new() } else { call.hud.folders.shown() },
        traces: traces.iter().enumerate().map(|(number, trace)| describe(number, trace)).collect(),
    })
}

/// What is known of a trace.
pub(super) fn describe(number: usize, trace: &Trace) -> TraceInfo {
    let extent = trace.extent();
    let facts = trace.db.read_or_empty::<TraceRow>();
    let facts = facts.first();
    TraceInfo {
        trace: number,
        name: trace.name.clone(),
        trace_id: facts.map_or("", |row| row.recording_id()).to_owned(),
        machine_id: facts.map_or("", |row| row.machine_id()).to_owned(),
        start_ms: trace.start_ms(),
        first_ns: extent.first_ns,
        last_ns: extent.last_ns,
        cpus: extent.cpus,
        sentence: trace.report.sentence.clone(),
    }
}
