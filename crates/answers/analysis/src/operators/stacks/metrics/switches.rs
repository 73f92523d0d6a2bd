//! Context switches.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "switches",
    about: "context switches",
    manual: "One for each time that a thread was switched in, with the stack with which it came back. Idle threads are left out. \
             Threads that often wait for a moment only show up here.",
    unit: Unit::Count,
    source: Source::Rows(Rows { weight: None, ..super::run::ROWS }),
};
