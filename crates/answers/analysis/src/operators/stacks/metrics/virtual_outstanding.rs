//! Memory that was committed in the trace and is still there at its end.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::virtual_alloc::VIRTUAL_ALLOC;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "virtual-outstanding",
    about: "memory that was committed in the trace and is still there at its end",
    manual: "Of each call of VirtualAlloc what is committed at the end of the trace. What a program still needs \
             is no leak.",
    unit: Unit::Bytes,
    source: Source::Rows(Rows::weighted(&VIRTUAL_ALLOC, "outstanding_bytes")),
};
