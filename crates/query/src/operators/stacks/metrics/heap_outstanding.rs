//! What was allocated and not freed: heap.

use crate::operators::for_each_batch;
use crate::operators::stacks::{Metric, Source, WeightedStack};
use etwhy_table::Unit;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "heap-outstanding",
    about: "heap that was allocated in the trace and not freed in it",
    manual: "Bytes of allocations whose end is not in the trace. What is still needed is no leak; what was freed after the trace is in \
             it.",
    unit: Unit::Bytes,
    reads: &["heap"],
    source: Source::Code(|db, give| {
        let columns = ["ts_ns", "upid", "utid", "stack_id", "size_bytes", "freed_by"];
        for_each_batch(db, "heap", columns, |rows, [ts, upid, utid, stack, size, freed]| {
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
    }),
};
