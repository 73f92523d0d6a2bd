//! Time in which threads waited for hard page faults.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::hard_fault::HARD_FAULT;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "hard-fault-time",
    about: "time in which threads waited for hard page faults",
    manual: "From the fault to the moment at which the pages were there.",
    unit: Unit::Ns,
    source: Source::Rows(Rows::weighted(&HARD_FAULT, "dur_ns")),
};
