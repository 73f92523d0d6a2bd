//! Registry operations.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "registry-ops",
    about: "registry operations",
    manual: "One for each operation.",
    unit: Unit::Count,
    reads: &["registry"],
    source: Source::Rows(Rows::counted("registry")),
};
