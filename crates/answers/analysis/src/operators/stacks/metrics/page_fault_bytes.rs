//! Bytes that page faults brought.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "page-fault-bytes",
    about: "bytes that page faults brought",
    manual: "Of each fault the bytes that became part of the working set.",
    unit: Unit::Bytes,
    reads: &["page_fault"],
    source: Source::Rows(Rows::of("page_fault", "size_bytes")),
};
