//! `TRACE_LOGFILE_HEADER`: the payload of the first record (hook 0) of a session.

/// Offsets that depend on the pointer size of the header record.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// `TIME_ZONE_INFORMATION`, 172 bytes.
    pub time_zone: usize,
    /// i64 FILETIME.
    pub boot_time: usize,
    /// i64 ticks per second.
    pub perf_freq: usize,
    /// i64 FILETIME.
    pub start_time: usize,
    /// u32: which clock stamped the events.
    pub reserved_flags: usize,
    /// u32.
    pub buffers_lost: usize,
    /// Session name and file name, two UTF-16 strings.
    pub names: usize,
}

/// The layout in a record with 8-byte pointers.
pub const LAYOUT64: Layout = Layout {
    time_zone: 0x48,
    boot_time: 0xF8,
    perf_freq: 0x100,
    start_time: 0x108,
    reserved_flags: 0x110,
    buffers_lost: 0x114,
    names: 0x118,
};
/// The layout in a record with 4-byte pointers.
pub const LAYOUT32: Layout = Layout {
    time_zone: 0x40,
    boot_time: 0xF0,
    perf_freq: 0xF8,
    start_time: 0x100,
    reserved_flags: 0x108,
    buffers_lost: 0x10C,
    names: 0x110,
};

/// u32: nominal buffer size of the session.
pub const BUFFER_SIZE: usize = 0x00;
/// u8 each: OS major, OS minor, format major, format minor.
pub const VERSION: usize = 0x04;
/// u32: OS build.
pub const PROVIDER_VERSION: usize = 0x08;
/// u32.
pub const NUMBER_OF_PROCESSORS: usize = 0x0C;
/// i64 FILETIME; 0 when the session was never finalised.
pub const END_TIME: usize = 0x10;
/// u32, 100 ns.
pub const TIMER_RESOLUTION: usize = 0x18;
/// u32: MB (KB under `MODE_USE_KBYTES_FOR_SIZE`).
pub const MAXIMUM_FILE_SIZE: usize = 0x1C;
/// u32: see `MODE_*`.
pub const LOG_FILE_MODE: usize = 0x20;
/// u32: a hint only, 0 when never finalised.
pub const BUFFERS_WRITTEN: usize = 0x24;
/// u32.
pub const START_BUFFERS: usize = 0x28;
/// u32: pointer size of the machine; records carry their own.
pub const POINTER_SIZE: usize = 0x2C;
/// u32.
pub const EVENTS_LOST: usize = 0x30;
/// u32.
pub const CPU_SPEED_IN_MHZ: usize = 0x34;

/// Clock types of `ReservedFlags`.
pub const CLOCK_QPC: u32 = 1;
/// Timestamps are FILETIMEs.
pub const CLOCK_SYSTEM_TIME: u32 = 2;
/// Timestamps are CPU cycles.
pub const CLOCK_CPU_CYCLE: u32 = 3;

/// Names of the bits of `LogFileMode` (`EVENT_TRACE_*_MODE`).
pub const MODES: [(u32, &str); 26] = [
    (0x1, "sequential"),
    (0x2, "circular"),
    (0x4, "append"),
    (0x8, "new_file"),
    (0x20, "preallocate"),
    (0x40, "nonstoppable"),
    (0x80, "secure"),
    (0x100, "real_time"),
    (0x200, "delay_open"),
    (0x400, "buffering"),
    (0x800, "private_logger"),
    (0x1000, "add_header"),
    (0x2000, "kbytes_for_size"),
    (0x4000, "global_sequence"),
    (0x8000, "local_sequence"),
    (0x10000, "relog"),
    (0x20000, "private_in_proc"),
    (0x400000, "stop_on_hybrid_shutdown"),
    (0x800000, "persist_on_hybrid_shutdown"),
    (0x1000000, "paged_memory"),
    (0x2000000, "system_logger"),
    (MODE_COMPRESSED, "compressed"),
    (0x8000000, "independent_session"),
    (MODE_NO_PER_PROCESSOR_BUFFERING, "no_per_processor_buffering"),
    (0x20000000, "blocking"),
    (0x80000000, "triage_dump"),
];
/// Buffers behind the first are compressed.
pub const MODE_COMPRESSED: u32 = 0x0400_0000;
/// The file is overwritten from its second buffer on when it is full.
pub const MODE_CIRCULAR: u32 = 0x2;
/// The session goes on in a new file when one is full (`EVENT_TRACE_FILE_MODE_NEW_FILE`).
pub const MODE_NEW_FILE: u32 = 0x8;
/// Sessions are appended to the file.
pub const MODE_APPEND: u32 = 0x4;
/// All processors share buffers.
pub const MODE_NO_PER_PROCESSOR_BUFFERING: u32 = 0x1000_0000;
