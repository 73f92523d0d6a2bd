//! UTF-16 and code page texts as UTF-8.

/// The text up to its first NUL.
#[inline]
pub fn until_nul(bytes: &[u8]) -> &[u8] {
    // Most strings have their only NUL at the end, if any; look for one eight units at a time.
    let mut at = 0;
    for block in bytes.as_chunks::<16>().0 {
        if has_zero_unit(u128::from_le_bytes(*block)) {
            break;
        }
        at += 16;
    }
    let tail = bytes.get(at..).unwrap_or(&[]);
    let units = tail.as_chunks::<2>().0;
    let end = units.iter().position(|unit| *unit == [0, 0]).unwrap_or(units.len());
    bytes.get(..at + end * 2).unwrap_or(bytes)
}

/// True if one of the eight 16-bit units may be zero (never false if one is).
#[inline]
const fn has_zero_unit(block: u128) -> bool {
    const ONES: u128 = 0x0001_0001_0001_0001_0001_0001_0001_0001;
    const HIGHS: u128 = 0x8000_8000_8000_8000_8000_8000_8000_8000;
    block.wrapping_sub(ONES) & !block & HIGHS != 0
}

/// Appends UTF-16; lone surrogates become U+FFFD, an odd last byte is left out.
#[inline]
pub fn push_utf16(out: &mut String, bytes: &[u8]) {
    let mut rest = bytes;
    out.reserve(bytes.len() / 2);
    while let Some((block, tail)) = rest.split_first_chunk::<32>() {
        let mut narrow = [0u8; 16];
        let mut all = 0u16;
        for (to, unit) in narrow.iter_mut().zip(block.as_chunks::<2>().0) {
            let unit = u16::from_le_bytes(*unit);
            all |= unit;
            *to = unit as u8;
        }
        if all >= 0x80 {
            break;
        }
        out.push_str(std::str::from_utf8(&narrow).unwrap_or(""));
        rest = tail;
    }
    if rest.len() < 32 {
        // The rest of a short text, narrowed at once.
        let mut narrow = [0u8; 16];
        let mut all = 0u16;
        for (to, unit) in narrow.iter_mut().zip(rest.as_chunks::<2>().0) {
            let unit = u16::from_le_bytes(*unit);
            all |= unit;
            *to = unit as u8;
        }
        if all < 0x80 {
            let text = narrow.get(..rest.len() / 2).and_then(|text| std::str::from_utf8(text).ok());
            out.push_str(text.unwrap_or(""));
            return;
        }
    }
    let units = rest.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit));
    out.extend(char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)));
}

/// For each count of units below 16, the words of a block that have them.
const MASKS: [[u64; 4]; 16] = {
    let mut masks = [[0; 4]; 16];
    let mut unit = 0;
    while unit < 15 {
        let mut n = unit + 1;
        while n < 16 {
            masks[n][unit / 4] |= 0xFFFF << (unit % 4 * 16);
            n += 1;
        }
        unit += 1;
    }
    masks
};

/// Sixteen units as bytes, and how many of the first `n` stand before a NUL; `None` if one of them is not ASCII.
#[inline(always)]
fn narrow(block: &[u8; 32], n: usize) -> Option<([u8; 16], usize)> {
    let mut words = [0u64; 4];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    // Units behind the first `n` become NULs, so the text ends there if not before.
    if let Some(masks) = MASKS.get(n) {
        words.iter_mut().zip(masks).for_each(|(word, mask)| *word &= mask);
    }
    if (words[0] | words[1] | words[2] | words[3]) & 0xFF80_FF80_FF80_FF80 != 0 {
        return None;
    }
    Some(packed(words))
}

/// ASCII units as bytes, and how many stand before the first NUL.
#[inline(always)]
fn packed(words: [u64; 4]) -> ([u8; 16], usize) {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let four = |word: u64| {
        let pairs = (word | word >> 8) & 0x0000_FFFF_0000_FFFF;
        u64::from((pairs | pairs >> 16) as u32)
    };
    let low = four(words[0]) | four(words[1]) << 32;
    let high = four(words[2]) | four(words[3]) << 32;
    // Bytes below 0x80: the lowest that borrows is the first NUL.
    let nul = low.wrapping_sub(ONES) & (ONES << 7);
    let len = if nul != 0 {
        nul.trailing_zeros() / 8
    } else {
        // 64 zeros, if there is none.
        8 + (high.wrapping_sub(ONES) & (ONES << 7)).trailing_zeros() / 8
    };
    let mut bytes = [0; 16];
    let (first, last) = bytes.split_at_mut(8);
    first.copy_from_slice(&low.to_le_bytes());
    last.copy_from_slice(&high.to_le_bytes());
    (bytes, len as usize)
}

