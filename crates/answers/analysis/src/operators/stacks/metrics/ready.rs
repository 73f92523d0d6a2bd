//! Time in which threads could run and had no processor.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::cswitch::CSWITCH;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "ready",
    about: "time in which threads could run and had no processor",
    manual: "From ReadyThread to the switch that let the thread run. The stack is the one with which it came \
             back, so that it shows where it had waited before, as in WPA (CPU Usage Precise, New Thread \
             Stack). Without ReadyThread events there is none.",
    unit: Unit::Ns,
    source: Source::Rows(Rows {
        upid: Some("new_upid"),
        utid: Some("new_utid"),
        ..Rows::weighted(&CSWITCH, "ready_ns")
    }),
};
