//! Time between start and stop events.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "intervals",
    about: "time between start and stop events",
    manual: "Of each pair of a start and a stop event of any provider, with the stack of the start. Intervals \
             lie inside each other and overlap.",
    unit: Unit::Ns,
    reads: &["interval"],
    source: Source::Rows(Rows::of("interval", "dur_ns")),
};
