//! The one reader: payload bytes and a schema in, values out.
//!
//! Reading is lenient, because payloads come from other people's machines: strings without a nul run to
//! the end, a payload that ends early gives what could be read, and what is left over is reported. The
//! work is bounded by the payload's size and by [`MAX_VALUES`], never by a count in the data.

use crate::schema::{Count, EventSchema, Field, InType, Length};
use crate::value::{Value, text8, utf16};
use etwhy_etl::Bytes;
use std::borrow::Cow;

/// Deepest nesting of structs that is read.
pub const MAX_DEPTH: usize = 16;
/// Most values that are read out of one payload. A payload has at most 64 KiB, so honest ones stay
/// below; structs of empty members could otherwise multiply.
pub const MAX_VALUES: usize = 200_000;

/// A decoded payload.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded<'a> {
    /// Values of the schema's fields in their order; fewer than fields when the payload ended early.
    pub values: Vec<Value<'a>>,
    /// True when the payload ended before its fields did (optional fields excepted).
    pub truncated: bool,
    /// Bytes behind the last field.
    pub rest: &'a [u8],
}

/// Reads all fields of a payload.
pub fn read<'a>(schema: &EventSchema, payload: &'a [u8], pointer_size: usize) -> Decoded<'a> {
    let mut cursor = Cursor::new(payload, pointer_size);
    let (values, complete) = cursor.level(&schema.fields, 0);
    Decoded { values, truncated: !complete, rest: payload.get(cursor.at..).unwrap_or(&[]) }
}

impl<'a> Decoded<'a> {
    /// The value of the first field of that name.
    pub fn get<'s>(&'s self, schema: &EventSchema, name: &str) -> Option<&'s Value<'a>> {
        let at = schema.fields.iter().position(|field| &*field.name == name)?;
        self.values.get(at)
    }
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

