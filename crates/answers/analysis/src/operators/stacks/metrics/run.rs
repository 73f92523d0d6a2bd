//! Time in which threads ran, from context switches.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::cswitch::CSWITCH;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "run",
    about: "time in which threads ran, from context switches",
    manual: "Exact, without the DPCs and ISRs that interrupted the run. The stack is the one with which the thread was switched in, as in \
             WPA (CPU Usage Precise, New Thread Stack): it shows where the thread had waited, not what it then did; cpu shows \
             that. The whole run belongs to the moment at which it began. Idle threads are left out.",
    unit: Unit::Ns,
    source: Source::Rows(ROWS),
};

/// Also what energy is made of where nothing was sampled, and what switches count.
pub(super) const ROWS: Rows = Rows {
    upid: Some("new_upid"),
    utid: Some("new_utid"),
    only: &["cpu_ns>=0"],
    idle: false,
    ..Rows::weighted(&CSWITCH, "cpu_ns")
};
