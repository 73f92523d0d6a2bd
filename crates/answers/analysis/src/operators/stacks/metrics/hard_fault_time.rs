//! Time in which threads waited for hard page faults.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "hard-fault-time",
    about: "time in which threads waited for hard page faults",
    manual: "From the fault to the moment at which the pages were there.",
    unit: Unit::Ns,
    reads: &["hard_fault"],
    source: Source::Rows(Rows::of("hard_fault", "dur_ns")),
};
