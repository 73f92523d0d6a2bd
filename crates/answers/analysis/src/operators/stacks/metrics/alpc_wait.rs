//! Time in which threads waited for answers over ALPC.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::alpc::ALPC;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "alpc-wait",
    about: "time in which threads waited for answers over ALPC",
    manual: "Of each message how long its sender waited for the reply, with the stack that sent it.",
    unit: Unit::Ns,
    source: Source::Rows(Rows {
        ts: Some("send_ns"),
        upid: Some("client_upid"),
        utid: Some("client_utid"),
        ..Rows::weighted(&ALPC, "wait_ns")
    }),
};
