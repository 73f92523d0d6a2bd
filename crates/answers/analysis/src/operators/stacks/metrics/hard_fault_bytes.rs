//! Bytes that hard page faults read.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "hard-fault-bytes",
    about: "bytes that hard page faults read",
    manual: "Of each hard fault what was read from disk.",
    unit: Unit::Bytes,
    reads: &["hard_fault"],
    source: Source::Rows(Rows::of("hard_fault", "size_bytes")),
};
