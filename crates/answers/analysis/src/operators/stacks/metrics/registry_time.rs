//! Time of registry operations.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "registry-time",
    about: "time of registry operations",
    manual: "From begin to end of each operation, with what tracing it costs, which is much.",
    unit: Unit::Ns,
    reads: &["registry"],
    source: Source::Rows(Rows::of("registry", "dur_ns")),
};
