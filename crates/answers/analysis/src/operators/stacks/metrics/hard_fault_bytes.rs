//! Bytes that hard page faults read.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::hard_fault::HARD_FAULT;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "hard-fault-bytes",
    about: "bytes that hard page faults read",
    manual: "Of each hard fault what was read from disk.",
    unit: Unit::Bytes,
    source: Source::Rows(Rows::weighted(&HARD_FAULT, "size_bytes")),
};
