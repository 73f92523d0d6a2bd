//! Another trace of the server's machine.

use crate::call::{Call, Endpoint, Fault};
use crate::reply::Reply;
use std::path::PathBuf;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "open",
    about: "body: path. Reads another trace; not with --readonly. What it is, as in `session`",
    answer,
};

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    if call.hud.readonly {
        return Err(Fault::Forbidden("this server was started with --readonly".to_owned()));
    }
    let path = call.body.get("path").and_then(serde_json::Value::as_str).unwrap_or("").trim();
    if path.is_empty() {
        return Err(Fault::wrong("which trace?"));
    }
    let loaded = call.hud.host.open(&PathBuf::from(path)).map_err(Fault::Wrong)?;
    let number = call.hud.add(loaded);
    let traces = call.hud.traces();
    let trace = traces.get(number).ok_or_else(|| Fault::wrong("the trace went away"))?;
    Reply::json(&super::session::describe(number, trace))
}
