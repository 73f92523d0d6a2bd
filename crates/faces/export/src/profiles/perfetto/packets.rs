//! Packets, and the names that are written once.

use crate::Result;
use crate::protobuf::Message;
use foldhash::HashMap;
use std::io::Write;

/// Numbers of fields, `Message.field`, from the `.proto` files.
pub(super) mod field {
    pub const TRACE_PACKET: u32 = 1;
    pub const PACKET_FTRACE_EVENTS: u32 = 1;
    pub const PACKET_PROCESS_TREE: u32 = 2;
    pub const PACKET_CLOCK_SNAPSHOT: u32 = 6;
    pub const PACKET_TIMESTAMP: u32 = 8;
    pub const PACKET_SEQUENCE_ID: u32 = 10;
    pub const PACKET_TRACK_EVENT: u32 = 11;
    pub const PACKET_INTERNED_DATA: u32 = 12;
    pub const PACKET_SEQUENCE_FLAGS: u32 = 13;
    pub const PACKET_TIMESTAMP_CLOCK: u32 = 58;
    pub const PACKET_DEFAULTS: u32 = 59;
    pub const PACKET_TRACK_DESCRIPTOR: u32 = 60;
    pub const PACKET_PERF_SAMPLE: u32 = 66;
    pub const SNAPSHOT_CLOCKS: u32 = 1;
    pub const SNAPSHOT_PRIMARY: u32 = 2;
    pub const CLOCK_ID: u32 = 1;
    pub const CLOCK_TIMESTAMP: u32 = 2;
    pub const DEFAULTS_PERF_SAMPLE: u32 = 12;
    pub const PERF_DEFAULTS_TIMEBASE: u32 = 1;
    pub const TIMEBASE_FREQUENCY: u32 = 2;
    pub const TREE_PROCESSES: u32 = 1;
    pub const TREE_THREADS: u32 = 2;
    pub const PROCESS_PID: u32 = 1;
    pub const PROCESS_PPID: u32 = 2;
    pub const PROCESS_CMDLINE: u32 = 3;
    pub const THREAD_TID: u32 = 1;
    pub const THREAD_NAME: u32 = 2;
    pub const THREAD_TGID: u32 = 3;
    pub const BUNDLE_CPU: u32 = 1;
    pub const BUNDLE_EVENT: u32 = 2;
    pub const FTRACE_TIMESTAMP: u32 = 1;
    pub const FTRACE_PID: u32 = 2;
    pub const FTRACE_SCHED_SWITCH: u32 = 4;
    pub const FTRACE_CPU_FREQUENCY: u32 = 11;
    pub const FTRACE_CPU_IDLE: u32 = 13;
    pub const FTRACE_SCHED_WAKING: u32 = 20;
    pub const SWITCH_PREV_COMM: u32 = 1;
    pub const SWITCH_PREV_PID: u32 = 2;
    pub const SWITCH_PREV_PRIO: u32 = 3;
    pub const SWITCH_PREV_STATE: u32 = 4;
    pub const SWITCH_NEXT_COMM: u32 = 5;
    pub const SWITCH_NEXT_PID: u32 = 6;
    pub const SWITCH_NEXT_PRIO: u32 = 7;
    pub const WAKING_COMM: u32 = 1;
    pub const WAKING_PID: u32 = 2;
    pub const WAKING_PRIO: u32 = 3;
    pub const WAKING_SUCCESS: u32 = 4;
    pub const WAKING_TARGET_CPU: u32 = 5;
    /// Of `cpu_frequency` and `cpu_idle`.
    pub const POWER_STATE: u32 = 1;
    /// Of `cpu_frequency` and `cpu_idle`.
    pub const POWER_CPU: u32 = 2;
    pub const TRACK_UUID: u32 = 1;
    pub const TRACK_NAME: u32 = 2;
    pub const TRACK_PROCESS: u32 = 3;
    pub const TRACK_THREAD: u32 = 4;
    pub const TRACK_PARENT: u32 = 5;
    pub const TRACK_COUNTER: u32 = 8;
    pub const COUNTER_UNIT: u32 = 3;
    pub const COUNTER_UNIT_NAME: u32 = 6;
    pub const PROCESS_DESCRIPTOR_PID: u32 = 1;
    pub const THREAD_DESCRIPTOR_PID: u32 = 1;
    pub const THREAD_DESCRIPTOR_TID: u32 = 2;
    pub const EVENT_CATEGORY_IIDS: u32 = 3;
    pub const EVENT_ANNOTATIONS: u32 = 4;
    pub const EVENT_TYPE: u32 = 9;
    pub const EVENT_NAME_IID: u32 = 10;
    pub const EVENT_TRACK_UUID: u32 = 11;
    pub const EVENT_COUNTER_VALUE: u32 = 30;
    pub const EVENT_DOUBLE_COUNTER_VALUE: u32 = 44;
    pub const ANNOTATION_NAME_IID: u32 = 1;
    pub const ANNOTATION_INT: u32 = 4;
    pub const ANNOTATION_STRING: u32 = 6;
    pub const ANNOTATION_POINTER: u32 = 7;
    pub const INTERNED_CATEGORIES: u32 = 1;
    pub const INTERNED_EVENT_NAMES: u32 = 2;
    pub const INTERNED_ANNOTATION_NAMES: u32 = 3;
    pub const INTERNED_FUNCTION_NAMES: u32 = 5;
    pub const INTERNED_FRAMES: u32 = 6;
    pub const INTERNED_CALLSTACKS: u32 = 7;
    pub const INTERNED_BUILD_IDS: u32 = 16;
    pub const INTERNED_MAPPING_PATHS: u32 = 17;
    pub const INTERNED_SOURCE_PATHS: u32 = 18;
    pub const INTERNED_MAPPINGS: u32 = 19;
    pub const INTERNED_IID: u32 = 1;
    pub const INTERNED_TEXT: u32 = 2;
    pub const MAPPING_BUILD_ID: u32 = 2;
    pub const MAPPING_START: u32 = 4;
    pub const MAPPING_END: u32 = 5;
    pub const MAPPING_PATH: u32 = 7;
    pub const FRAME_FUNCTION: u32 = 2;
    pub const FRAME_MAPPING: u32 = 3;
    pub const FRAME_REL_PC: u32 = 4;
    pub const FRAME_SOURCE_PATH: u32 = 5;
    pub const FRAME_LINE: u32 = 6;
    pub const CALLSTACK_FRAMES: u32 = 2;
    pub const SAMPLE_CPU: u32 = 1;
    pub const SAMPLE_PID: u32 = 2;
    pub const SAMPLE_TID: u32 = 3;
    pub const SAMPLE_CALLSTACK: u32 = 4;
    pub const SAMPLE_CPU_MODE: u32 = 5;
}

