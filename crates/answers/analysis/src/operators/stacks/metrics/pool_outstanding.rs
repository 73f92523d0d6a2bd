//! What was allocated and not freed: kernel pool.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::pool::POOL;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "pool-outstanding",
    about: "kernel pool that was allocated in the trace and not freed in it",
    manual: "Bytes of allocations whose end is not in the trace. What is still needed is no leak; what was freed after the trace is in \
             it.",
    unit: Unit::Bytes,
    source: Source::Rows(Rows { cpu: None, only: &["freed_by="], ..Rows::weighted(&POOL, "size_bytes") }),
};