/// Out-types (`TDH_OUTTYPE_*`) that change the meaning of the bits.
pub(crate) mod out {
    pub const STRING: u16 = 1;
    pub const DATETIME: u16 = 2;
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

/// A place in a payload.
pub(crate) struct Cursor<'a> {
    data: &'a [u8],
    /// Offset of the next byte.
    pub at: usize,
    pointer_size: usize,
    budget: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(data: &'a [u8], pointer_size: usize) -> Cursor<'a> {
        Cursor { data, at: 0, pointer_size, budget: MAX_VALUES }
    }

    pub fn left(&self) -> usize {
        self.data.len().saturating_sub(self.at)
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(len)?;
        let bytes = self.data.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    /// All fields of one struct level; false when the data ended early.
    fn level(&mut self, fields: &[Field], depth: usize) -> (Vec<Value<'a>>, bool) {
        let mut values: Vec<Value<'a>> = Vec::with_capacity(fields.len().min(self.left() + 1));
        for field in fields {
            if self.left() == 0 && field.optional {
                return (values, true);
            }
            let refers = |i: u16| values.get(usize::from(i)).and_then(Value::as_u64);
            let (value, complete) = self.field(field, &refers, depth);
            if let Some(value) = value {
                values.push(value);
            }
            if !complete {
                return (values, false);
            }
        }
        (values, true)
    }

    /// One field, be it an array or not. `refers` gives the value of an earlier field of its level.
    pub fn field(
        &mut self,
        field: &Field,
        refers: &dyn Fn(u16) -> Option<u64>,
        depth: usize,
    ) -> (Option<Value<'a>>, bool) {
        let Some(count) = self.count(field, refers) else { return (None, false) };
        let Some(length) = resolve_length(field, refers) else { return (None, false) };
        match count {
            None => match self.one(field, length, depth) {
                (Some(value), complete) => (Some(value), complete),
                (None, _) => (None, false),
            },
            Some(count) => self.elements(field, count, length, depth),
        }
    }

    /// Number of elements; the inner `None` is "not an array".
    fn count(&mut self, field: &Field, refers: &dyn Fn(u16) -> Option<u64>) -> Option<Option<usize>> {
        Some(match field.count {
            Count::One => None,
            Count::Fixed(n) => Some(usize::try_from(n).ok()?),
            Count::Field(i) => Some(usize::try_from(refers(i)?).unwrap_or(usize::MAX)),
            Count::Prefixed => {
                let bytes = self.take(2)?;
                Some(usize::from(bytes.u16_at(0)?))
            }
            Count::Rest => Some(usize::MAX),
        })
    }

    fn elements(
        &mut self,
        field: &Field,
        count: usize,
        length: Option<usize>,
        depth: usize,
    ) -> (Option<Value<'a>>, bool) {
        if let Some(value) = self.characters(field, count) {
            return value;
        }
        let to_the_end = field.count == Count::Rest;
        let mut values = Vec::new();
        let mut complete = true;
        for _ in 0..count {
            let start = self.at;
            if to_the_end && self.left() == 0 {
                break;
            }
            let (value, whole) = self.one(field, length, depth);
            if let Some(value) = value {
                values.push(value);
            }
            // An element that takes no bytes would be repeated for free as often as the count says.
            if !whole || self.at == start {
                complete = to_the_end || whole;
                if to_the_end && !whole {
                    self.at = start;
                }
                break;
            }
        }
        (Some(Value::Array(values)), complete)
    }

    /// An array of characters is a string.
    fn characters(&mut self, field: &Field, count: usize) -> Option<(Option<Value<'a>>, bool)> {
        let text = field.out_type == out::STRING;
        let width = match field.in_type {
            InType::UnicodeChar => 2,
            InType::UInt16 if text => 2,
            InType::AnsiChar => 1,
            InType::UInt8 | InType::Int8 if text => 1,
            _ => return None,
        };
        let wanted = count.saturating_mul(width);
        let got = wanted.min(self.left() / width * width);
        let bytes = self.take(got)?;
        let value = if width == 2 { wide_up_to_nul(bytes) } else { narrow_up_to_nul(bytes) };
        Some((Some(value), got == wanted || field.count == Count::Rest))
    }

    /// One element. `length` is the resolved length of the field, if it has one.
    fn one(&mut self, field: &Field, length: Option<usize>, depth: usize) -> (Option<Value<'a>>, bool) {
        if self.budget == 0 {
            return (None, false);
        }
        self.budget -= 1;
        if field.in_type == InType::Struct {
            if depth >= MAX_DEPTH {
                return (None, false);
            }
            let (values, complete) = self.level(&field.members, depth + 1);
            return (Some(Value::Struct(values)), complete);
        }
        match self.scalar(field, length) {
            Some(value) => (Some(value), true),
            None => (None, false),
        }
    }

    fn scalar(&mut self, field: &Field, length: Option<usize>) -> Option<Value<'a>> {
        let fixed = match (field.in_type, length) {
            // A boolean is 4 bytes unless its source says 1.
            (InType::Boolean, Some(1)) => Some(1),
            // Sources give lengths of pointers for their own machine; the record's size counts.
            (kind, _) => fixed_len(kind, self.pointer_size),
        };
        match fixed {
            Some(len) => {
                let bytes = self.take(len)?;
                number(field, bytes)
            }
            None => self.variable(field, length),
        }
    }

    /// Types whose length depends on the data.
    fn variable(&mut self, field: &Field, length: Option<usize>) -> Option<Value<'a>> {
        use InType::*;
        Some(match field.in_type {
            UnicodeString => match length {
                Some(chars) => self.sized_text(chars.checked_mul(2)?, 2, field)?,
                None => Value::Str(Cow::Owned(utf16(self.up_to_nul16()?))),
            },
            AnsiString => match length {
                Some(bytes) => self.sized_text(bytes, 1, field)?,
                None => Value::Str(text8(self.up_to_nul8()?)),
            },
            NonNullTerminatedString => wide_up_to_nul(self.all()),
            NonNullTerminatedAnsiString => narrow_up_to_nul(self.all()),
            CountedString => Value::Str(Cow::Owned(utf16(self.counted16(false)?))),
            ReversedCountedString => Value::Str(Cow::Owned(utf16(self.counted16(true)?))),
            CountedAnsiString => Value::Str(text8(self.counted16(false)?)),
            ReversedCountedAnsiString => Value::Str(text8(self.counted16(true)?)),
            CountedBinary => binary(field, self.counted16(false)?),
            HexDump => {
                let len = self.take(4)?.u32_at(0)?;
                Value::Bytes(self.take_up_to(usize::try_from(len).ok()?)?)
            }
            Binary => match length {
                Some(len) => binary(field, self.take_up_to(len)?),
                None if field.out_type == out::IPV6 => binary(field, self.take(16)?),
                None => binary(field, self.all()),
            },
            Sid => Value::Sid(self.sid()?),
            WbemSid => self.wbem_sid()?,
            _ => return None,
        })
    }

