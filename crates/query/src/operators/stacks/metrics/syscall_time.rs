//! Time of system calls.

use crate::operators::for_each_batch;
use crate::operators::stacks::{Metric, Source, WeightedStack};
use etwhy_table::Unit;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "syscall-time",
    about: "time of system calls",
    manual: "From begin to return of each call, waiting included, with the stack of its caller. The routine stands for calls without a stack. \
             Calls inside of another one are part of that one's time and left out. Calls that had not returned have no time. \
             Tracing system calls makes short ones several times as long.",
    unit: Unit::Ns,
    reads: &["syscall"],
    source: Source::Code(|db, give| {
        let columns = ["start_ns", "upid", "utid", "stack_id", "frame_id", "dur_ns", "depth"];
        for_each_batch(db, "syscall", columns, |rows, [ts, upid, utid, stack, frame, dur, depth]| {
            for row in (0..rows).filter(|&row| depth.i64(row).unwrap_or(0) == 0) {
                let Some(weight) = dur.i64(row).filter(|&ns| ns >= 0) else { continue };
                give(WeightedStack {
                    ts_ns: ts.i64(row),
                    upid: upid.i64(row),
                    utid: utid.i64(row),
                    stack: stack.i64(row),
                    frame: frame.i64(row),
                    weight,
                    count: 1,
                    ..WeightedStack::default()
                });
            }
        });
    }),
};
