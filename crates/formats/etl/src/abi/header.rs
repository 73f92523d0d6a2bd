//! Record headers: `SYSTEM_TRACE_HEADER`, `PERFINFO_TRACE_HEADER`, `EVENT_TRACE_HEADER`,
//! `EVENT_INSTANCE_GUID_HEADER`, `EVENT_HEADER`, `MESSAGE_TRACE_HEADER`.
//!
//! The first u32 of a record tells its kind: flags in the high byte, header type in the byte below.

/// High byte of records whose layout follows from the header type.
pub const FLAGS_TRACE_HEADER: u8 = 0xC0;
/// High byte of WPP messages.
pub const FLAGS_MESSAGE: u8 = 0x90;
/// Largest record: its size is a u16.
pub const MAX_RECORD: usize = 0xFFFF;

/// Bytes of `SYSTEM_TRACE_HEADER`.
pub const SYSTEM_LEN: usize = 32;
/// Bytes of the compact form (no processor times).
pub const COMPACT_LEN: usize = 24;
/// Bytes of `PERFINFO_TRACE_HEADER`.
pub const PERFINFO_LEN: usize = 16;
/// Bytes of `EVENT_TRACE_HEADER`.
pub const FULL_LEN: usize = 48;
/// Bytes of `EVENT_INSTANCE_GUID_HEADER`.
pub const INSTANCE_LEN: usize = 72;
/// Bytes of `EVENT_HEADER`.
pub const EVENT_LEN: usize = 80;
/// Bytes of the fixed part of `MESSAGE_TRACE_HEADER`.
pub const MESSAGE_LEN: usize = 8;

/// u16 in kernel headers: payload version and flags.
pub const SYSTEM_VERSION: usize = 0;
/// u16 in kernel headers: record size.
pub const SYSTEM_SIZE: usize = 4;
/// u16 in kernel headers: type (low byte) and group (high byte).
pub const SYSTEM_HOOK: usize = 6;
/// i64 in `PERFINFO_TRACE_HEADER`: timestamp.
pub const PERFINFO_TIME: usize = 8;
/// u32 KernelTime in `SYSTEM_TRACE_HEADER`, clock ticks.
pub const SYSTEM_KERNEL_TIME: usize = 0x18;
/// u32 UserTime in `SYSTEM_TRACE_HEADER`, clock ticks.
pub const SYSTEM_USER_TIME: usize = 0x1C;

/// Version bits that are the version.
pub const SYSTEM_VERSION_MASK: u16 = 0x00FF;
/// One u64 PEBS index follows the header.
pub const SYSTEM_VERSION_PEBS: u16 = 0x8000;
/// Number of u64 PMC counters that follow the header.
pub const SYSTEM_VERSION_PMC_COUNT: u16 = 0x0700;
/// Shift of `SYSTEM_VERSION_PMC_COUNT`.
pub const SYSTEM_VERSION_PMC_SHIFT: u16 = 8;

/// u16: record size in all headers that carry a GUID, and in messages.
pub const GUID_SIZE: usize = 0;
/// u32: thread id in every header but `PERFINFO_TRACE_HEADER` and messages.
pub const COMMON_TID: usize = 8;
/// u32: process id, likewise.
pub const COMMON_PID: usize = 0xC;
/// i64: timestamp, likewise.
pub const COMMON_TIME: usize = 0x10;

/// u8 opcode in `EVENT_TRACE_HEADER`.
pub const FULL_TYPE: usize = 4;
/// u8 level in `EVENT_TRACE_HEADER`.
pub const FULL_LEVEL: usize = 5;
/// u16 version in `EVENT_TRACE_HEADER`.
pub const FULL_VERSION: usize = 6;
/// Class GUID in `EVENT_TRACE_HEADER`, provider GUID in `EVENT_HEADER`.
pub const FULL_GUID: usize = 0x18;

/// u16 Flags in `EVENT_HEADER`.
pub const EVENT_FLAGS: usize = 4;
/// u16 EventProperty.
pub const EVENT_PROPERTY: usize = 6;
/// u16 Id of the descriptor.
pub const EVENT_ID: usize = 0x28;
/// u8 Version of the descriptor.
pub const EVENT_VERSION: usize = 0x2A;
/// u8 Channel of the descriptor.
pub const EVENT_CHANNEL: usize = 0x2B;
/// u8 Level of the descriptor.
pub const EVENT_LEVEL: usize = 0x2C;
/// u8 Opcode of the descriptor.
pub const EVENT_OPCODE: usize = 0x2D;
/// u16 Task of the descriptor.
pub const EVENT_TASK: usize = 0x2E;
/// u64 Keyword of the descriptor.
pub const EVENT_KEYWORD: usize = 0x30;
/// GUID ActivityId.
pub const EVENT_ACTIVITY: usize = 0x40;

/// Extended items follow the header.
pub const EVENT_FLAG_EXTENDED_INFO: u16 = 0x01;
/// The payload is one UTF-16 string (`EventWriteString`).
pub const EVENT_FLAG_STRING_ONLY: u16 = 0x04;

/// Channel that marks TraceLogging events.
pub const CHANNEL_TRACELOGGING: u8 = 11;
/// Id, task (0xFFFE) and opcode (0xFE) of in-band EventSource manifests.
pub const MANIFEST_EVENT_ID: u16 = 0xFFFE;

/// u16 message number of `MESSAGE_TRACE_HEADER`.
pub const MESSAGE_NUMBER: usize = 4;
/// u16 OptionFlags.
pub const MESSAGE_OPTIONS: usize = 6;
/// A u32 sequence number follows.
pub const MESSAGE_FLAG_SEQUENCE: u16 = 0x01;
/// A GUID follows.
pub const MESSAGE_FLAG_GUID: u16 = 0x02;
/// A u32 component id follows (instead of the GUID).
pub const MESSAGE_FLAG_COMPONENTID: u16 = 0x04;
/// An i64 timestamp follows.
pub const MESSAGE_FLAG_TIMESTAMP: u16 = 0x08;
/// u32 thread id and u32 process id follow.
pub const MESSAGE_FLAG_SYSTEMINFO: u16 = 0x20;
/// Arguments hold 32-bit pointers.
pub const MESSAGE_FLAG_32BIT_POINTER: u16 = 0x40;
/// Arguments hold 64-bit pointers.
pub const MESSAGE_FLAG_64BIT_POINTER: u16 = 0x80;

/// The optional parts of a message header in their order, with their lengths.
pub const MESSAGE_PARTS: [(u16, usize); 5] = [
    (MESSAGE_FLAG_SEQUENCE, 4),
    (MESSAGE_FLAG_GUID, 16),
    (MESSAGE_FLAG_COMPONENTID, 4),
    (MESSAGE_FLAG_TIMESTAMP, 8),
    (MESSAGE_FLAG_SYSTEMINFO, 8),
];
