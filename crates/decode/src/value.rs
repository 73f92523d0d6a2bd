//! Values as they come out of payloads. Borrowed from the payload wherever that is possible.

use etwhy_etl::Guid;
use std::borrow::Cow;

/// One value of a field.
///
/// What the out-type says about the meaning of the bits (port, address, status code) is already applied,
/// so a value can be shown without its field; only names of a [`crate::schema::ValueMap`] need the field.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// Boolean of any width.
    Bool(bool),
    /// i8.
    I8(i8),
    /// u8.
    U8(u8),
    /// i16.
    I16(i16),
    /// u16.
    U16(u16),
    /// i32.
    I32(i32),
    /// u32.
    U32(u32),
    /// i64.
    I64(i64),
    /// u64.
    U64(u64),
    /// f32.
    F32(f32),
    /// f64.
    F64(f64),
    /// Integer that is shown in hex.
    Hex(u64),
    /// Pointer, shown in hex.
    Pointer(u64),
    /// Text, without the nul that ended it.
    Str(Cow<'a, str>),
    /// GUID.
    Guid(Guid),
    /// 100 ns since 1601, UTC.
    FileTime(i64),
    /// Year, month, day of week, day, hour, minute, second, millisecond.
    SystemTime([u16; 8]),
    /// A SID as it stands in the payload.
    Sid(&'a [u8]),
    /// Bytes without a better meaning.
    Bytes(&'a [u8]),
    /// TCP or UDP port.
    Port(u16),
    /// IPv4 address, in network order.
    IPv4([u8; 4]),
    /// IPv6 address.
    IPv6([u8; 16]),
    /// `SOCKADDR` of any family.
    SockAddr(&'a [u8]),
    /// Status code (`NTSTATUS`, `HRESULT`), shown in hex.
    Status(u32),
    /// Elements of an array.
    Array(Vec<Value<'a>>),
    /// Members of a struct, in the order of [`crate::schema::Field::members`]; fewer when truncated.
    Struct(Vec<Value<'a>>),
}

impl<'a> Value<'a> {
    /// The value as an unsigned number: integers (negative ones wrap to 64 bits), booleans, pointers,
    /// ports, statuses, times. `None` for everything else.
    #[inline]
    pub fn as_u64(&self) -> Option<u64> {
        Some(match *self {
            Value::Bool(v) => u64::from(v),
            Value::I8(v) => v as i64 as u64,
            Value::U8(v) => u64::from(v),
            Value::I16(v) => v as i64 as u64,
            Value::U16(v) | Value::Port(v) => u64::from(v),
            Value::I32(v) => v as i64 as u64,
            Value::U32(v) | Value::Status(v) => u64::from(v),
            Value::I64(v) | Value::FileTime(v) => v as u64,
            Value::U64(v) | Value::Hex(v) | Value::Pointer(v) => v,
            _ => return None,
        })
    }

    /// The value as a signed number, likewise.
    #[inline]
    pub fn as_i64(&self) -> Option<i64> {
        self.as_u64().map(|v| v as i64)
    }

    /// The text of a string.
    #[inline]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The GUID.
    #[inline]
    pub fn as_guid(&self) -> Option<Guid> {
        match self {
            Value::Guid(guid) => Some(*guid),
            _ => None,
        }
    }

    /// The bytes of binary values and SIDs.
    #[inline]
    pub fn as_bytes(&self) -> Option<&'a [u8]> {
        match self {
            Value::Bytes(bytes) | Value::Sid(bytes) | Value::SockAddr(bytes) => Some(bytes),
            _ => None,
        }
    }
}

/// UTF-16LE bytes as text; an odd last byte is ignored, lone surrogates become U+FFFD.
pub(crate) fn utf16(bytes: &[u8]) -> String {
    let units = bytes.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit));
    let mut text = String::with_capacity(bytes.len() / 2);
    text.extend(char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)));
    text
}

/// 8-bit text: UTF-8 if it is valid, else each byte is one Latin-1 character. The code page of the
/// writer is not recorded, and modern writers use UTF-8.
pub(crate) fn text8(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().map(|b| char::from(*b)).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_widen_with_their_sign() {
        assert_eq!(Value::I8(-1).as_i64(), Some(-1));
        assert_eq!(Value::I32(-2).as_u64(), Some(u64::MAX - 1));
        assert_eq!(Value::Str("7".into()).as_u64(), None);
        assert_eq!(Value::Bool(true).as_u64(), Some(1));
    }

    #[test]
    fn text_is_decoded_leniently() {
        assert_eq!(utf16(&[0x41, 0, 0x00, 0xD8, 0x42, 0, 0x43]), "A\u{FFFD}B");
        assert_eq!(text8(b"gr\xfcn"), "grün");
        assert_eq!(text8("grün".as_bytes()), "grün");
    }
}
