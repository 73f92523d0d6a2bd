//! Texts as JSON and XML write them, straight into bytes that are UTF-8.
//!
//! Nearly all texts of logs are ASCII without anything to escape, or with a backslash here and there: sixteen units at a time are narrowed
//! and looked at together, and what needs an escape is found by its bit.

use super::ansi::ansi;
use super::narrow::{UNITS, plain};
use super::out::Out as _;
use super::text::next;
use super::value::{Items, Value, push_decimal, push_hex};
use crate::abi::value as ty;
use etwhy_base::{is_unsafe, utf16};
use wide::u8x16;

/// How characters are written.
pub trait Escape {
    /// Bits of those bytes of ASCII text that may not be written as they are.
    fn odd(bytes: u8x16) -> u32;

    /// Appends a character.
    fn push(out: &mut Vec<u8>, c: char);
}

/// Bits of controls, DEL included.
#[inline(always)]
fn controls(bytes: u8x16) -> u8x16 {
    bytes.simd_eq(bytes.min(u8x16::splat(0x1F))) | bytes.simd_eq(u8x16::splat(0x7F))
}

/// The same without tabs and line feeds, which XML has as they are.
#[inline(always)]
fn controls_of_xml(bytes: u8x16) -> u8x16 {
    controls(bytes) & !(bytes.simd_eq(u8x16::splat(b'\t')) | bytes.simd_eq(u8x16::splat(b'\n')))
}

/// As they are.
pub struct Plain;

impl Escape for Plain {
    #[inline(always)]
    fn odd(_: u8x16) -> u32 {
        0
    }

    #[inline]
    fn push(out: &mut Vec<u8>, c: char) {
        out.char(c);
    }
}

/// In texts of JSON (RFC 8259, 7). `SAFE`: also what acts on terminals is an escape, which any reader turns back.
pub struct Json<const SAFE: bool>;

impl<const SAFE: bool> Escape for Json<SAFE> {
    #[inline(always)]
    fn odd(bytes: u8x16) -> u32 {
        let quotes = bytes.simd_eq(u8x16::splat(b'"')) | bytes.simd_eq(u8x16::splat(b'\\'));
        (quotes | controls(bytes)).to_bitmask()
    }

    #[inline]
    fn push(out: &mut Vec<u8>, c: char) {
        match c {
            '\\' => out.extend_from_slice(b"\\\\"),
            '"' => out.extend_from_slice(b"\\\""),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            c if c < ' ' || SAFE && is_unsafe(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
                }
            }
            c => out.char(c),
        }
    }
}

/// In XML. Characters that it does not allow become `_`, as Windows writes them. `SAFE`: references stand for what acts on terminals; a
/// carriage return that is none would be a line end to parsers.
pub struct Xml<const ATTRIBUTE: bool, const SAFE: bool>;

impl<const ATTRIBUTE: bool, const SAFE: bool> Escape for Xml<ATTRIBUTE, SAFE> {
    #[inline(always)]
    fn odd(bytes: u8x16) -> u32 {
        let is = |byte: u8| bytes.simd_eq(u8x16::splat(byte));
        let markup = is(b'&') | is(b'<') | is(b'>') | controls_of_xml(bytes);
        if ATTRIBUTE { (markup | is(b'"') | is(b'\'')).to_bitmask() } else { markup.to_bitmask() }
    }

    #[inline]
    fn push(out: &mut Vec<u8>, c: char) {
        match c {
            '&' => out.extend_from_slice(b"&amp;"),
            '<' => out.extend_from_slice(b"&lt;"),
            '>' => out.extend_from_slice(b"&gt;"),
            '"' if ATTRIBUTE => out.extend_from_slice(b"&quot;"),
            '\'' if ATTRIBUTE => out.extend_from_slice(b"&apos;"),
            '\t' | '\n' | '\r' => Markup::<SAFE>::push(out, c),
            '\u{FFFE}' | '\u{FFFF}' => out.push(b'_'),
            c if c < ' ' => out.push(b'_'),
            c => Markup::<SAFE>::push(out, c),
        }
    }
}

