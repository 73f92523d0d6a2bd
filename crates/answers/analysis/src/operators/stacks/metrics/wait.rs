//! Time in which threads waited.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::cswitch::CSWITCH;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "wait",
    about: "time in which threads waited",
    manual: "From the moment the thread left its processor until it was readied. The stack is the one with \
             which it came back, which is where it waited (WPA: CPU Usage Precise, New Thread Stack). The time \
             belongs to the moment at which it came back; waits that had not ended are not in it. Threads wait \
             at the same time, so that the sum is more than the trace is long, and most waiting is for work.",
    unit: Unit::Ns,
    source: Source::Rows(Rows {
        upid: Some("new_upid"),
        utid: Some("new_utid"),
        ..Rows::weighted(&CSWITCH, "wait_ns")
    }),
};
