//! Time in callbacks of file system filters.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "minifilter-time",
    about: "time in callbacks of file system filters",
    manual: "Of each callback how long it ran. Callbacks may lie inside each other, if a filter opens files \
             itself.",
    unit: Unit::Ns,
    reads: &["minifilter"],
    source: Source::Rows(Rows::of("minifilter", "dur_ns")),
};
