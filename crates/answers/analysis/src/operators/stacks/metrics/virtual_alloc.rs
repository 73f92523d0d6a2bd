//! Memory that VirtualAlloc committed.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::virtual_alloc::VIRTUAL_ALLOC;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "virtual-alloc",
    about: "memory that VirtualAlloc committed",
    manual: "Bytes of each call that had not been committed before. What was freed again is in it; see \
             virtual-outstanding.",
    unit: Unit::Bytes,
    source: Source::Rows(Rows::weighted(&VIRTUAL_ALLOC, "committed_bytes")),
};
