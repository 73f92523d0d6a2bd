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

/// As [`push_utf16`], to bytes that are UTF-8: without the check that a `String` makes of each piece.
#[inline]
pub fn push_utf16_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let begin = out.len();
    let units = bytes.as_chunks::<2>().0;
    let mut all = 0u16;
    out.extend(units.iter().map(|unit| {
        let unit = u16::from_le_bytes(*unit);
        all |= unit;
        unit as u8
    }));
    if all >= 0x80 {
        out.truncate(begin);
        let mut text = String::new();
        push_utf16(&mut text, bytes);
        out.extend_from_slice(text.as_bytes());
    }
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
                let mut bytes = b"x".to_vec();
                push_utf16_bytes(&mut bytes, &utf16(&text));
                assert_eq!(bytes, format!("x{text}").as_bytes());
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