/// `BuiltinClock`.
const BOOTTIME: u64 = 6;
const REALTIME: u64 = 1;
/// `TracePacket.SequenceFlags`.
const STATE_CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;
/// The one sequence of packets.
const SEQUENCE: u64 = 1;

/// Writes packets.
pub(super) struct Packets<'o> {
    out: &'o mut dyn Write,
    message: Message,
    /// Numbers of texts, by the field of `InternedData` that holds them.
    texts: HashMap<u32, HashMap<String, u64>>,
    tracks: u64,
}

impl<'o> Packets<'o> {
    /// Onto `out`.
    pub fn new(out: &'o mut dyn Write) -> Packets<'o> {
        Packets { out, message: Message::default(), texts: HashMap::default(), tracks: 0 }
    }

    fn write(&mut self, flags: u64, ts_ns: i64, write: impl FnOnce(&mut Message)) -> Result<()> {
        self.message.clear();
        self.message.message(field::TRACE_PACKET, |packet| {
            packet.uint(field::PACKET_TIMESTAMP, ts_ns.max(0) as u64);
            packet.uint(field::PACKET_TIMESTAMP_CLOCK, BOOTTIME);
            packet.uint(field::PACKET_SEQUENCE_ID, SEQUENCE);
            packet.uint(field::PACKET_SEQUENCE_FLAGS, flags);
            write(packet);
        });
        self.out.write_all(self.message.bytes())?;
        Ok(())
    }

    /// The first packet: clocks, and what holds for all.
    pub fn start(&mut self, start_unix_ns: i64, interval_ns: i64) -> Result<()> {
        self.write(STATE_CLEARED, 0, |packet| {
            packet.message(field::PACKET_CLOCK_SNAPSHOT, |snapshot| {
                for (clock, time) in [(BOOTTIME, 0), (REALTIME, start_unix_ns.max(0) as u64)] {
                    snapshot.message(field::SNAPSHOT_CLOCKS, |message| {
                        message.uint(field::CLOCK_ID, clock);
                        message.uint(field::CLOCK_TIMESTAMP, time);
                    });
                }
                snapshot.uint(field::SNAPSHOT_PRIMARY, BOOTTIME);
            });
            packet.message(field::PACKET_DEFAULTS, |defaults| {
                defaults.uint(field::PACKET_TIMESTAMP_CLOCK, BOOTTIME);
                defaults.message(field::DEFAULTS_PERF_SAMPLE, |samples| {
                    samples.message(field::PERF_DEFAULTS_TIMEBASE, |timebase| {
                        let hz = 1_000_000_000 / interval_ns.max(1);
                        timebase.uint(field::TIMEBASE_FREQUENCY, hz.max(1) as u64);
                    });
                });
            });
        })
    }

    /// A packet.
    pub fn packet(&mut self, ts_ns: i64, write: impl FnOnce(&mut Message)) -> Result<()> {
        self.write(NEEDS_STATE, ts_ns, write)
    }

    /// The number of a text, written when it is first used.
    pub fn text(&mut self, kind: u32, text: &str) -> Result<u64> {
        let known = self.texts.entry(kind).or_default();
        if let Some(number) = known.get(text) {
            return Ok(*number);
        }
        let number = known.len() as u64 + 1;
        known.insert(text.to_owned(), number);
        self.packet(0, |packet| {
            packet.message(field::PACKET_INTERNED_DATA, |data| {
                data.message(kind, |message| {
                    message.uint(field::INTERNED_IID, number);
                    message.text(field::INTERNED_TEXT, text);
                });
            });
        })?;
        Ok(number)
    }

    /// A new track.
    pub fn track(&mut self, describe: impl FnOnce(&mut Message)) -> Result<u64> {
        self.tracks += 1;
        let uuid = self.tracks;
        self.packet(0, |packet| {
            packet.message(field::PACKET_TRACK_DESCRIPTOR, |track| {
                track.uint(field::TRACK_UUID, uuid);
                describe(track);
            });
        })?;
        Ok(uuid)
    }
}
