//! What was allocated and not freed: kernel pool.

use crate::operators::stacks::{Metric, Source, WeightedStack};
use etwhy_table::{Unit, reads};
use etwhy_trace::catalog::pool::PoolRow;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "pool-outstanding",
    about: "kernel pool that was allocated in the trace and not freed in it",
    manual: "Bytes of allocations whose end is not in the trace. What is still needed is no leak; what was freed after the trace is in \
             it.",
    unit: Unit::Bytes,
    source: Source::Code(reads::<PoolRow>, |db, give| {
        for row in db.read_or_empty::<PoolRow>().iter().filter(|row| row.freed_by().is_none()) {
            if row.size_bytes() >= 0 {
                give(WeightedStack {
                    ts_ns: Some(row.ts_ns()),
                    upid: row.upid(),
                    utid: row.utid(),
                    stack: row.stack_id(),
                    weight: row.size_bytes(),
                    count: 1,
                    ..WeightedStack::default()
                });
            }
        }
    }),
};
