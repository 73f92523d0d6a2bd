//! Page faults, soft and hard.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "page-faults",
    about: "page faults, soft and hard",
    manual: "One for each fault. The stack leads to the code that touched the memory.",
    unit: Unit::Count,
    reads: &["page_fault"],
    source: Source::Rows(Rows::counted("page_fault")),
};
