//! Waits of others that threads ended.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::cswitch::CSWITCH;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "readying",
    about: "waits of other threads that threads ended",
    manual: "Of each wait its length, charged to the thread that ended it, with the stack with which it did (WPA: CPU Usage Precise, \
             Ready Thread Stack). What ends a wait need not be what made it long. Waits that a DPC ended, a timer's \
             or the end of a transfer, have no thread.",
    unit: Unit::Ns,
    source: Source::Rows(Rows {
        ts: Some("ready_ts_ns"),
        upid: Some("readying_upid"),
        utid: Some("readying_utid"),
        stack: Some("ready_stack_id"),
        ..Rows::weighted(&CSWITCH, "wait_ns")
    }),
};
