//! CPU samples by what they hit.

use super::{Class, WeightedStack, idle_processes, marked};
use etwhy_table::Database;
use etwhy_trace::catalog::sample::SampleRow;

/// Hands over the samples of some classes. Idle threads are nobody's cost.
pub(super) fn each(db: &Database, classes: &[Class], give: &mut dyn FnMut(WeightedStack)) {
    let idle = idle_processes(db);
    for row in &db.read_or_empty::<SampleRow>() {
        let class = Class::of_sample(row.in_dpc(), row.in_isr());
        if !classes.contains(&class) || class == Class::Thread && marked(&idle, row.upid()) {
            continue;
        }
        give(WeightedStack {
            ts_ns: Some(row.ts_ns()),
            upid: row.upid(),
            utid: Some(row.utid()),
            cpu: Some(row.cpu()),
            class,
            stack: row.stack_id(),
            frame: None,
            weight: row.weight_ns(),
            count: 1,
        });
    }
}