    fn all(&mut self) -> &'a [u8] {
        let bytes = self.data.get(self.at..).unwrap_or(&[]);
        self.at = self.data.len();
        bytes
    }

    /// `len` bytes, or fewer when the payload ends (but not none of several).
    fn take_up_to(&mut self, len: usize) -> Option<&'a [u8]> {
        let got = len.min(self.left());
        if got == 0 && len > 0 {
            return None;
        }
        self.take(got)
    }

    fn sized_text(&mut self, len: usize, width: usize, field: &Field) -> Option<Value<'a>> {
        let bytes = self.take_up_to(len)?;
        // A fixed-size buffer holds garbage behind its nul; a counted string may hold several parts.
        let counted = matches!(field.length, Length::Field(_));
        Some(match (width, counted) {
            (2, false) => wide_up_to_nul(bytes),
            (2, true) => {
                let text = utf16(bytes);
                Value::Str(Cow::Owned(text.trim_end_matches('\0').to_owned()))
            }
            (_, false) => narrow_up_to_nul(bytes),
            (_, true) => {
                let end = bytes.iter().rposition(|b| *b != 0).map_or(0, |i| i + 1);
                Value::Str(text8(bytes.get(..end).unwrap_or(bytes)))
            }
        })
    }

    /// UTF-16 up to a nul (which is consumed) or the end. `None` when nothing is left.
    fn up_to_nul16(&mut self) -> Option<&'a [u8]> {
        let rest = self.data.get(self.at..)?;
        if rest.is_empty() {
            return None;
        }
        match rest.as_chunks::<2>().0.iter().position(|unit| *unit == [0, 0]) {
            Some(units) => {
                self.at += units * 2 + 2;
                rest.get(..units * 2)
            }
            None => Some(self.all()),
        }
    }

    fn up_to_nul8(&mut self) -> Option<&'a [u8]> {
        let rest = self.data.get(self.at..)?;
        if rest.is_empty() {
            return None;
        }
        match rest.iter().position(|b| *b == 0) {
            Some(len) => {
                self.at += len + 1;
                rest.get(..len)
            }
            None => Some(self.all()),
        }
    }

    /// A u16 byte count and that many bytes.
    fn counted16(&mut self, big_endian: bool) -> Option<&'a [u8]> {
        let len = self.take(2)?.u16_at(0)?;
        let len = if big_endian { len.swap_bytes() } else { len };
        self.take_up_to(usize::from(len))
    }

    /// A SID: its second byte counts the sub-authorities.
    fn sid(&mut self) -> Option<&'a [u8]> {
        let subs = self.data.u8_at(self.at.checked_add(1)?)?;
        self.take(8 + 4 * usize::from(subs))
    }

    /// `TOKEN_USER` (pointer, u32 padded to pointer size) and a SID; 4 bytes of zero stand for none.
    fn wbem_sid(&mut self) -> Option<Value<'a>> {
        let token = 2 * self.pointer_size;
        let len = wbem_sid_len(self.data.get(self.at..)?, self.pointer_size)?;
        if len < token {
            self.take(len)?;
            return Some(Value::Sid(&[]));
        }
        self.take(token)?;
        self.sid().map(Value::Sid)
    }

    /// Moves behind a field without building its value; only scalars and simple arrays are cheap.
    pub fn skip(&mut self, field: &Field, refers: &dyn Fn(u16) -> Option<u64>) -> bool {
        if field.count == Count::One && field.in_type != InType::Boolean {
            if let Some(len) = fixed_len(field.in_type, self.pointer_size) {
                return self.take(len).is_some();
            }
            if field.length == Length::Natural {
                match field.in_type {
                    InType::UnicodeString => return self.up_to_nul16().is_some(),
                    InType::AnsiString => return self.up_to_nul8().is_some(),
                    _ => {}
                }
            }
        }
        self.field(field, refers, 0).1
    }
}

fn resolve_length(field: &Field, refers: &dyn Fn(u16) -> Option<u64>) -> Option<Option<usize>> {
    Some(match field.length {
        Length::Natural => None,
        Length::Fixed(n) => Some(usize::try_from(n).ok()?),
        Length::Field(i) => Some(usize::try_from(refers(i)?).unwrap_or(usize::MAX)),
    })
}

fn wide_up_to_nul(bytes: &[u8]) -> Value<'_> {
    let units = bytes.as_chunks::<2>().0;
    let end = units.iter().position(|unit| *unit == [0, 0]).unwrap_or(units.len());
    Value::Str(Cow::Owned(utf16(bytes.get(..end * 2).unwrap_or(bytes))))
}

fn narrow_up_to_nul(bytes: &[u8]) -> Value<'_> {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    Value::Str(text8(bytes.get(..end).unwrap_or(bytes)))
}

fn binary<'a>(field: &Field, bytes: &'a [u8]) -> Value<'a> {
    match field.out_type {
        out::IPV6 => bytes.array(0).map_or(Value::Bytes(bytes), Value::IPv6),
        out::SOCKADDR => Value::SockAddr(bytes),
        _ => Value::Bytes(bytes),
    }
}

