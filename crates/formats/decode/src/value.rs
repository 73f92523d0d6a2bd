//! Values as they come out of payloads. Borrowed from the payload wherever that is possible.

use crate::schema::InType;
use crate::text::Text;
use etwhy_base::Guid;

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
    Str(Text<'a>),
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
    /// Elements of an array of a type of fixed width.
    Numbers(Numbers<'a>),
    /// Elements of any other array.
    Array(Vec<Value<'a>>),
    /// Members of a struct, in the order of [`crate::schema::Field::members`]; fewer when truncated.
    Struct(Vec<Value<'a>>),
}

/// The elements of an array of a type of fixed width. [`Numbers::get`] and [`Numbers::iter`] read them.
#[derive(Clone, Copy, PartialEq)]
pub struct Numbers<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) out_type: u16,
    pub(crate) in_type: InType,
    pub(crate) width: u8,
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

    /// The text of a string; [`Text::to_str`] makes a `str` of it.
    #[inline]
    pub fn as_text(&self) -> Option<Text<'a>> {
        match self {
            Value::Str(text) => Some(*text),
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
}
