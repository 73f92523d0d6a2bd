//! Time of system calls.

use crate::operators::stacks::{Metric, Source, WeightedStack};
use etwhy_table::{Unit, reads};
use etwhy_trace::catalog::syscall::SyscallRow;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "syscall-time",
    about: "time of system calls",
    manual: "From begin to return of each call, waiting included, with the stack of its caller. The routine stands for calls without a stack. \
             Calls inside of another one are part of that one's time and left out. Calls that had not returned have no time. \
             Tracing system calls makes short ones several times as long.",
    unit: Unit::Ns,
    source: Source::Code(reads::<SyscallRow>, |db, give| {
        for row in db.read_or_empty::<SyscallRow>().iter().filter(|&row| row.depth().unwrap_or(0) == 0) {
            let Some(weight) = row.dur_ns().filter(|&ns| ns >= 0) else { continue };
            give(WeightedStack {
                ts_ns: row.start_ns(),
                upid: row.upid(),
                utid: row.utid(),
                stack: row.stack_id(),
                frame: row.frame_id(),
                weight,
                count: 1,
                ..WeightedStack::default()
            });
        }
    }),
};
