//! Values: what a field holds, and its text.

use super::ansi::push_ansi;
use super::out::Out;
use super::text::ascii;
use super::time;
use crate::abi::value as ty;
use etwhy_base::Bytes as _;
use etwhy_base::Guid;
use etwhy_base::utf16::until_nul;

/// A value of a field. It borrows the chunk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// No value.
    Null,
    /// UTF-16, up to its first NUL.
    Utf16(&'a [u8]),
    /// Text of the template.
    Utf8(&'a str),
    /// Text in the code page of the machine, which the log does not name: read as Windows-1252.
    Ansi(&'a [u8]),
    /// Signed integers.
    Int(i64),
    /// Unsigned integers.
    UInt(u64),
    /// A 32-bit float.
    Real32(f32),
    /// A 64-bit float.
    Real64(f64),
    /// True or false; other numbers in a boolean are [`Value::Int`].
    Bool(bool),
    /// Bytes.
    Binary(&'a [u8]),
    /// A GUID as it is stored.
    Guid(Guid),
    /// An integer that is shown in hexadecimal.
    Hex(u64),
    /// 100 ns since 1601 (UTC).
    FileTime(u64),
    /// `SYSTEMTIME` as it is stored.
    SysTime([u8; 16]),
    /// A security identifier as it is stored.
    Sid(&'a [u8]),
    /// An array: type of its items and their bytes.
    Array(u8, &'a [u8]),
    /// Binary XML.
    BinXml(&'a [u8]),
    /// A type that is not known, or too few bytes for its type.
    Odd(u8, &'a [u8]),
}

impl<'a> Value<'a> {
    /// The value of this type in these bytes.
    #[inline(always)]
    pub fn parse(kind: u8, bytes: &'a [u8]) -> Value<'a> {
        Self::read(kind, bytes).unwrap_or(Value::Odd(kind, bytes))
    }

    #[inline(always)]
    fn read(kind: u8, bytes: &'a [u8]) -> Option<Value<'a>> {
        Some(match kind {
            ty::NULL => Value::Null,
            ty::STRING => Value::Utf16(until_nul(bytes)),
            ty::ANSI_STRING => Value::Ansi(bytes.split(|b| *b == 0).next().unwrap_or(bytes)),
            ty::INT8 => Value::Int(i64::from(i8::from_le_bytes(bytes.array(0)?))),
            ty::UINT8 => Value::UInt(u64::from(*bytes.first()?)),
            ty::INT16 => Value::Int(i64::from(i16::from_le_bytes(bytes.array(0)?))),
            ty::UINT16 => Value::UInt(u64::from(u16::from_le_bytes(bytes.array(0)?))),
            ty::INT32 => Value::Int(i64::from(i32::from_le_bytes(bytes.array(0)?))),
            ty::UINT32 => Value::UInt(u64::from(u32::from_le_bytes(bytes.array(0)?))),
            ty::INT64 => Value::Int(i64::from_le_bytes(bytes.array(0)?)),
            ty::UINT64 => Value::UInt(u64::from_le_bytes(bytes.array(0)?)),
            ty::REAL32 => Value::Real32(f32::from_le_bytes(bytes.array(0)?)),
            ty::REAL64 => Value::Real64(f64::from_le_bytes(bytes.array(0)?)),
            ty::BOOL => match i32::from_le_bytes(bytes.array(0)?) {
                0 => Value::Bool(false),
                1 => Value::Bool(true),
                // Windows writes bit masks into some booleans.
                other => Value::Int(i64::from(other)),
            },
            ty::BINARY => Value::Binary(bytes),
            ty::GUID => Value::Guid(Guid(bytes.array(0)?)),
            ty::SIZE_T if bytes.len() == 4 => Value::Hex(u64::from(u32::from_le_bytes(bytes.array(0)?))),
            ty::SIZE_T | ty::HEX_INT64 => Value::Hex(u64::from_le_bytes(bytes.array(0)?)),
            ty::FILE_TIME => Value::FileTime(u64::from_le_bytes(bytes.array(0)?)),
            ty::SYS_TIME => Value::SysTime(bytes.array(0)?),
            ty::SID => Value::Sid(sid(bytes)?),
            ty::HEX_INT32 => Value::Hex(u64::from(u32::from_le_bytes(bytes.array(0)?))),
            ty::BIN_XML => Value::BinXml(bytes),
            array if array & ty::ARRAY != 0 && is_item(array & !ty::ARRAY) => {
                Value::Array(array & !ty::ARRAY, bytes)
            }
            _ => return None,
        })
    }

    /// True for what an optional substitution leaves out: no value, or nothing in it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        match self {
            Value::Null => true,
            Value::Utf16(b) | Value::Ansi(b) | Value::Binary(b) | Value::BinXml(b) | Value::Array(_, b) => {
                b.is_empty()
            }
            Value::Utf8(text) => text.is_empty(),
            _ => false,
        }
    }

    /// As an integer, if it is one or a text of one.
    #[inline]
    pub fn number(&self) -> Option<u64> {
        Some(match *self {
            Value::UInt(n) | Value::Hex(n) | Value::FileTime(n) => n,
            Value::Int(n) => n as u64,
            Value::Bool(b) => u64::from(b),
            Value::Utf8(text) => parse(text)?,
            Value::Utf16(bytes) if let Some(n) = decimal(bytes) => n,
            Value::Utf16(_) | Value::Ansi(_) => {
                let mut short = [0; 24];
                if let Value::Utf16(utf16) = *self
                    && let Some(text) = ascii(utf16, &mut short)
                {
                    return parse(text);
                }
                let mut text = String::new();
                self.push_text(&mut text);
                parse(&text)?
            }
            _ => return None,
        })
    }

    /// Appends the text that Windows gives the value in XML, not escaped.
    pub fn push_text(&self, out: &mut impl Out) {
        match *self {
            Value::Null | Value::BinXml(_) => {}
            Value::Utf16(bytes) => out.utf16(bytes),
            Value::Utf8(text) => out.text(text),
            Value::Ansi(bytes) => push_ansi(out, bytes),
            Value::Int(n) => {
                if n < 0 {
                    out.ascii(b"-");
                }
                push_decimal(out, n.unsigned_abs());
            }
            Value::UInt(n) => push_decimal(out, n),
            Value::Real32(x) => push_real(out, f64::from(x), &x.to_string()),
            Value::Real64(x) => push_real(out, x, &x.to_string()),
            Value::Bool(b) => out.ascii(if b { b"true" } else { b"false" }),
            Value::Binary(bytes) => push_hex_bytes(out, bytes),
            Value::Guid(guid) => push_guid(out, guid),
            Value::Hex(n) => push_hex(out, n),
            Value::FileTime(ticks) => time::push_file_time(out, ticks),
            Value::SysTime(bytes) => time::push_system_time(out, &bytes),
            Value::Sid(bytes) => push_sid(out, bytes),
            Value::Array(kind, bytes) => {
                for (n, item) in Items::new(kind, bytes).enumerate() {
                    if n > 0 {
                        out.ascii(b",");
                    }
                    item.push_text(out);
                }
            }
            Value::Odd(kind, bytes) => {
                out.text(&format!("(type {kind:#04x}) "));
                push_hex_bytes(out, bytes);
            }
        }
    }
}

/// The number that these digits are.
fn decimal(utf16: &[u8]) -> Option<u64> {
    let units = utf16.as_chunks::<2>().0;
    // 19 digits always fit.
    if units.is_empty() || units.len() > 19 || !utf16.len().is_multiple_of(2) {
        return None;
    }
    units.iter().try_fold(0u64, |n, unit| match unit {
        [digit @ b'0'..=b'9', 0] => Some(n * 10 + u64::from(digit - b'0')),
        _ => None,
    })
}

fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse::<u64>().ok().or_else(|| text.parse::<i64>().ok().map(|n| n as u64)),
    }
}

/// Types that arrays are made of.
const fn is_item(kind: u8) -> bool {
    matches!(kind, ty::STRING..=ty::HEX_INT64)
}

/// The SID without what follows it.
#[inline]
fn sid(bytes: &[u8]) -> Option<&[u8]> {
    let count = usize::from(*bytes.get(1)?);
    bytes.get(..8 + count * 4)
}

/// Items of an array.
#[derive(Clone)]
pub struct Items<'a> {
    kind: u8,
    rest: &'a [u8],
    /// Bytes of an item; 0 for texts, which end with a NUL.
    size: usize,
}

impl<'a> Items<'a> {
    /// The items of an array of this type.
    pub fn new(kind: u8, bytes: &'a [u8]) -> Items<'a> {
        let size = match kind {
            ty::STRING | ty::ANSI_STRING | ty::SID => 0,
            ty::INT8 | ty::UINT8 | ty::BINARY => 1,
            ty::INT16 | ty::UINT16 => 2,
            ty::INT32 | ty::UINT32 | ty::REAL32 | ty::BOOL | ty::HEX_INT32 => 4,
            ty::GUID | ty::SYS_TIME => 16,
            _ => 8,
        };
        Items { kind, rest: bytes, size }
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let (len, skip) = match self.kind {
            ty::STRING => {
                let units = self.rest.chunks_exact(2).position(|u| *u == [0, 0]);
                units.map_or((self.rest.len(), 0), |n| (n * 2, 2))
            }
            ty::ANSI_STRING => {
                self.rest.iter().position(|b| *b == 0).map_or((self.rest.len(), 0), |n| (n, 1))
            }
            ty::SID => (sid(self.rest).map_or(self.rest.len(), <[u8]>::len), 0),
            _ => (self.size.min(self.rest.len()), 0),
        };
        let item = self.rest.get(..len)?;
        self.rest = self.rest.get(len + skip..).unwrap_or(&[]);
        Some(Value::parse(self.kind, item))
    }
}

/// All numbers of two digits.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut n = 0;
    while n < 100 {
        pairs[n] = [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        n += 1;
    }
    pairs
};

/// Digits, without the detour over `fmt`.
#[inline]
pub fn push_decimal(out: &mut impl Out, n: u64) {
    match n {
        0..10 => out.ascii(&[b'0' + n as u8]),
        10..100 => out.ascii(&PAIRS[n as usize % 100]),
        _ => push_long_decimal(out, n),
    }
}

fn push_long_decimal(out: &mut impl Out, mut n: u64) {
    let mut buffer = [0; 24];
    let len = n.max(1).ilog10() as usize + 1;
    let mut at = len;
    while n >= 10 {
        at = at.saturating_sub(2);
        if let Some(pair) = buffer.get_mut(at..at + 2) {
            pair.copy_from_slice(&PAIRS[(n % 100) as usize]);
        }
        n /= 100;
    }
    if at > 0
        && let Some(digit) = buffer.first_mut()
    {
        *digit = b'0' + n as u8;
    }
    out.head(&buffer, len);
}

fn push_real(out: &mut impl Out, value: f64, shortest: &str) {
    // XML Schema's names.
    out.text(match value {
        x if x.is_nan() => "NaN",
        f64::INFINITY => "INF",
        f64::NEG_INFINITY => "-INF",
        _ => shortest,
    });
}

const HEX_LOWER: &[u8; 16] = b"0123456789abcdef";
const HEX_UPPER: &[u8; 16] = b"0123456789ABCDEF";

/// `0x1f`.
pub fn push_hex(out: &mut impl Out, n: u64) {
    let digits = ((64 - n.leading_zeros()).div_ceil(4)).max(1) as usize;
    let mut text = *b"0x0000000000000000      ";
    let end = digits + 2;
    for (at, digit) in text.iter_mut().take(end).skip(2).rev().enumerate() {
        *digit = HEX_LOWER[(n >> (at * 4)) as usize & 15];
    }
    out.head(&text, end);
}

/// `1F2E`.
pub fn push_hex_bytes(out: &mut impl Out, bytes: &[u8]) {
    let digits = |byte: &u8| [HEX_UPPER[usize::from(byte >> 4)], HEX_UPPER[usize::from(byte & 15)]];
    let (blocks, rest) = bytes.as_chunks::<16>();
    for block in blocks {
        out.ascii(block.each_ref().map(digits).as_flattened());
    }
    for byte in rest {
        out.ascii(&digits(byte));
    }
}

/// `{d1-d2-d3-d4d4-d4…}`, in lower case.
pub fn push_guid(out: &mut impl Out, guid: Guid) {
    let mut text = [b'{'; 38];
    let [_, digits @ .., close] = &mut text;
    digits.copy_from_slice(&guid.text());
    *close = b'}';
    out.ascii(&text);
}

/// `S-1-5-18`. Layout: revision, number of subauthorities, authority (48 bits, big endian), subauthorities ([MS-DTYP] 2.4.2).
pub fn push_sid(out: &mut impl Out, bytes: &[u8]) {
    let (Some([revision, _, a, b, c, d, e, f]), Some(rest)) = (bytes.array::<8>(0), bytes.get(8..)) else {
        out.ascii(b"S-?");
        return;
    };
    out.ascii(b"S-");
    push_decimal(out, u64::from(revision));
    out.ascii(b"-");
    push_decimal(out, u64::from_be_bytes([0, 0, a, b, c, d, e, f]));
    for part in rest.as_chunks::<4>().0 {
        out.ascii(b"-");
        push_decimal(out, u64::from(u32::from_le_bytes(*part)));
    }
}
