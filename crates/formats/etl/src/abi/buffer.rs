//! `WMI_BUFFER_HEADER`: 72 bytes at the start of every buffer.

/// Length of the buffer header; the first record follows.
pub const LEN: usize = 0x48;

/// u32: bytes this buffer takes on disk, header included.
pub const BUFFER_SIZE: usize = 0x00;
/// u32: bytes used. 0 in the first buffer of Windows 7 files; the unpacked size of compressed buffers.
pub const SAVED_OFFSET: usize = 0x04;
/// i64: flush time, in ticks of the session clock for raw files.
pub const TIME_STAMP: usize = 0x10;
/// i64: counts from 0 in buffer 0, over all processors; restarts in an appended session.
pub const SEQUENCE_NUMBER: usize = 0x18;
/// u16: processor index; before Windows 8 a byte, followed by the alignment.
pub const PROCESSOR_INDEX: usize = 0x28;
/// u16: session id.
pub const LOGGER_ID: usize = 0x2A;
/// u32: buffer state. Its low 16 bits hold the compression format in buffer 0 of compressed files.
pub const STATE: usize = 0x2C;
/// u32: end of valid data, header included. The field to trust.
pub const OFFSET: usize = 0x30;
/// u16: see `FLAG_*`.
pub const BUFFER_FLAG: usize = 0x34;
/// u16: see `TYPE_*`.
pub const BUFFER_TYPE: usize = 0x36;

/// Set on the first and the last buffer of a session.
pub const FLAG_FLUSH_MARKER: u16 = 0x01;
/// Events were lost while this buffer was filled.
pub const FLAG_EVENTS_LOST: u16 = 0x02;
/// A buffer was lost before this one.
pub const FLAG_BUFFER_LOST: u16 = 0x04;
/// `PROCESSOR_INDEX` is a 16-bit number.
pub const FLAG_PROCESSOR_INDEX: u16 = 0x20;
/// Everything behind the header is compressed.
pub const FLAG_COMPRESSED: u16 = 0x40;
/// Bits of the 16-bit processor index.
pub const PROCESSOR_INDEX_MASK: u16 = 0x7FF;

/// Ordinary events.
pub const TYPE_GENERIC: u16 = 0;
/// Rundown events.
pub const TYPE_RUNDOWN: u16 = 1;
/// Compact context switches.
pub const TYPE_CTX_SWAP: u16 = 2;
/// Reference time.
pub const TYPE_REFTIME: u16 = 3;
/// The first buffer of a session.
pub const TYPE_HEADER: u16 = 4;
/// Batched events.
pub const TYPE_BATCHED: u16 = 5;
/// Empty marker.
pub const TYPE_EMPTY_MARKER: u16 = 6;
/// Debug info.
pub const TYPE_DBG_INFO: u16 = 7;

/// Largest buffer that Windows writes (16 MiB since Windows 8). Anything above is damage.
pub const MAX_SIZE: u32 = 16 * 1024 * 1024;

/// `COMPRESSION_FORMAT_LZNT1` of `RtlDecompressBuffer`.
pub const COMPRESSION_LZNT1: u16 = 2;
/// `COMPRESSION_FORMAT_XPRESS` (plain LZ77).
pub const COMPRESSION_XPRESS: u16 = 3;
/// `COMPRESSION_FORMAT_XPRESS_HUFF`.
pub const COMPRESSION_XPRESS_HUFF: u16 = 4;
