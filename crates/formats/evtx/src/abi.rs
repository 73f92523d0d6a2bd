//! The file format: constants and offsets, and nothing else.
//!
//! Sources: [MS-EVEN6] 2.2.12 to 2.2.18 and 3.1.4.7 (tokens, value types, templates); libevtx, "Windows XML Event Log (EVTX)
//! format" (file, chunk and record headers), which agrees with every file of the corpus.

/// The file header, at the beginning of the file.
pub mod file {
    /// `Magic`.
    pub const MAGIC: &[u8; 8] = b"ElfFile\0";
    /// Bytes of the header that have a meaning.
    pub const SIZE: usize = 128;
    /// `FirstChunkNumber`: the oldest chunk (u64).
    #[expect(dead_code, reason = "part of the layout; chunks say themselves which is first")]
    pub const FIRST_CHUNK: usize = 8;
    /// `LastChunkNumber` (u64).
    #[expect(dead_code, reason = "part of the layout; chunks say themselves which is last")]
    pub const LAST_CHUNK: usize = 16;
    /// `NextRecordIdentifier` (u64).
    pub const NEXT_RECORD: usize = 24;
    /// `MinorVersion`, `MajorVersion` (u16 each).
    pub const MINOR_VERSION: usize = 36;
    /// See [`MINOR_VERSION`].
    pub const MAJOR_VERSION: usize = 38;
    /// `HeaderBlockSize` (u16): where the first chunk begins.
    pub const HEADER_BLOCK_SIZE: usize = 40;
    /// `NumberOfChunks` (u16).
    pub const CHUNKS: usize = 42;
    /// `FileFlags` (u32).
    pub const FLAGS: usize = 120;
    /// `Checksum` (u32) of the first 120 bytes.
    pub const CHECKSUM: usize = 124;
    /// The log was not closed.
    pub const FLAG_DIRTY: u32 = 1;
    /// The log is full.
    pub const FLAG_FULL: u32 = 2;
    /// There are no checksums.
    pub const FLAG_NO_CRC32: u32 = 4;
    /// What Windows writes as `HeaderBlockSize`.
    pub const USUAL_BLOCK: u64 = 4096;
}

/// A chunk: 64 KiB with names, templates and records of its own.
pub mod chunk {
    /// `Magic`.
    pub const MAGIC: &[u8; 8] = b"ElfChnk\0";
    /// Size of a chunk.
    pub const SIZE: usize = 65536;
    /// Size of its header, behind which records begin.
    pub const HEADER: usize = 512;
    /// `FirstEventRecordIdentifier` (u64).
    pub const FIRST_RECORD: usize = 24;
    /// `LastEventRecordIdentifier` (u64).
    pub const LAST_RECORD: usize = 32;
    /// `FreeSpaceOffset` (u32): where live records end.
    pub const FREE_SPACE: usize = 48;
    /// `EventRecordsChecksum` (u32).
    pub const RECORDS_CHECKSUM: usize = 52;
    /// `Flags` (u32).
    pub const FLAGS: usize = 120;
    /// `Checksum` (u32) of bytes 0 to 120 and 128 to 512.
    pub const CHECKSUM: usize = 124;
    /// There are no checksums.
    pub const FLAG_NO_CRC32: u32 = 4;
}

/// A record of an event.
pub mod record {
    /// `Magic`.
    pub const MAGIC: &[u8; 4] = b"**\0\0";
    /// Bytes before the binary XML: magic, size (u32), id (u64), FILETIME (u64).
    pub const HEADER: usize = 24;
    /// `EventRecordIdentifier` (u64).
    pub const ID: usize = 8;
    /// `WrittenTime`, a FILETIME (u64).
    pub const TIME: usize = 16;
    /// A copy of the size stands at the end.
    pub const TRAILER: usize = 4;
}

/// Tokens of binary XML ([MS-EVEN6] 2.2.12). `MORE` is or-ed to some.
pub mod token {
    /// `EOFToken`.
    pub const EOF: u8 = 0x00;
    /// `OpenStartElementToken`; with `MORE`, attributes follow.
    pub const OPEN_START_ELEMENT: u8 = 0x01;
    /// `CloseStartElementToken`.
    pub const CLOSE_START_ELEMENT: u8 = 0x02;
    /// `CloseEmptyElementToken`.
    pub const CLOSE_EMPTY_ELEMENT: u8 = 0x03;
    /// `EndElementToken`.
    pub const END_ELEMENT: u8 = 0x04;
    /// `ValueTextToken`.
    pub const VALUE: u8 = 0x05;
    /// `AttributeToken`.
    pub const ATTRIBUTE: u8 = 0x06;
    /// `CDATASectionToken`.
    pub const CDATA: u8 = 0x07;
    /// `CharRefToken`.
    pub const CHAR_REF: u8 = 0x08;
    /// `EntityRefToken`.
    pub const ENTITY_REF: u8 = 0x09;
    /// `PITargetToken`.
    pub const PI_TARGET: u8 = 0x0A;
    /// `PIDataToken`.
    pub const PI_DATA: u8 = 0x0B;
    /// `TemplateInstanceToken`.
    pub const TEMPLATE_INSTANCE: u8 = 0x0C;
    /// `NormalSubstitutionToken`.
    pub const SUBSTITUTION: u8 = 0x0D;
    /// `OptionalSubstitutionToken`.
    pub const OPTIONAL_SUBSTITUTION: u8 = 0x0E;
    /// `FragmentHeaderToken`.
    pub const FRAGMENT_HEADER: u8 = 0x0F;
    /// Set where more follows.
    pub const MORE: u8 = 0x40;
}

/// Types of values ([MS-EVEN6] 2.2.18).
pub mod value {
    /// No value.
    pub const NULL: u8 = 0x00;
    /// UTF-16.
    pub const STRING: u8 = 0x01;
    /// Code page of the machine.
    pub const ANSI_STRING: u8 = 0x02;
    /// `Int8` to `UInt64`.
    pub const INT8: u8 = 0x03;
    /// See [`INT8`].
    pub const UINT8: u8 = 0x04;
    /// See [`INT8`].
    pub const INT16: u8 = 0x05;
    /// See [`INT8`].
    pub const UINT16: u8 = 0x06;
    /// See [`INT8`].
    pub const INT32: u8 = 0x07;
    /// See [`INT8`].
    pub const UINT32: u8 = 0x08;
    /// See [`INT8`].
    pub const INT64: u8 = 0x09;
    /// See [`INT8`].
    pub const UINT64: u8 = 0x0A;
    /// `Real32`.
    pub const REAL32: u8 = 0x0B;
    /// `Real64`.
    pub const REAL64: u8 = 0x0C;
    /// 32 bits.
    pub const BOOL: u8 = 0x0D;
    /// Bytes.
    pub const BINARY: u8 = 0x0E;
    /// 16 bytes.
    pub const GUID: u8 = 0x0F;
    /// A pointer's size.
    pub const SIZE_T: u8 = 0x10;
    /// 100 ns since 1601.
    pub const FILE_TIME: u8 = 0x11;
    /// `SYSTEMTIME`.
    pub const SYS_TIME: u8 = 0x12;
    /// Security identifier.
    pub const SID: u8 = 0x13;
    /// Shown in hexadecimal.
    pub const HEX_INT32: u8 = 0x14;
    /// Shown in hexadecimal.
    pub const HEX_INT64: u8 = 0x15;
    /// Binary XML.
    pub const BIN_XML: u8 = 0x21;
    /// Or-ed to the type of the items of an array.
    pub const ARRAY: u8 = 0x80;
}
