//! Time between start and stop events.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::interval::INTERVAL;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "intervals",
    about: "time between start and stop events",
    manual: "Of each pair of a start and a stop event of any provider, with the stack of the start. Intervals \
             lie inside each other and overlap.",
    unit: Unit::Ns,
    source: Source::Rows(Rows::weighted(&INTERVAL, "dur_ns")),
};
