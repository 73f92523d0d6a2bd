//! A question in SQL.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::reply::Reply;
use etwhy_sql::Limits;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "sql",
    about: "body: sql, limit (rows, 10,000 unless given). The rows as Arrow; fact `more` if there are others",
    work: Work::Query,
    answer,
};

#[derive(Deserialize)]
struct Body {
    sql: String,
    #[serde(default = "some")]
    limit: usize,
}

/// Of the answer.
#[derive(Serialize, TS)]
pub(crate) struct SqlFacts {
    sql: String,
    rows: usize,
    /// There are others.
    more: bool,
}

fn some() -> usize {
    10_000
}

/// More rows than this are a file's business.
const MOST: usize = 1_000_000;

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    rows(call, &Limits::PAGE)
}

/// The rows of a query within limits.
///
/// # Errors
/// Those of the query.
pub(super) fn rows(call: &Call<'_>, limits: &Limits) -> Result<Reply, Fault> {
    let body: Body = call.parse()?;
    let trace = call.trace()?;
    let (table, more) = trace.sql(&body.sql, body.limit.min(MOST), limits, &call.cancel)?;
    Reply::table(&table, &SqlFacts { sql: body.sql, rows: table.rows(), more })
}