/// A value of fixed width, with the out-type's meaning applied.
#[inline]
fn number<'a>(field: &Field, bytes: &'a [u8]) -> Option<Value<'a>> {
    use InType::*;
    let plain = match field.in_type {
        Int8 => Value::I8(bytes.u8_at(0)? as i8),
        UInt8 => Value::U8(bytes.u8_at(0)?),
        Int16 => Value::I16(bytes.u16_at(0)? as i16),
        UInt16 => Value::U16(bytes.u16_at(0)?),
        Int32 => Value::I32(bytes.u32_at(0)? as i32),
        UInt32 => Value::U32(bytes.u32_at(0)?),
        Int64 => Value::I64(bytes.i64_at(0)?),
        UInt64 => Value::U64(bytes.u64_at(0)?),
        Float => Value::F32(f32::from_bits(bytes.u32_at(0)?)),
        Double => Value::F64(f64::from_bits(bytes.u64_at(0)?)),
        Boolean => Value::Bool(bytes.iter().any(|b| *b != 0)),
        HexInt32 => Value::Hex(u64::from(bytes.u32_at(0)?)),
        HexInt64 => Value::Hex(bytes.u64_at(0)?),
        Guid => Value::Guid(bytes.guid_at(0)?),
        FileTime => Value::FileTime(bytes.i64_at(0)?),
        SystemTime => {
            let mut parts = [0u16; 8];
            for (i, part) in parts.iter_mut().enumerate() {
                *part = bytes.u16_at(2 * i)?;
            }
            Value::SystemTime(parts)
        }
        Pointer => Value::Pointer(bytes.ptr_at(0, bytes.len())?),
        SizeT => Value::U64(bytes.ptr_at(0, bytes.len())?),
        UnicodeChar => Value::Str(Cow::Owned(utf16(bytes))),
        AnsiChar => Value::Str(Cow::Owned(char::from(bytes.u8_at(0)?).to_string())),
        Port => Value::Port(bytes.u16_at(0)?.swap_bytes()),
        IPv4 => Value::IPv4(bytes.array(0)?),
        IPv6 => Value::IPv6(bytes.array(0)?),
        _ => return None,
    };
    if field.out_type == 0 { Some(plain) } else { Some(shown_as(plain, field.out_type)) }
}

fn shown_as(plain: Value<'_>, out_type: u16) -> Value<'_> {
    match (&plain, out_type) {
        (Value::U16(v), out::PORT) => Value::Port(v.swap_bytes()),
        (Value::U32(v), out::IPV4) => Value::IPv4(v.to_le_bytes()),
        (Value::I32(v), out::IPV4) => Value::IPv4(v.to_le_bytes()),
        (Value::Hex(v), out::IPV4) => Value::IPv4((*v as u32).to_le_bytes()),
        (Value::U16(v), out::STRING) => Value::Str(Cow::Owned(utf16(&v.to_le_bytes()))),
        (Value::U8(v), out::STRING) => Value::Str(Cow::Owned(char::from(*v).to_string())),
        (Value::I8(v), out::STRING) => Value::Str(Cow::Owned(char::from(*v as u8).to_string())),
        (Value::U64(v), out::DATETIME | out::DATETIME_UTC) => Value::FileTime(*v as i64),
        (Value::I64(v), out::DATETIME | out::DATETIME_UTC) => Value::FileTime(*v),
        (Value::U8(v), out::BOOLEAN) => Value::Bool(*v != 0),
        (Value::I8(v), out::BOOLEAN) => Value::Bool(*v != 0),
        (Value::U32(v), out::BOOLEAN) => Value::Bool(*v != 0),
        (Value::I32(v), out::BOOLEAN) => Value::Bool(*v != 0),
        (Value::U32(v), out::NTSTATUS | out::HRESULT) => Value::Status(*v),
        (Value::I32(v), out::NTSTATUS | out::HRESULT) => Value::Status(*v as u32),
        (Value::Hex(v), out::NTSTATUS | out::HRESULT) => Value::Status(*v as u32),
        (Value::Hex(v), out::WIN32ERROR) => Value::U32(*v as u32),
        (Value::U64(v) | Value::Hex(v), out::CODE_POINTER) => Value::Pointer(*v),
        (Value::U8(v), o) if out::HEX.contains(&o) => Value::Hex(u64::from(*v)),
        (Value::I8(v), o) if out::HEX.contains(&o) => Value::Hex(u64::from(*v as u8)),
        (Value::U16(v), o) if out::HEX.contains(&o) => Value::Hex(u64::from(*v)),
        (Value::I16(v), o) if out::HEX.contains(&o) => Value::Hex(u64::from(*v as u16)),
        (Value::U32(v), o) if out::HEX.contains(&o) => Value::Hex(u64::from(*v)),
        (Value::I32(v), o) if out::HEX.contains(&o) => Value::Hex(u64::from(*v as u32)),
        (Value::U64(v), o) if out::HEX.contains(&o) => Value::Hex(*v),
        (Value::I64(v), o) if out::HEX.contains(&o) => Value::Hex(*v as u64),
        _ => plain,
    }
}
