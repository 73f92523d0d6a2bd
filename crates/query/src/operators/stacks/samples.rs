//! CPU samples by what they hit.

use super::{Class, WeightedStack, idle_processes, marked};
use crate::operators::for_each_batch;
use etwhy_table::Database;

/// Hands over the samples of some classes. Idle threads are nobody's cost.
pub(super) fn each(db: &Database, classes: &[Class], give: &mut dyn FnMut(WeightedStack)) {
    let idle = idle_processes(db);
    let columns = ["ts_ns", "upid", "utid", "stack_id", "weight_ns", "in_dpc", "in_isr", "cpu"];
    for_each_batch(db, "sample", columns, |rows, [ts, upid, utid, stack, weight, dpc, isr, cpu]| {
        for row in 0..rows {
            // An ISR may have interrupted a DPC: the innermost counts, as in table `stack_cost`.
            let class = match (dpc.bool(row), isr.bool(row)) {
                (_, Some(true)) => Class::Isr,
                (Some(true), _) => Class::Dpc,
                _ => Class::Thread,
            };
            if !classes.contains(&class) || class == Class::Thread && marked(&idle, upid.i64(row)) {
                continue;
            }
            give(WeightedStack {
                ts_ns: ts.i64(row),
                upid: upid.i64(row),
                utid: utid.i64(row),
                cpu: cpu.i64(row),
                class,
                stack: stack.i64(row),
                frame: None,
                weight: weight.i64(row).unwrap_or(0),
                count: 1,
            });
        }
    });
}
