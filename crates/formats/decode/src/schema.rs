//! The one form in which the layout of an event payload is described, whatever it came from.

use etwhy_base::Guid;
use std::sync::Arc;

/// Which source described an event; the column `event_type.decoded_by`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DecodedBy {
    /// Kernel layouts that ship with the program.
    Kernel,
    /// `TRACE_EVENT_INFO` embedded in the trace.
    Metadata,
    /// The record's own TraceLogging item.
    TraceLogging,
    /// A manifest: embedded by EventSource, shipped with the program, or given by the user.
    Manifest,
    /// A classic MOF class.
    Mof,
    /// A TMF file given by the user.
    Wpp,
    /// Nothing: shown raw.
    None,
}

impl DecodedBy {
    /// The word shown in tables.
    pub fn name(self) -> &'static str {
        match self {
            DecodedBy::Kernel => "kernel",
            DecodedBy::Metadata => "metadata",
            DecodedBy::TraceLogging => "tracelogging",
            DecodedBy::Manifest => "manifest",
            DecodedBy::Mof => "mof",
            DecodedBy::Wpp => "wpp",
            DecodedBy::None => "none",
        }
    }
}

/// Description of one event type.
#[derive(Clone, Debug)]
pub struct EventSchema {
    /// Provider GUID (class GUID for kernel and classic events).
    pub guid: Guid,
    /// Provider name, e.g. `Microsoft-Windows-DotNETRuntime`; `Windows Kernel` for kernel groups.
    pub provider: Arc<str>,
    /// Event name: the manifest's symbol or `Task/Opcode`, e.g. `SampledProfile`, `GC/Start`.
    pub name: Arc<str>,
    /// Task name; for kernel events the group's name (`PerfInfo`, `DiskIo`, ...). May be empty.
    pub task: Arc<str>,
    /// Opcode name. May be empty.
    pub opcode: Arc<str>,
    /// Message template with `%1` inserts; empty if there is none.
    pub message: Arc<str>,
    /// Who described it.
    pub decoded_by: DecodedBy,
    /// True when this layout was compared with real traces, false when it rests on documentation only.
    pub verified: bool,
    /// Fields in the order of the payload; members of structs are nested.
    pub fields: Vec<Field>,
}

/// One field.
#[derive(Clone, Debug)]
pub struct Field {
    /// Name as the source has it.
    pub name: Arc<str>,
    /// What the bytes are.
    pub in_type: InType,
    /// How to show them; TDH_OUTTYPE_* number, 0 for the type's default.
    pub out_type: u16,
    /// Length in bytes (characters for strings).
    pub length: Length,
    /// How many of them.
    pub count: Count,
    /// Names of values.
    pub map: Option<Arc<ValueMap>>,
    /// Members, for [`InType::Struct`].
    pub members: Vec<Field>,
    /// True when the payload may end in front of this field: newer builds append fields to a layout
    /// without a new version number. Reading stops there without an error.
    pub optional: bool,
}

impl Field {
    /// A plain field of a type's natural length.
    pub fn plain(name: &str, in_type: InType) -> Field {
        Field {
            name: name.into(),
            in_type,
            out_type: 0,
            length: Length::Natural,
            count: Count::One,
            map: None,
            members: Vec::new(),
            optional: false,
        }
    }
}

/// How long a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// What its type says: fixed width, nul-ended, or prefixed.
    Natural,
    /// Fixed: bytes, or characters for strings.
    Fixed(u32),
    /// The value of an earlier field (index in the same struct level).
    Field(u16),
}

/// How many elements a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// One value, not an array.
    One,
    /// A fixed number.
    Fixed(u32),
    /// The value of an earlier field (index in the same struct level).
    Field(u16),
    /// A u16 in the data in front of the elements (TraceLogging).
    Prefixed,
    /// As many as fit into the rest of the payload (stack frames).
    Rest,
}

/// The types that payloads are made of: TDH_INTYPE_* and what the kernel's MOF classes add.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InType {
    /// UTF-16, nul-ended or of given length.
    UnicodeString,
    /// 8-bit, nul-ended or of given length.
    AnsiString,
    /// i8.
    Int8,
    /// u8.
    UInt8,
    /// i16.
    Int16,
    /// u16.
    UInt16,
    /// i32.
    Int32,
    /// u32.
    UInt32,
    /// i64.
    Int64,
    /// u64.
    UInt64,
    /// f32.
    Float,
    /// f64.
    Double,
    /// 32-bit boolean (8-bit when the source says length 1).
    Boolean,
    /// Bytes of given length.
    Binary,
    /// GUID.
    Guid,
    /// Pointer of the record's size.
    Pointer,
    /// 100 ns since 1601, UTC.
    FileTime,
    /// SYSTEMTIME, 16 bytes.
    SystemTime,
    /// A bare SID: length follows from its second byte.
    Sid,
    /// u32 shown as hex.
    HexInt32,
    /// u64 shown as hex.
    HexInt64,
    /// u16 byte count, then UTF-16.
    CountedString,
    /// u16 byte count, then 8-bit characters.
    CountedAnsiString,
    /// u16 byte count, then bytes.
    CountedBinary,
    /// Members only.
    Struct,
    /// u16 byte count big-endian, then UTF-16.
    ReversedCountedString,
    /// u16 byte count big-endian, then 8-bit characters.
    ReversedCountedAnsiString,
    /// UTF-16 to the end of the payload.
    NonNullTerminatedString,
    /// 8-bit characters to the end of the payload.
    NonNullTerminatedAnsiString,
    /// One UTF-16 unit.
    UnicodeChar,
    /// One 8-bit character.
    AnsiChar,
    /// size_t of the record's pointer size.
    SizeT,
    /// u32 byte count, then bytes.
    HexDump,
    /// TOKEN_USER of two pointers, then a SID; only 4 bytes when the first u32 is 0.
    WbemSid,
    /// u16 in network order.
    Port,
    /// IPv4 address in network order.
    IPv4,
    /// IPv6 address in network order.
    IPv6,
}

/// Names of values or bits.
#[derive(Clone, Debug, Default)]
pub struct ValueMap {
    /// The map's name in its source.
    pub name: Arc<str>,
    /// True: each entry names a bit mask; false: a value.
    pub bitmap: bool,
    /// (value, name), in the order of the source.
    pub entries: Vec<(u32, Arc<str>)>,
}

/// Fields with the members of structs.
pub(crate) fn field_count(fields: &[Field]) -> usize {
    fields.iter().map(|f| 1 + field_count(&f.members)).sum()
}
