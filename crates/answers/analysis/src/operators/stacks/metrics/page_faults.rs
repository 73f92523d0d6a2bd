//! Page faults, soft and hard.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::page_fault::PAGE_FAULT;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "page-faults",
    about: "page faults, soft and hard",
    manual: "One for each fault. The stack leads to the code that touched the memory.",
    unit: Unit::Count,
    source: Source::Rows(Rows::counted(&PAGE_FAULT)),
};
