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

/// Bytes of the ASCII text in the first `n` units of a block of `4 * W` units, up to its first NUL, and how many they are; `None` if
/// one is not ASCII. What stands behind may be anything.
#[inline(always)]
fn narrow<const W: usize>(block: &[u8], n: usize) -> Option<([u32; W], usize)> {
    let mut words = [0u64; W];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    // Units behind the first `n` become NULs, so the text ends there if not before.
    if let Some(masks) = MASKS.get(n) {
        words.iter_mut().zip(masks).for_each(|(word, mask)| *word &= mask);
    }
    if words.iter().fold(0, |all, word| all | word) & 0xFF80_FF80_FF80_FF80 != 0 {
        return None;
    }
    let mut narrow = [0u32; W];
    for (to, word) in narrow.iter_mut().zip(words) {
        let pairs = (word | word >> 8) & 0x0000_FFFF_0000_FFFF;
        *to = (pairs | pairs >> 16) as u32;
    }
    // Of bytes below 0x80, the lowest that borrows is the first NUL.
    let nul = |bytes: u32| bytes.wrapping_sub(0x0101_0101) & 0x8080_8080;
    let mut len = W * 4;
    for (at, bytes) in narrow.iter().enumerate().rev() {
        let nul = nul(*bytes);
        if nul != 0 {
            len = at * 4 + nul.trailing_zeros() as usize / 8;
        }
    }
    Some((narrow, len))
}

/// Appends the UTF-16 text in the first `size` bytes, up to its first NUL, to bytes that are UTF-8. What stands behind it may be
/// read, and is not appended.
#[inline]
pub fn push_utf16_bytes(out: &mut Vec<u8>, bytes: &[u8], size: usize) {
    let units = size / 2;
    let begin = out.len();
    if units <= 8
        && let Some(block) = bytes.first_chunk::<16>()
        && let Some(([a, b], len)) = narrow::<2>(block, units)
    {
        out.extend_from_slice(&(u64::from(a) | u64::from(b) << 32).to_le_bytes());
        out.truncate(begin + len);
    } else if units <= 16
        && let Some(block) = bytes.first_chunk::<32>()
        && let Some((words, len)) = narrow::<4>(block, units)
    {
        out.extend_from_slice(words.map(u32::to_le_bytes).as_flattened());
        out.truncate(begin + len);
    } else {
        push_utf16_long(out, bytes.get(..size).unwrap_or(bytes));
    }
}

/// True if all units are ASCII and none is NUL.
fn is_plain(bytes: &[u8]) -> bool {
    const ONES: u64 = 0x0001_0001_0001_0001;
    let (words, rest) = bytes.as_chunks::<8>();
    let (mut all, mut nul) = (0u64, 0u64);
    for word in words {
        let word = u64::from_le_bytes(*word);
        all |= word;
        // Of units below 0x80, a NUL is the lowest that borrows.
        nul |= word.wrapping_sub(ONES);
    }
    let rest = rest.as_chunks::<2>().0;
    all & 0xFF80_FF80_FF80_FF80 == 0
        && nul & (ONES << 15) == 0
        && rest.iter().all(|[low, high]| *high == 0 && (1..0x80).contains(low))
}

fn push_utf16_long(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut bytes = bytes;
    let mut plain = is_plain(bytes);
    if !plain {
        bytes = until_nul(bytes);
        plain = is_plain(bytes);
    }
    if plain {
        out.extend(bytes.as_chunks::<2>().0.iter().map(|[low, _]| *low));
    } else {
        let mut text = String::new();
        push_utf16(&mut text, bytes);
        out.extend_from_slice(text.as_bytes());
    }
}

/// Sixteen bytes where a check for UTF-8 takes them in two steps.
#[repr(align(16))]
struct Aligned([u8; 16]);

/// As [`push_utf16_bytes`].
#[inline]
pub fn push_utf16_text(out: &mut String, bytes: &[u8], size: usize) {
    let begin = out.len();
    let (mut rest, mut units) = (bytes, size / 2);
    while units > 0 {
        let n = units.min(16);
        let Some((words, len)) = rest.first_chunk::<32>().and_then(|block| narrow::<4>(block, n)) else {
            out.truncate(begin);
            return push_utf16(out, until_nul(bytes.get(..size).unwrap_or(bytes)));
        };
        let mut block = Aligned([0; 16]);
        block.0.copy_from_slice(words.map(u32::to_le_bytes).as_flattened());
        // Behind the text are zeros, which are text as well.
        let text = std::str::from_utf8(&block.0).unwrap_or("");
        out.push_str(text.get(..len).unwrap_or(""));
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
