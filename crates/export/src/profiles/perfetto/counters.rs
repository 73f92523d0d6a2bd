//! Counters over time: use of processors, threads that wait for one, memory, disk queues.

use super::packets::{Packets, field};
use crate::Result;
use crate::profile::{Column, Profile};
use std::collections::BTreeMap;

/// `TrackEvent.Type`.
const COUNTER: u64 = 4;
/// `CounterDescriptor.Unit`.
const COUNT: u64 = 2;
const BYTES: u64 = 3;

/// Columns of `memory_counter`, and what they are called.
const MEMORY: [(&str, &str); 6] = [
    ("available_bytes", "Memory available"),
    ("commit_bytes", "Memory committed"),
    ("standby_bytes", "Memory standby"),
    ("modified_bytes", "Memory modified"),
    ("paged_pool_bytes", "Paged pool"),
    ("nonpaged_pool_bytes", "Nonpaged pool"),
];

enum Number {
    Whole(i64),
    Part(f64),
}

/// Tracks of counters, made when they have a value.
#[derive(Default)]
struct Counters {
    tracks: BTreeMap<String, u64>,
}

impl Counters {
    fn add(
        &mut self,
        name: String,
        unit: Option<u64>,
        ts_ns: i64,
        value: Number,
        packets: &mut Packets<'_>,
    ) -> Result<()> {
        let track = match self.tracks.get(&name) {
            Some(track) => *track,
            None => {
                let track = packets.track(|track| {
                    track.text(field::TRACK_NAME, &name);
                    track.message(field::TRACK_COUNTER, |counter| match unit {
                        Some(unit) => counter.uint(field::COUNTER_UNIT, unit),
                        None => counter.text(field::COUNTER_UNIT_NAME, "%"),
                    });
                })?;
                self.tracks.insert(name, track);
                track
            }
        };
        packets.packet(ts_ns, |packet| {
            packet.message(field::PACKET_TRACK_EVENT, |event| {
                event.uint(field::EVENT_TYPE, COUNTER);
                event.uint(field::EVENT_TRACK_UUID, track);
                match value {
                    Number::Whole(value) => event.int(field::EVENT_COUNTER_VALUE, value),
                    Number::Part(value) => event.double(field::EVENT_DOUBLE_COUNTER_VALUE, value),
                }
            });
        })
    }
}

/// Writes all counters.
pub(super) fn write(profile: &Profile<'_>, packets: &mut Packets<'_>) -> Result<()> {
    let mut counters = Counters::default();
    let column = |name: &str| Column::of(profile.db, "cpu_time", name);
    let (start, dur, cpu) = (column("start_ns"), column("dur_ns"), column("cpu"));
    let (busy, ready) = (column("busy_percent"), column("ready_ns"));
    for at in 0..start.rows() {
        let Some(ts) = start.i64(at).filter(|ts| profile.is_in_time(*ts)) else { continue };
        let cpu = cpu.i64(at).unwrap_or(0);
        if let Some(busy) = busy.f64(at) {
            counters.add(format!("CPU {cpu} busy"), None, ts, Number::Part(busy), packets)?;
        }
        if let (Some(ready), Some(dur)) = (ready.i64(at), dur.i64(at).filter(|dur| *dur > 0)) {
            let threads = Number::Part(ready as f64 / dur as f64);
            counters.add(format!("CPU {cpu} ready threads"), Some(COUNT), ts, threads, packets)?;
        }
    }
    let ts = Column::of(profile.db, "memory_counter", "ts_ns");
    for (column, name) in MEMORY {
        let value = Column::of(profile.db, "memory_counter", column);
        for at in 0..ts.rows() {
            let Some(ts) = ts.i64(at).filter(|ts| profile.is_in_time(*ts)) else { continue };
            if let Some(value) = value.i64(at) {
                counters.add(name.to_owned(), Some(BYTES), ts, Number::Whole(value), packets)?;
            }
        }
    }
    disk_queues(profile, &mut counters, packets)
}

/// Transfers under way, by disk.
fn disk_queues(profile: &Profile<'_>, counters: &mut Counters, packets: &mut Packets<'_>) -> Result<()> {
    let column = |name: &str| Column::of(profile.db, "disk_io", name);
    let (start, end, disk) = (column("start_ns"), column("ts_ns"), column("disk"));
    let mut steps: Vec<(i64, i64, i64)> = Vec::new();
    for at in 0..start.rows() {
        let (Some(start), Some(end)) = (start.i64(at), end.i64(at)) else { continue };
        let disk = disk.i64(at).unwrap_or(-1);
        steps.extend([(disk, start, 1), (disk, end.max(start), -1)]);
    }
    steps.sort_unstable();
    for steps in steps.chunk_by(|a, b| a.0 == b.0) {
        let mut depth = 0i64;
        for moment in steps.chunk_by(|a, b| a.1 == b.1) {
            depth = moment.iter().fold(depth, |depth, step| depth.saturating_add(step.2));
            let Some((disk, ts, _)) = moment.first().filter(|step| profile.is_in_time(step.1)) else {
                continue;
            };
            let name = format!("Disk {disk} queue");
            counters.add(name, Some(COUNT), *ts, Number::Whole(depth), packets)?;
        }
    }
    Ok(())
}
