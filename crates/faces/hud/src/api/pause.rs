//! Looking back at a trace that is followed.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::reply::Reply;
use serde::Deserialize;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "pause",
    about: "`paused`: the window of a trace that is followed stays as it is; false: it moves on. Following goes on either way",
    work: Work::Known,
    answer,
};

#[derive(Deserialize)]
struct Body {
    paused: bool,
}

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    let Body { paused } = call.parse()?;
    call.hud.host.pause(paused).map_err(Fault::Wrong)?;
    Reply::json(&paused)
}
