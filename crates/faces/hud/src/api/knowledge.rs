//! What is known of a function, module, driver or program.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::reply::Reply;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "knowledge",
    about: "body: name. What the knowledge base has on it: vendor, product, category, stack tags, findings",
    work: Work::Known,
    answer,
};

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    let name = call.body.get("name").and_then(serde_json::Value::as_str).unwrap_or("");
    if name.trim().is_empty() || name.len() > 2000 {
        return Err(Fault::wrong("which function, module or program?"));
    }
    Reply::json(&call.hud.host.knowledge(name))
}
