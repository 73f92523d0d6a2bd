//! Time in callbacks of file system filters.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::minifilter::MINIFILTER;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "minifilter-time",
    about: "time in callbacks of file system filters",
    manual: "Of each callback how long it ran, without the callbacks inside it: if a filter opens files itself, \
             its request passes through other filters.",
    unit: Unit::Ns,
    source: Source::Rows(Rows::weighted(&MINIFILTER, "exclusive_ns")),
};
