//! Values of fixed width, with the out-type's meaning applied.

use crate::schema::{Field, InType, Length};
use crate::text::Text;
use crate::value::Value;
use etwhy_base::Bytes;

/// Out-types (`TDH_OUTTYPE_*`) that change the meaning of the bits.
pub(crate) mod out {
    pub const STRING: u16 = 1;
    pub const DATETIME: u16 = 2;
    /// BYTE to DOUBLE say what the in-type says already.
    pub const PLAIN: std::ops::RangeInclusive<u16> = 3..=12;
    pub const BOOLEAN: u16 = 13;
    pub const HEX: std::ops::RangeInclusive<u16> = 16..=19;
    pub const PORT: u16 = 22;
    pub const IPV4: u16 = 23;
    pub const IPV6: u16 = 24;
    pub const SOCKADDR: u16 = 25;
    pub const WIN32ERROR: u16 = 30;
    pub const NTSTATUS: u16 = 31;
    pub const HRESULT: u16 = 32;
    pub const CODE_POINTER: u16 = 37;
    pub const DATETIME_UTC: u16 = 38;
}

/// Bytes that a single value of this type always takes; `None` if that depends on the data.
#[inline]
pub(crate) fn fixed_len(in_type: InType, pointer_size: usize) -> Option<usize> {
    use InType::*;
    Some(match in_type {
        Int8 | UInt8 | AnsiChar => 1,
        Int16 | UInt16 | UnicodeChar | Port => 2,
        Int32 | UInt32 | Float | Boolean | HexInt32 | IPv4 => 4,
        Int64 | UInt64 | Double | HexInt64 | FileTime => 8,
        Guid | SystemTime | IPv6 => 16,
        Pointer | SizeT => pointer_size,
        _ => return None,
    })
}

/// True for the booleans of one byte; those whose source says no length have four.
#[inline]
pub(crate) fn is_short_bool(field: &Field) -> bool {
    field.in_type == InType::Boolean && field.length == Length::Fixed(1)
}

/// Who takes a value as soon as it is made. Moving values around costs more than reading them, so each arm of
/// [`fixed`] hands over its own.
pub(crate) trait Sink<'a> {
    /// What becomes of the value.
    type Out;
    /// Takes a value that stood in `width` bytes.
    fn put(self, value: Value<'a>, width: usize) -> Self::Out;
}

/// The sink that gives the value back.
struct Plain;

impl<'a> Sink<'a> for Plain {
    type Out = Value<'a>;
    #[inline(always)]
    fn put(self, value: Value<'a>, _: usize) -> Value<'a> {
        value
    }
}

/// Reads the value at the front of `rest`; `None` when `rest` is too short or the type has no fixed width.
/// Lengths that sources give are ignored: those of pointers are of their own machine, the record's pointer size
/// counts.
#[inline(always)]
pub(crate) fn fixed<'a, S: Sink<'a>>(
    in_type: InType,
    rest: &'a [u8],
    pointer_size: usize,
    short_bool: bool,
    sink: S,
) -> Option<S::Out> {
    use InType::*;
    Some(match in_type {
        Int8 => sink.put(Value::I8(rest.u8_at(0)? as i8), 1),
        UInt8 => sink.put(Value::U8(rest.u8_at(0)?), 1),
        Int16 => sink.put(Value::I16(rest.u16_at(0)? as i16), 2),
        UInt16 => sink.put(Value::U16(rest.u16_at(0)?), 2),
        Int32 => sink.put(Value::I32(rest.u32_at(0)? as i32), 4),
        UInt32 => sink.put(Value::U32(rest.u32_at(0)?), 4),
        Int64 => sink.put(Value::I64(rest.i64_at(0)?), 8),
        UInt64 => sink.put(Value::U64(rest.u64_at(0)?), 8),
        Float => sink.put(Value::F32(f32::from_bits(rest.u32_at(0)?)), 4),
        Double => sink.put(Value::F64(f64::from_bits(rest.u64_at(0)?)), 8),
        Boolean if short_bool => sink.put(Value::Bool(rest.u8_at(0)? != 0), 1),
        Boolean => sink.put(Value::Bool(rest.u32_at(0)? != 0), 4),
        HexInt32 => sink.put(Value::Hex(u64::from(rest.u32_at(0)?)), 4),
        HexInt64 => sink.put(Value::Hex(rest.u64_at(0)?), 8),
        Guid => sink.put(Value::Guid(rest.guid_at(0)?), 16),
        FileTime => sink.put(Value::FileTime(rest.i64_at(0)?), 8),
        SystemTime => sink.put(system_time(rest.array(0)?), 16),
        Pointer => sink.put(Value::Pointer(rest.ptr_at(0, pointer_size)?), pointer_size),
        SizeT => sink.put(Value::U64(rest.ptr_at(0, pointer_size)?), pointer_size),
        UnicodeChar => sink.put(Value::Str(Text::utf16(rest.get(..2)?)), 2),
        AnsiChar => sink.put(Value::Str(Text::ansi(rest.get(..1)?)), 1),
        Port => sink.put(Value::Port(rest.u16_at(0)?.swap_bytes()), 2),
        IPv4 => sink.put(Value::IPv4(rest.array(0)?), 4),
        IPv6 => sink.put(Value::IPv6(rest.array(0)?), 16),
        _ => return None,
    })
}

/// The value in `bytes` with its out-type's meaning.
#[inline]
pub(crate) fn number<'a>(
    in_type: InType,
    out_type: u16,
    bytes: &'a [u8],
    pointer_size: usize,
    short_bool: bool,
) -> Option<Value<'a>> {
    let mut value = fixed(in_type, bytes, pointer_size, short_bool, Plain)?;
    give_meaning(&mut value, out_type);
    Some(value)
}