/// In XML what is no markup of its own; `SAFE` as for [`Xml`].
pub struct Markup<const SAFE: bool>;

impl<const SAFE: bool> Escape for Markup<SAFE> {
    #[inline(always)]
    fn odd(bytes: u8x16) -> u32 {
        if SAFE { controls_of_xml(bytes).to_bitmask() } else { 0 }
    }

    #[inline]
    fn push(out: &mut Vec<u8>, c: char) {
        if SAFE && c == '\r' {
            // The usual one: texts of Windows end lines with it.
            out.extend_from_slice(b"&#xd;");
        } else if SAFE && is_unsafe(c) && !matches!(c, '\n' | '\t') {
            out.extend_from_slice(format!("&#x{:x};", u32::from(c)).as_bytes());
        } else {
            out.char(c);
        }
    }
}

/// Appends the UTF-16 text in the first `size` bytes, up to its first NUL. What stands behind it may be read, and is not appended.
#[inline(always)]
pub fn push_utf16<E: Escape>(out: &mut Vec<u8>, tail: &[u8], size: usize) {
    let units = size / 2;
    // Most texts are short.
    if units <= UNITS
        && let Some(block) = tail.first_chunk::<32>()
    {
        let found = super::narrow::narrow(block, units);
        if found.ascii {
            return push_ascii::<E>(out, found.bytes, found.len);
        }
    }
    push_utf16_long::<E>(out, tail, units);
}

/// The same whatever the text.
#[inline(never)]
fn push_utf16_long<E: Escape>(out: &mut Vec<u8>, tail: &[u8], units: usize) {
    let (mut rest, mut left) = (tail, units);
    while left > 0 && rest.len() > 1 {
        while left >= UNITS
            && let Some((block, behind)) = rest.split_first_chunk::<32>()
            && let Some((bytes, _)) = plain(block)
            && E::odd(u8x16::from(bytes)) == 0
        {
            out.extend_from_slice(&bytes);
            (rest, left) = (behind, left - UNITS);
        }
        let n = left.min(UNITS);
        let found = next(rest, n);
        if found.ascii {
            push_ascii::<E>(out, found.bytes, found.len);
            if found.len < n {
                return;
            }
            rest = rest.get(n * 2..).unwrap_or(&[]);
            left -= n;
            continue;
        }
        // About as many units one by one, then fast again.
        let of = rest.as_chunks::<2>().0;
        let of = of.get(..left).unwrap_or(of);
        let mut taken = 0;
        while taken < n
            && let Some(unit) = of.get(taken).map(|unit| u16::from_le_bytes(*unit))
        {
            taken += 1;
            let low = 0x80 | (unit & 0x3F) as u8;
            match unit {
                0 => return,
                // Latin to Hebrew, and East Asian scripts: two and three bytes, and nothing that anybody escapes.
                0xA0..=0x5FF => out.extend_from_slice(&[0xC0 | (unit >> 6) as u8, low]),
                0x3000..=0xD7FF => {
                    let middle = 0x80 | (unit >> 6 & 0x3F) as u8;
                    out.extend_from_slice(&[0xE0 | (unit >> 12) as u8, middle, low]);
                }
                _ => {
                    let pair = [unit, of.get(taken).map_or(0, |unit| u16::from_le_bytes(*unit))];
                    let c = utf16::chars(pair).next().unwrap_or(char::REPLACEMENT_CHARACTER);
                    taken += c.len_utf16() - 1;
                    E::push(out, c);
                }
            }
        }
        rest = rest.get(taken * 2..).unwrap_or(&[]);
        left -= taken.min(left);
    }
}

/// The first `len` of these bytes, which are ASCII.
#[inline(always)]
fn push_ascii<E: Escape>(out: &mut Vec<u8>, bytes: [u8; UNITS], len: usize) {
    let odd = E::odd(u8x16::from(bytes)) & !(u32::MAX << len);
    if odd == 0 {
        let end = out.len() + len;
        out.extend_from_slice(&bytes);
        out.truncate(end);
    } else {
        push_odd::<E>(out, bytes, len, odd);
    }
}

