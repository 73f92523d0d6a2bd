//! Kernel pool that was allocated.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::pool::POOL;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "pool-bytes",
    about: "kernel pool that was allocated",
    manual: "Bytes of each allocation, freed or not.",
    unit: Unit::Bytes,
    source: Source::Rows(Rows::weighted(&POOL, "size_bytes")),
};
