//! Registry operations.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::registry::REGISTRY;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "registry-ops",
    about: "registry operations",
    manual: "One for each operation.",
    unit: Unit::Count,
    source: Source::Rows(Rows::counted(&REGISTRY)),
};
