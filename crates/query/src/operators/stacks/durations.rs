//! Durations of DPCs and ISRs, at their routines.

use super::{Class, WeightedStack};
use crate::operators::for_each_batch;
use etwhy_table::Database;

/// Hands over the rows of `dpc` or `isr`.
pub(super) fn each(db: &Database, table: &str, class: Class, give: &mut dyn FnMut(WeightedStack)) {
    let columns = ["ts_ns", "upid", "utid", "frame_id", "exclusive_ns", "cpu"];
    for_each_batch(db, table, columns, |rows, [ts, upid, utid, frame, exclusive, cpu]| {
        for row in 0..rows {
            give(WeightedStack {
                ts_ns: ts.i64(row),
                upid: upid.i64(row),
                utid: utid.i64(row),
                cpu: cpu.i64(row),
                class,
                stack: None,
                frame: frame.i64(row),
                weight: exclusive.i64(row).unwrap_or(0).max(0),
                count: 1,
            });
        }
    });
}
