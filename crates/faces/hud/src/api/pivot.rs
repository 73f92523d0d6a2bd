//! A pivot table: groups of rows with sums.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::pivot::Asked;
use crate::reply::Reply;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "pivot",
    about: "body: range, filters, table, where: [{column, op, value, not, or}], group: [key], values: [{column, fn}], sort: [{value | key, \
            down}], limit, offset, spark: parts, share: [value]. Keys may follow ids (`upid.name`). Groups as Arrow; facts sql, groups, rows, \
            totals, spark, unused",
    work: Work::Panel,
    answer,
};

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    let cancel = call.cancel.clone();
    let mut asked = Asked::of(call)?;
    let found = asked.pivot(None, &|| cancel.is_set())?;
    let facts = serde_json::json!({
        "sql": found.sql,
        "groups": found.groups,
        "rows": found.rows,
        "totals": found.totals,
        "spark": found.spark,
        "unused": asked.unused,
    });
    Reply::table(&found.table, &facts)
}
