//! Counters of the machine. The format wants differences.

use super::timestamp;
use super::tracks::{Track, Tracks};
use crate::profile::Profile;
use etwhy_trace::catalog::{cpu_time::CpuTimeRow, memory_counter::MemoryCounterRow};
use fxprof_processed_profile as fx;
use std::collections::BTreeMap;

/// Adds CPU use and memory.
pub(super) fn write(profile: &Profile<'_>, tracks: &mut Tracks<'_>, made: &mut fx::Profile) {
    // By end of the slice: all processors together.
    let mut slices: BTreeMap<i64, i64> = BTreeMap::new();
    let rows = profile.db.read_or_empty::<CpuTimeRow>();
    for row in rows.iter().filter(|row| profile.is_in_time(row.start_ns())) {
        // Without context switches samples tell.
        let sum = match row.thread_ns() {
            Some(thread) => [thread, row.dpc_ns(), row.isr_ns()],
            None => [row.sampled_thread_ns(), row.sampled_dpc_ns(), row.sampled_isr_ns()],
        };
        let sum = sum.into_iter().fold(0i64, i64::saturating_add);
        let total = slices.entry(row.start_ns().saturating_add(row.dur_ns())).or_default();
        *total = total.saturating_add(sum);
    }
    if !slices.is_empty() {
        // The counter stands below the main thread of its process.
        tracks.thread(Track::Machine, made);
        let machine = tracks.process(None, made);
        let counter =
            made.add_counter(machine, "processCPU", "CPU", "CPU use of the machine, all processors together");
        for (end, ns) in slices {
            made.add_counter_sample(counter, timestamp(end), ns as f64 / 1000.0, 0);
        }
    }
    let counters = profile.db.read_or_empty::<MemoryCounterRow>();
    let counters = counters.iter().filter(|row| profile.is_in_time(row.ts_ns()));
    let commit: Vec<_> =
        counters.clone().filter_map(|row| Some((row.ts_ns(), row.commit_bytes()?))).collect();
    let available: Vec<_> = counters.map(|row| (row.ts_ns(), row.available_bytes())).collect();
    for (rows, about) in [(commit, "Committed memory"), (available, "Available memory")] {
        if rows.is_empty() {
            continue;
        }
        tracks.thread(Track::Machine, made);
        let machine = tracks.process(None, made);
        let counter = made.add_counter(machine, about, "Memory", about);
        let mut last = 0;
        for (ts, now) in rows {
            made.add_counter_sample(counter, timestamp(ts), now.saturating_sub(last) as f64, 0);
            last = now;
        }
    }
}
