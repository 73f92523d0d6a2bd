//! What the page itself asks in SQL: it does not stand in line behind what people ask.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::reply::Reply;
use etwhy_sql::Limits;
use std::time::Duration;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "figures",
    about: "as `sql`, in a line of its own and for at most 20 s: what the page asks for its own use",
    work: Work::Known,
    answer,
};

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    super::sql::rows(call, &Limits { time: Some(Duration::from_secs(20)), ..Limits::PAGE })
}
