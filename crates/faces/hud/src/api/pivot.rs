//! A pivot table: groups of rows with sums.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::pivot::Asked;
use crate::reply::Reply;
use serde::Serialize;
use ts_rs::TS;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "pivot",
    about: "body: range, filters, table, where: [{column, op, value, not, or}], group: [key], values: [{column, fn}], sort: [{value | key, \
            down}], limit, offset, spark: parts, share: [value]. Keys may follow ids (`upid.name`). Groups as Arrow; facts sql, groups, rows, \
            totals, spark, unused",
    work: Work::Panel,
    answer,
};

/// Of the answer.
#[derive(Serialize, TS)]
pub(crate) struct PivotFacts {
    sql: String,
    /// Groups in all.
    groups: usize,
    /// Rows that the conditions let through.
    rows: u64,
    /// The values over all those rows.
    #[ts(type = "(number | string | null)[]")]
    totals: Vec<serde_json::Value>,
    /// False if there are too many groups for `spark`.
    spark: bool,
    unused: Vec<&'static str>,
}

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    let cancel = call.cancel.clone();
    let mut asked = Asked::parse(call)?;
    let found = asked.pivot(None, &|| cancel.is_set())?;
    let facts = PivotFacts {
        sql: found.sql,
        groups: found.groups,
        rows: found.rows,
        totals: found.totals,
        spark: found.spark,
        unused: asked.unused,
    };
    Reply::table(&found.table, &facts)
}