/// The same with what must be escaped.
#[inline(never)]
fn push_odd<E: Escape>(out: &mut Vec<u8>, bytes: [u8; UNITS], len: usize, mut odd: u32) {
    let mut block = [0; UNITS * 2];
    if let Some(place) = block.first_chunk_mut::<UNITS>() {
        *place = bytes;
    }
    let mut from = 0;
    loop {
        let next = (odd.trailing_zeros() as usize).min(len);
        let end = out.len() + next.saturating_sub(from);
        // The block is followed by as many zeros.
        if let Some(run) = block.get(from..).and_then(<[u8]>::first_chunk::<UNITS>) {
            out.extend_from_slice(run);
        }
        out.truncate(end);
        match block.get(next) {
            Some(byte) if next < len => E::push(out, char::from(*byte)),
            _ => return,
        }
        odd &= odd.wrapping_sub(1);
        from = next + 1;
    }
}

/// Appends a text.
pub fn push_str<E: Escape>(out: &mut Vec<u8>, text: &str) {
    let mut rest = text;
    loop {
        let ascii = push_ascii_blocks::<E>(out, rest.as_bytes());
        rest = rest.get(ascii..).unwrap_or("");
        // What is not ASCII, up to where it may be again.
        let Some(c) = rest.chars().next() else { return };
        E::push(out, c);
        rest = rest.get(c.len_utf8()..).unwrap_or("");
    }
}

/// Appends text of Windows-1252.
fn push_ansi<E: Escape>(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut rest = bytes;
    loop {
        let ascii = push_ascii_blocks::<E>(out, rest);
        let Some((other, behind)) = rest.get(ascii..).and_then(<[u8]>::split_first) else { return };
        ansi(&[*other]).for_each(|c| E::push(out, c));
        rest = behind;
    }
}

/// Appends the ASCII text that the bytes begin with; gives how many bytes it has.
#[inline]
fn push_ascii_blocks<E: Escape>(out: &mut Vec<u8>, bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let mut block = [0; UNITS];
        let len = match rest.first_chunk::<UNITS>() {
            Some(whole) => {
                block = *whole;
                UNITS
            }
            None => {
                block.iter_mut().zip(rest).for_each(|(to, byte)| *to = *byte);
                rest.len()
            }
        };
        let ascii = (u8x16::from(block).to_bitmask().trailing_zeros() as usize).min(len);
        push_ascii::<E>(out, block, ascii);
        at += ascii;
        if ascii < len {
            break;
        }
    }
    at
}

/// Appends the text that Windows gives a value.
#[inline(always)]
pub fn push_value<E: Escape>(out: &mut Vec<u8>, value: &Value<'_>) {
    match *value {
        Value::Utf16(bytes) => push_utf16::<E>(out, bytes, bytes.len()),
        _ => push_other::<E>(out, value),
    }
}

fn push_other<E: Escape>(out: &mut Vec<u8>, value: &Value<'_>) {
    match *value {
        Value::Utf16(bytes) => push_utf16_long::<E>(out, bytes, bytes.len() / 2),
        Value::Utf8(text) => push_str::<E>(out, text),
        Value::Ansi(bytes) => push_ansi::<E>(out, bytes),
        Value::Array(kind, bytes) => {
            for (n, item) in Items::new(kind, bytes).enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                push_other::<E>(out, &item);
            }
        }
        // Digits, and nothing that is escaped.
        _ => value.push_text(out),
    }
}

/// Appends the text of a value of this type, whose bytes are the first of `tail`.
#[inline(always)]
pub fn push_raw<E: Escape>(out: &mut Vec<u8>, kind: u8, size: usize, tail: &[u8]) {
    if kind == ty::STRING {
        return push_utf16::<E>(out, tail, size);
    }
    match Value::parse(kind, tail.get(..size).unwrap_or(&[])) {
        Value::Null => {}
        Value::UInt(n) => push_decimal(out, n),
        Value::Hex(n) => push_hex(out, n),
        value => push_other::<E>(out, &value),
    }
}
