//! UTF-16 texts as UTF-8.

use super::narrow::{Narrow, UNITS, narrow, plain};
use etwhy_base::utf16;

/// Appends UTF-16; lone surrogates become U+FFFD, an odd last byte is left out.
#[inline]
pub fn push_utf16(out: &mut String, bytes: &[u8]) {
    out.reserve(bytes.len() / 2);
    let mut rest = bytes;
    while rest.len() > 1 {
        let n = (rest.len() / 2).min(UNITS);
        let found = next(rest, n);
        if !found.ascii || found.len < n {
            break;
        }
        out.push_str(std::str::from_utf8(found.bytes.get(..n).unwrap_or(&[])).unwrap_or(""));
        rest = rest.get(n * 2..).unwrap_or(&[]);
    }
    let units = rest.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit));
    out.extend(utf16::chars(units));
}

/// The next sixteen units; behind the end of the bytes are NULs.
#[inline(always)]
pub(super) fn next(rest: &[u8], n: usize) -> Narrow {
    match rest.first_chunk::<32>() {
        Some(block) => narrow(block, n),
        None => last(rest, n),
    }
}

/// Units at the very end.
#[inline(never)]
fn last(rest: &[u8], n: usize) -> Narrow {
    let mut block = [0; 32];
    block.iter_mut().zip(rest).for_each(|(to, byte)| *to = *byte);
    narrow(&block, n)
}

/// Appends the UTF-16 text in the first `size` bytes, up to its first NUL, to bytes that are UTF-8. What stands behind it may be
/// read, and is not appended. Tells whether there is a percent sign in it, if `PERCENT` asks for that.
#[inline]
pub fn push_utf16_bytes<const PERCENT: bool>(out: &mut Vec<u8>, bytes: &[u8], size: usize) -> bool {
    let units = size / 2;
    // Most texts are short.
    if units <= UNITS
        && let Some(block) = bytes.first_chunk::<32>()
    {
        let found = narrow(block, units);
        if found.ascii {
            let end = out.len() + found.len;
            out.extend_from_slice(&found.bytes);
            out.truncate(end);
            return PERCENT && found.percent;
        }
    }
    push_utf16_long::<PERCENT>(out, bytes, units)
}

/// The same whatever the text.
#[inline(never)]
fn push_utf16_long<const PERCENT: bool>(out: &mut Vec<u8>, bytes: &[u8], units: usize) -> bool {
    let begin = out.len();
    let (mut rest, mut left, mut percent) = (bytes, units, false);
    out.reserve(units + UNITS);
    while left >= UNITS
        && let Some((block, behind)) = rest.split_first_chunk::<32>()
        && let Some((found, sign)) = plain(block)
    {
        out.extend_from_slice(&found);
        percent |= PERCENT && sign;
        (rest, left) = (behind, left - UNITS);
    }
    while left > 0 {
        let n = left.min(UNITS);
        let found = next(rest, n);
        if !found.ascii {
            out.truncate(begin);
            return push_utf16_other(out, bytes.get(..units * 2).unwrap_or(bytes));
        }
        let end = out.len() + found.len;
        out.extend_from_slice(&found.bytes);
        out.truncate(end);
        percent |= PERCENT && found.percent;
        if found.len < n {
            break;
        }
        rest = rest.get(UNITS * 2..).unwrap_or(&[]);
        left -= n;
    }
    percent
}

/// The same for texts that are not ASCII.
#[cold]
fn push_utf16_other(out: &mut Vec<u8>, bytes: &[u8]) -> bool {
    let mut text = String::new();
    push_utf16(&mut text, utf16::until_nul(bytes));
    out.extend_from_slice(text.as_bytes());
    text.contains('%')
}

/// A short text that is ASCII, without allocating; `None` if it is not, or too long for the buffer.
#[inline]
pub fn ascii<'b, const N: usize>(bytes: &[u8], into: &'b mut [u8; N]) -> Option<&'b str> {
    let units = bytes.as_chunks::<2>().0;
    let into = into.get_mut(..units.len())?;
    let mut all = 0;
    for (to, [low, high]) in into.iter_mut().zip(units) {
        *to = *low;
        all |= *high | *low & 0x80;
    }
    if all == 0 { std::str::from_utf8(into).ok() } else { None }
}

/// True if the UTF-16 text is this ASCII text.
pub(super) fn is(utf16: &[u8], text: &str) -> bool {
    utf16.len() == text.len() * 2
        && utf16.as_chunks::<2>().0.iter().zip(text.bytes()).all(|(unit, byte)| *unit == [byte, 0])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn texts_of_every_length_and_kind_come_through() {
        let long = "abcdefghijklmnopqrstuvwxyz0123456789".repeat(3);
        for len in 0..long.len() {
            for odd in ["", "ü", "日", "😀"] {
                let text = format!("{}{odd}{}", &long[..len], &long[..len / 2]);
                let mut out = String::new();
                push_utf16(&mut out, &utf16(&text));
                assert_eq!(out, text);
                // Whatever stands behind it, and whether it ends with a NUL.
                for behind in ["", "\0", "\0y", "ü", "日本語日本語日本語日本語日本語"] {
                    let whole = utf16(&format!("{text}{behind}"));
                    let size =
                        utf16(&text).len() + if behind.starts_with('\0') { behind.len() * 2 } else { 0 };
                    let mut bytes = b"x".to_vec();
                    assert!(!push_utf16_bytes::<true>(&mut bytes, &whole, size));
                    assert_eq!(bytes, format!("x{text}").as_bytes());
                    let percent = utf16(&format!("{odd}{}%", &long[..len]));
                    assert!(push_utf16_bytes::<true>(&mut bytes, &percent, percent.len()));
                    assert!(!push_utf16_bytes::<true>(&mut bytes, &percent, percent.len() - 2));
                }
            }
        }
        let mut out = String::new();
        push_utf16(&mut out, &[0x00, 0xD8, 0x41, 0x00, 0x42]);
        assert_eq!(out, "\u{FFFD}A");
    }
}
