//! Another trace of the server's machine.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::reply::Reply;
use std::path::Path;
use std::sync::Arc;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "open",
    about: "body: path, in one of the folders that `session` names. Reads another trace; not with --readonly. What it is, as in `session`",
    work: Work::Reading,
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
    let path = call.hud.folders.find(Path::new(path))?;
    let cancel = call.cancel.clone();
    let loaded = call.hud.host.open(&path, Arc::new(move || cancel.is_set()));
    call.cancel.check()?;
    let loaded = loaded.map_err(Fault::Wrong)?;
    let number = call.hud.add(loaded);
    let traces = call.hud.traces();
    let trace = traces.get(number).ok_or_else(|| Fault::wrong("the trace went away"))?;
    Reply::json(&super::session::describe(number, trace))
}
