//! Counters of the machine. The format wants differences.

use super::timestamp;
use super::tracks::{Track, Tracks};
use crate::profile::{Column, Profile};
use fxprof_processed_profile as fx;
use std::collections::BTreeMap;

/// Adds CPU use and memory.
pub(super) fn write(profile: &Profile<'_>, tracks: &mut Tracks<'_>, made: &mut fx::Profile) {
    let column = |name: &str| Column::of(profile.db, "cpu_time", name);
    let (start, dur) = (column("start_ns"), column("dur_ns"));
    let busy = ["thread_ns", "dpc_ns", "isr_ns"].map(column);
    let sampled = ["sampled_thread_ns", "sampled_dpc_ns", "sampled_isr_ns"].map(column);
    // By end of the slice: all processors together.
    let mut slices: BTreeMap<i64, i64> = BTreeMap::new();
    for at in 0..start.rows() {
        let Some((start, dur)) = start.i64(at).zip(dur.i64(at)) else { continue };
        if !profile.is_in_time(start) {
            continue;
        }
        // Without context switches samples tell.
        let columns =
            if busy.first().is_some_and(|column| column.i64(at).is_some()) { &busy } else { &sampled };
        let sum = columns.iter().filter_map(|column| column.i64(at)).fold(0i64, i64::saturating_add);
        let total = slices.entry(start.saturating_add(dur)).or_default();
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
    let column = |name: &str| Column::of(profile.db, "memory_counter", name);
    let ts = column("ts_ns");
    for (name, about) in [("commit_bytes", "Committed memory"), ("available_bytes", "Available memory")] {
        let value = column(name);
        let wanted =
            |at: &u32| ts.i64(*at).is_some_and(|ts| profile.is_in_time(ts)) && value.i64(*at).is_some();
        let rows: Vec<u32> = (0..ts.rows()).filter(wanted).collect();
        if rows.is_empty() {
            continue;
        }
        tracks.thread(Track::Machine, made);
        let machine = tracks.process(None, made);
        let counter = made.add_counter(machine, about, "Memory", about);
        let mut last = 0;
        for at in rows {
            let (ts, now) = (ts.i64(at).unwrap_or(0), value.i64(at).unwrap_or(0));
            made.add_counter_sample(counter, timestamp(ts), now.saturating_sub(last) as f64, 0);
            last = now;
        }
    }
}
