//! Handles that were opened.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::handle::HANDLE;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "handles",
    about: "handles that were opened",
    manual: "One for each handle, whether it was closed or not.",
    unit: Unit::Count,
    source: Source::Rows(Rows::counted(&HANDLE)),
};
