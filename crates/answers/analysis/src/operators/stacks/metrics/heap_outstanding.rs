//! What was allocated and not freed: heap.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::heap::HEAP;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "heap-outstanding",
    about: "heap that was allocated in the trace and not freed in it",
    manual: "Bytes of allocations whose end is not in the trace. What is still needed is no leak; what was freed after the trace is in \
             it.",
    unit: Unit::Bytes,
    source: Source::Rows(Rows { cpu: None, only: &["freed_by="], ..Rows::weighted(&HEAP, "size_bytes") }),
};
