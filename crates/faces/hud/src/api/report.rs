//! The verdict: findings, bill, quality, machine.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::reply::Reply;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "report",
    about: "the verdict of a trace (docs/reference/why.schema.json), with charts",
    work: Work::Known,
    answer,
};

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    Reply::json(&call.trace()?.report)
}
