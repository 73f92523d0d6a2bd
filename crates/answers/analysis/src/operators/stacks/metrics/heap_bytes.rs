//! Heap that was allocated.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::heap::HEAP;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "heap-bytes",
    about: "heap that was allocated",
    manual: "Bytes of each allocation, freed or not. Heap events are recorded for chosen processes only.",
    unit: Unit::Bytes,
    source: Source::Rows(Rows::weighted(&HEAP, "size_bytes")),
};