fn system_time(bytes: [u8; 16]) -> Value<'static> {
    let mut parts = [0u16; 8];
    for (part, bytes) in parts.iter_mut().zip(bytes.as_chunks::<2>().0) {
        *part = u16::from_le_bytes(*bytes);
    }
    Value::SystemTime(parts)
}

/// Gives a number the meaning that its out-type says. Characters are not numbers, see [`character`].
#[inline]
pub(crate) fn give_meaning(value: &mut Value<'_>, out_type: u16) {
    if out_type != 0 && !out::PLAIN.contains(&out_type) {
        change(value, out_type);
    }
}

fn change(value: &mut Value<'_>, out_type: u16) {
    use out::*;
    let hex = HEX.contains(&out_type);
    match (&*value, out_type) {
        (&Value::U8(v), _) if hex => *value = Value::Hex(u64::from(v)),
        (&Value::I8(v), _) if hex => *value = Value::Hex(u64::from(v as u8)),
        (&Value::U16(v), _) if hex => *value = Value::Hex(u64::from(v)),
        (&Value::I16(v), _) if hex => *value = Value::Hex(u64::from(v as u16)),
        (&Value::U32(v), _) if hex => *value = Value::Hex(u64::from(v)),
        (&Value::I32(v), _) if hex => *value = Value::Hex(u64::from(v as u32)),
        (&Value::U64(v), _) if hex => *value = Value::Hex(v),
        (&Value::I64(v), _) if hex => *value = Value::Hex(v as u64),
        (&Value::U16(v), PORT) => *value = Value::Port(v.swap_bytes()),
        (&Value::U32(v), IPV4) => *value = Value::IPv4(v.to_le_bytes()),
        (&Value::I32(v), IPV4) => *value = Value::IPv4(v.to_le_bytes()),
        (&Value::Hex(v), IPV4) => *value = Value::IPv4((v as u32).to_le_bytes()),
        (&Value::U64(v), DATETIME | DATETIME_UTC) => *value = Value::FileTime(v as i64),
        (&Value::I64(v), DATETIME | DATETIME_UTC) => *value = Value::FileTime(v),
        (&Value::U8(v), BOOLEAN) => *value = Value::Bool(v != 0),
        (&Value::I8(v), BOOLEAN) => *value = Value::Bool(v != 0),
        (&Value::U32(v), BOOLEAN) => *value = Value::Bool(v != 0),
        (&Value::I32(v), BOOLEAN) => *value = Value::Bool(v != 0),
        (&Value::U32(v), NTSTATUS | HRESULT) => *value = Value::Status(v),
        (&Value::I32(v), NTSTATUS | HRESULT) => *value = Value::Status(v as u32),
        (&Value::Hex(v), NTSTATUS | HRESULT) => *value = Value::Status(v as u32),
        (&Value::Hex(v), WIN32ERROR) => *value = Value::U32(v as u32),
        (&(Value::U64(v) | Value::Hex(v)), CODE_POINTER) => *value = Value::Pointer(v),
        _ => {}
    }
}

/// A number that its out-type makes a character; `None` for all other fields.
#[inline]
pub(crate) fn character<'a>(field: &Field, rest: &'a [u8]) -> Option<Value<'a>> {
    if field.out_type != out::STRING {
        return None;
    }
    Some(Value::Str(match field.in_type {
        InType::UInt16 => Text::utf16(rest.get(..2)?),
        InType::UInt8 | InType::Int8 => Text::ansi(rest.get(..1)?),
        _ => return None,
    }))
}