/// Appends the UTF-16 text in the first `size` bytes, up to its first NUL, to bytes that are UTF-8. What stands behind it may be
/// read, and is not appended.
#[inline]
pub fn push_utf16_bytes(out: &mut Vec<u8>, bytes: &[u8], size: usize) {
    let begin = out.len();
    let (mut rest, mut units) = (bytes, size / 2);
    while units > 0 {
        let n = units.min(16);
        let Some((narrow, len)) = rest.first_chunk::<32>().and_then(|block| narrow(block, n)) else {
            out.truncate(begin);
            return push_utf16_long(out, bytes.get(..size).unwrap_or(bytes));
        };
        let end = out.len() + len;
        out.extend_from_slice(&narrow);
        out.truncate(end);
        if len < n {
            return;
        }
        rest = rest.get(32..).unwrap_or(&[]);
        units -= n;
    }
}

fn push_utf16_long(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut text = String::new();
    push_utf16(&mut text, until_nul(bytes));
    out.extend_from_slice(text.as_bytes());
}

/// As [`push_utf16_bytes`].
#[inline]
pub fn push_utf16_text(out: &mut String, bytes: &[u8], size: usize) {
    let begin = out.len();
    let (mut rest, mut units) = (bytes, size / 2);
    while units > 0 {
        let n = units.min(16);
        let Some((narrow, len)) = rest.first_chunk::<32>().and_then(|block| narrow(block, n)) else {
            out.truncate(begin);
            push_utf16(out, until_nul(bytes.get(..size).unwrap_or(bytes)));
            return;
        };
        let text = narrow.get(..len).and_then(|text| std::str::from_utf8(text).ok());
        out.push_str(text.unwrap_or(""));
        if len < n {
            return;
        }
        rest = rest.get(32..).unwrap_or(&[]);
        units -= n;
    }
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

/// Characters 0x80 to 0x9F of Windows-1252 (unassigned ones stay control characters, as Windows maps them).
const CP1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8D}', 'Ž', '\u{8F}', '\u{90}',
    '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9D}', 'ž', 'Ÿ',
];

/// Appends text of Windows-1252.
pub fn push_ansi(out: &mut String, bytes: &[u8]) {
    out.extend(bytes.iter().map(|byte| match byte {
        0x80..=0x9F => CP1252[usize::from(byte - 0x80)],
        other => char::from(*other),
    }));
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
                    push_utf16_bytes(&mut bytes, &whole, size);
                    assert_eq!(bytes, format!("x{text}").as_bytes());
                    let mut out = "x".to_owned();
                    push_utf16_text(&mut out, &whole, size);
                    assert_eq!(out, format!("x{text}"));
                }
            }
        }
        let mut out = String::new();
        push_utf16(&mut out, &[0x00, 0xD8, 0x41, 0x00, 0x42]);
        assert_eq!(out, "\u{FFFD}A");
    }

    #[test]
    fn units_are_packed_up_to_a_nul() {
        for n in 0..=16 {
            let text = format!("{}\0{}", "x".repeat(n), "yz".repeat(10));
            let units: Vec<u64> = text.encode_utf16().map(u64::from).take(16).collect();
            let words: Vec<u64> =
                units.chunks(4).map(|u| u[0] | u[1] << 16 | u[2] << 32 | u[3] << 48).collect();
            let words = [words[0], words[1], words[2], words[3]];
            let bytes: Vec<u8> = text.bytes().take(16).collect();
            assert_eq!(packed(words), (bytes.try_into().unwrap(), n));
        }
    }

    #[test]
    fn a_text_ends_at_its_first_nul() {
        for len in 0..40 {
            let mut bytes = utf16(&"x".repeat(len));
            assert_eq!(until_nul(&bytes).len(), len * 2);
            bytes.extend([0, 0, b'y', 0]);
            assert_eq!(until_nul(&bytes).len(), len * 2);
        }
        // No unit is zero although bytes are.
        assert_eq!(
            until_nul(&utf16("\u{100}\u{200}\u{100}\u{100}\u{100}\u{100}\u{100}\u{100}\u{1}")).len(),
            18
        );
    }
}
