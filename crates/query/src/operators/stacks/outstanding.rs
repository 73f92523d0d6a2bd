//! What was allocated in the trace and not freed in it: what heap and pool have in common.

use super::WeightedStack;
use crate::operators::for_each_batch;
use etwhy_table::Database;

/// Hands over the bytes of allocations of a table that nothing frees.
pub(super) fn each(db: &Database, table: &str, give: &mut dyn FnMut(WeightedStack)) {
    let columns = ["ts_ns", "upid", "utid", "stack_id", "size_bytes", "freed_by"];
    for_each_batch(db, table, columns, |rows, [ts, upid, utid, stack, size, freed]| {
        for row in (0..rows).filter(|&row| freed.is_null(row)) {
            let Some(weight) = size.i64(row).filter(|&bytes| bytes >= 0) else { continue };
            give(WeightedStack {
                ts_ns: ts.i64(row),
                upid: upid.i64(row),
                utid: utid.i64(row),
                stack: stack.i64(row),
                weight,
                count: 1,
                ..WeightedStack::default()
            });
        }
    });
}
