//! Counters over time: use of processors, threads that wait for one, memory, disk queues.

use super::packets::{Packets, field};
use crate::Result;
use crate::profile::Profile;
use etwhy_trace::catalog::{cpu_time::CpuTimeRow, disk_io::DiskIoRow, memory_counter::MemoryCounterRow};
use std::collections::BTreeMap;

/// `TrackEvent.Type`.
const COUNTER: u64 = 4;
/// `CounterDescriptor.Unit`.
const COUNT: u64 = 2;
const BYTES: u64 = 3;

enum Number {
    Whole(i64),
    ProfilePart(f64),
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
                    Number::ProfilePart(value) => event.double(field::EVENT_DOUBLE_COUNTER_VALUE, value),
                }
            });
        })
    }
}

/// Writes all counters.
pub(super) fn write(profile: &Profile<'_>, packets: &mut Packets<'_>) -> Result<()> {
    let mut counters = Counters::default();
    for row in &profile.db.read_or_empty::<CpuTimeRow>() {
        let (ts, cpu) = (row.start_ns(), row.cpu());
        if !profile.is_in_time(ts) {
            continue;
        }
        if let Some(busy) = row.busy_percent() {
            counters.add(format!("CPU {cpu} busy"), None, ts, Number::ProfilePart(busy), packets)?;
        }
        if let Some(ready) = row.ready_ns().filter(|_| row.dur_ns() > 0) {
            let threads = Number::ProfilePart(ready as f64 / row.dur_ns() as f64);
            counters.add(format!("CPU {cpu} ready threads"), Some(COUNT), ts, threads, packets)?;
        }
    }
    let memory = profile.db.read_or_empty::<MemoryCounterRow>();
    macro_rules! counter {
        ($name:literal, $column:ident) => {
            for row in memory.iter().filter(|row| profile.is_in_time(row.ts_ns())) {
                if let Some(value) = row.$column().into() {
                    counters.add(
                        $name.to_owned(),
                        Some(BYTES),
                        row.ts_ns(),
                        Number::Whole(value),
                        packets,
                    )?;
                }
            }
        };
    }
    counter!("Memory available", available_bytes);
    counter!("Memory committed", commit_bytes);
    counter!("Memory standby", standby_bytes);
    counter!("Memory modified", modified_bytes);
    counter!("Paged pool", paged_pool_bytes);
    counter!("Nonpaged pool", nonpaged_pool_bytes);
    disk_queues(profile, &mut counters, packets)
}

/// Transfers under way, by disk.
fn disk_queues(profile: &Profile<'_>, counters: &mut Counters, packets: &mut Packets<'_>) -> Result<()> {
    let mut steps: Vec<(i64, i64, i64)> = Vec::new();
    for row in &profile.db.read_or_empty::<DiskIoRow>() {
        let (disk, start) = (row.disk(), row.start_ns());
        steps.extend([(disk, start, 1), (disk, row.ts_ns().max(start), -1)]);
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
