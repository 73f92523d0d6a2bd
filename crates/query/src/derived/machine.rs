//! The machine in one row: what shares are shares of.
//!
//! # How it is computed
//!
//! From `trace` (the longest file counts), `cpu` and `stack_cost`. `capacity_ns` is processors times duration: what
//! the machine could have done.

use crate::derive::DerivedSpec;
use crate::operators::for_each_batch;
use etwhy_table::{Database, Memory, Strings, Table, TableBuilder, define_table};

define_table! {
    /// The machine and the trace in one row: what shares are shares of.
    ///
    /// Empty if no trace was read.
    pub table MACHINE: MachineRow = "machine" {
        version: 1,
        /// Windows build number.
        os_build: i32 [None, Other],
        /// Logical processors.
        cpus: i32 [Count, Count],
        /// NUMA nodes; 1 where not recorded.
        numa_nodes: i32 [Count, Count],
        /// Memory, where recorded.
        memory_bytes: Option<i64> [Bytes, Bytes],
        /// From the first to the last event.
        duration_ns: i64 [Ns, Duration],
        /// Processors times duration.
        capacity_ns: i64 [Ns, Duration],
        /// Time of samples that were not idle; null without samples.
        sampled_busy_ns: Option<i64> [Ns, Duration],
        /// Part of it whose samples have a stack.
        sampled_stack_ns: i64 [Ns, Duration],
        /// Time of threads, DPCs and ISRs by context switches; null without.
        switched_busy_ns: Option<i64> [Ns, Duration],
        /// Busy time: by samples where there are any, else by context switches.
        busy_ns: Option<i64> [Ns, Duration],
        /// Interval of CPU samples, where recorded.
        sample_interval_ns: Option<i64> [Ns, Duration],
        /// Events lost, as the headers say.
        events_lost: i64 [Count, Count],
        /// Buffers lost, as the headers say.
        buffers_lost: i64 [Count, Count],
    }
}

/// Declaration.
pub static DERIVED: DerivedSpec = DerivedSpec {
    tables: &[&MACHINE],
    reads: &["trace", "cpu", "stack_cost", "stack"],
    on_demand: false,
    make,
};

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    let mut rows = TableBuilder::<MachineRow>::new(memory);
    if let Some(trace) = db.get("trace").filter(|trace| trace.rows() > 0) {
        rows.push(row(db, trace));
    }
    Ok(vec![rows.finish(&Strings::new().freeze().map_err(etwhy_table::TableError::texts)?)?])
}

fn row(db: &Database, trace: &Table) -> MachineRow {
    let all = 0..trace.rows() as u32;
    let most = |column: &str| all.clone().filter_map(|row| trace.i64(row, column)).max();
    let sum =
        |column: &str| all.clone().filter_map(|row| trace.i64(row, column)).fold(0i64, i64::saturating_add);
    let (mut threads, mut sampled, mut idle) = (None, 0i64, 0i64);
    let mut processors = 0i64;
    for_each_batch(
        db,
        "cpu",
        ["thread_ns", "dpc_ns", "isr_ns", "sampled_busy_ns", "sampled_idle_ns"],
        |n, [thread, dpc, isr, busy, free]| {
            for row in 0..n {
                processors += 1;
                let get = |view: &etwhy_table::ColumnView<'_>| view.i64(row).unwrap_or(0);
                if let Some(ns) = thread.i64(row) {
                    let all = ns.saturating_add(get(&dpc)).saturating_add(get(&isr));
                    threads = Some(threads.unwrap_or(0i64).saturating_add(all));
                }
                sampled = sampled.saturating_add(get(&busy));
                idle = idle.saturating_add(get(&free));
            }
        },
    );
    // Without a recorded stack the instruction pointer alone is one.
    let mut bare: Vec<bool> = Vec::new();
    for_each_batch(db, "stack", ["leaf_only"], |n, [leaf_only]| {
        bare.extend((0..n).map(|row| leaf_only.bool(row).unwrap_or(false)));
    });
    let has_stack = |id: Option<i64>| {
        id.is_some_and(|id| !bare.get(usize::try_from(id).unwrap_or(0)).copied().unwrap_or(false))
    };
    let mut with_stack = 0i64;
    for_each_batch(db, "stack_cost", ["stack_id", "weight_ns"], |n, [stack, weight]| {
        for row in (0..n).filter(|&row| has_stack(stack.i64(row))) {
            with_stack = with_stack.saturating_add(weight.i64(row).unwrap_or(0));
        }
    });
    let cpus = most("cpus").unwrap_or(0).max(processors);
    let duration = most("duration_ns").unwrap_or(0);
    let sampled = (sampled > 0 || idle > 0).then_some(sampled);
    let narrow = |n: Option<i64>| n.and_then(|n| i32::try_from(n).ok()).unwrap_or(0);
    MachineRow {
        os_build: narrow(most("os_build")),
        cpus: narrow(Some(cpus)),
        numa_nodes: narrow(most("numa_nodes")).max(1),
        memory_bytes: most("memory_bytes"),
        duration_ns: duration,
        capacity_ns: duration.saturating_mul(cpus),
        sampled_busy_ns: sampled,
        sampled_stack_ns: with_stack,
        switched_busy_ns: threads,
        busy_ns: sampled.or(threads),
        sample_interval_ns: most("sample_interval_ns"),
        events_lost: sum("events_lost"),
        buffers_lost: sum("buffers_lost"),
    }
}
