//! CPU time of threads, from samples.

use crate::operators::for_each_batch;
use crate::operators::stacks::{Metric, WeightedStack};
use etwhy_table::Unit;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "cpu",
    about: "CPU time of threads, from samples",
    manual: "Each sample stands for the time since the one before. Samples in DPCs and ISRs belong to nobody's thread: see \
             dpc and isr.",
    unit: Unit::Ns,
    reads: &["sample"],
    each: |db, give| {
        let columns = ["ts_ns", "upid", "utid", "stack_id", "weight_ns", "in_dpc", "in_isr"];
        for_each_batch(db, "sample", columns, |rows, [ts, upid, utid, stack, weight, dpc, isr]| {
            for row in (0..rows).filter(|&row| dpc.bool(row) != Some(true) && isr.bool(row) != Some(true)) {
                give(WeightedStack {
                    ts_ns: ts.i64(row),
                    upid: upid.i64(row),
                    utid: utid.i64(row),
                    stack: stack.i64(row),
                    weight: weight.i64(row).unwrap_or(0),
                    count: 1,
                });
            }
        });
    },
};
