//! Bytes that page faults brought.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::page_fault::PAGE_FAULT;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "page-fault-bytes",
    about: "bytes that page faults brought",
    manual: "Of each fault the bytes that became part of the working set.",
    unit: Unit::Bytes,
    source: Source::Rows(Rows::weighted(&PAGE_FAULT, "size_bytes")),
};
