//! UTF-16 as Windows writes it, little-endian unless something else is said.

/// Characters of UTF-16 units; lone surrogates become U+FFFD.
#[inline]
pub fn chars(units: impl IntoIterator<Item = u16>) -> impl Iterator<Item = char> {
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
}

/// Bytes as text; lone surrogates become U+FFFD, an odd last byte is left out.
pub fn text(bytes: &[u8]) -> String {
    let units = bytes.as_chunks::<2>().0;
    // Nearly all text of Windows is ASCII, which needs no look at each character.
    if units.iter().fold(0, |bits, unit| bits | u16::from_le_bytes(*unit)) < 0x80
        && let Ok(text) = String::from_utf8(units.iter().map(|unit| unit[0]).collect())
    {
        return text;
    }
    let mut text = String::with_capacity(bytes.len() / 2);
    text.extend(chars(units.iter().map(|unit| u16::from_le_bytes(*unit))));
    text
}

/// Big-endian bytes as text, like [`text`].
pub fn text_be(bytes: &[u8]) -> String {
    chars(bytes.as_chunks::<2>().0.iter().map(|unit| u16::from_be_bytes(*unit))).collect()
}

/// The text up to its first NUL, or all of it.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn le(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn texts_of_bytes() {
        for sample in ["", "plain", "Größe €", "🦀 after"] {
            assert_eq!(text(&le(sample)), sample);
            assert_eq!(
                text_be(&sample.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>()),
                sample
            );
        }
        assert_eq!(text(&[b'a', 0, 0, 0xD8, b'b', 0, 9]), "a\u{fffd}b");
        assert_eq!(until_nul(&[1, 0, 2]), [1, 0]);
    }

    #[test]
    fn a_text_ends_at_its_first_nul() {
        for len in 0..40 {
            let mut bytes = le(&"x".repeat(len));
            assert_eq!(until_nul(&bytes).len(), len * 2);
            bytes.extend([0, 0, b'y', 0]);
            assert_eq!(until_nul(&bytes).len(), len * 2);
        }
        // No unit is zero although bytes are.
        assert_eq!(until_nul(&le("\u{100}\u{200}\u{100}\u{100}\u{100}\u{100}\u{100}\u{100}\u{1}")).len(), 18);
    }
}
