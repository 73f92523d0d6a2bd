//! Time of system calls.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::syscall::SYSCALL;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "syscall-time",
    about: "time of system calls",
    manual: "From begin to return of each call, waiting included, with the stack of its caller. The routine stands for calls without a stack. \
             Calls inside of another one are part of that one's time and left out. Calls that had not returned have no time. \
             Tracing system calls makes short ones several times as long.",
    unit: Unit::Ns,
    source: Source::Rows(Rows {
        ts: Some("start_ns"),
        cpu: None,
        frame: Some("frame_id"),
        only: &["depth=!1.."],
        ..Rows::weighted(&SYSCALL, "dur_ns")
    }),
};
