//! Time in which threads ran, from context switches.

use crate::operators::for_each_batch;
use crate::operators::stacks::{Metric, Source, WeightedStack, idle_processes, marked};
use etwhy_table::{Database, Unit};

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "run",
    about: "time in which threads ran, from context switches",
    manual: "Exact, without the DPCs and ISRs that interrupted the run. The stack is the one with which the thread was switched in, as in \
             WPA (CPU Usage Precise, New Thread Stack): it shows where the thread had waited, not what it then did; cpu shows \
             that. The whole run belongs to the moment at which it began. Idle threads are left out.",
    unit: Unit::Ns,
    reads: &["cswitch"],
    source: Source::Code(each),
};

/// Also what energy is made of where nothing was sampled.
pub(super) fn each(db: &Database, give: &mut dyn FnMut(WeightedStack)) {
    let idle = idle_processes(db);
    let columns = ["ts_ns", "new_upid", "new_utid", "stack_id", "cpu_ns", "cpu"];
    for_each_batch(db, "cswitch", columns, |rows, [ts, upid, utid, stack, ran, cpu]| {
        for row in (0..rows).filter(|&row| !marked(&idle, upid.i64(row))) {
            let Some(weight) = ran.i64(row).filter(|&ns| ns >= 0) else { continue };
            give(WeightedStack {
                ts_ns: ts.i64(row),
                upid: upid.i64(row),
                utid: utid.i64(row),
                cpu: cpu.i64(row),
                stack: stack.i64(row),
                weight,
                count: 1,
                ..WeightedStack::default()
            });
        }
    });
}
