//! Rows of a table, a window of them.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::pivot::Asked;
use crate::reply::Reply;
use serde::Serialize;
use ts_rs::TS;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "rows",
    about: "body: range, filters, table, where, columns (may follow ids: `upid.name`), sort: [[column, down]], limit, offset. Rows as Arrow; \
            facts sql, rows (in all), unused",
    work: Work::Panel,
    answer,
};

/// Of the answer.
#[derive(Serialize, TS)]
pub(crate) struct RowsFacts {
    sql: String,
    /// In all.
    rows: u64,
    unused: Vec<&'static str>,
}

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    let cancel = call.cancel.clone();
    let mut asked = Asked::parse(call)?;
    let (table, sql, rows) = asked.rows(None, &|| cancel.is_set())?;
    Reply::table(&table, &RowsFacts { sql, rows, unused: asked.unused })
}
