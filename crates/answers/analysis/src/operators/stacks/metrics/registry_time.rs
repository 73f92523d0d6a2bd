//! Time of registry operations.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::registry::REGISTRY;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "registry-time",
    about: "time of registry operations",
    manual: "From begin to end of each operation, with what tracing it costs, which is much.",
    unit: Unit::Ns,
    source: Source::Rows(Rows::weighted(&REGISTRY, "dur_ns")),
};
