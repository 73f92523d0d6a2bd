//! Text as it stands in a payload. It is turned into a `str` only when somebody looks at it.

use etwhy_base::utf16;
use std::borrow::Cow;
use std::fmt;

/// Text of a payload, without the nul that ended it, in the encoding it was written in.
#[derive(Clone, Copy)]
pub struct Text<'a> {
    bytes: &'a [u8],
    wide: bool,
}

impl<'a> Text<'a> {
    /// UTF-16LE; an odd last byte is ignored.
    #[inline]
    pub fn utf16(bytes: &'a [u8]) -> Text<'a> {
        Text { bytes, wide: true }
    }

    /// 8-bit characters: UTF-8 if they are valid as such, else Latin-1.
    #[inline]
    pub fn ansi(bytes: &'a [u8]) -> Text<'a> {
        Text { bytes, wide: false }
    }

    /// The text; lone surrogates become U+FFFD. Costs a conversion unless it is UTF-8 already.
    pub fn to_str(self) -> Cow<'a, str> {
        if self.wide { Cow::Owned(utf16::text(self.bytes)) } else { text8(self.bytes) }
    }

    /// True when there is no character.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.bytes.len() < if self.wide { 2 } else { 1 }
    }

    /// The bytes in the payload, and true when they are UTF-16LE.
    #[inline]
    pub fn raw(self) -> (&'a [u8], bool) {
        (self.bytes, self.wide)
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Text<'a> {
        Text::ansi(text.as_bytes())
    }
}

/// Equal when the characters are, whatever the encoding.
impl PartialEq for Text<'_> {
    fn eq(&self, other: &Text<'_>) -> bool {
        self.raw() == other.raw() || self.to_str() == other.to_str()
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.to_str(), f)
    }
}

/// 8-bit text: UTF-8 if it is valid, else each byte is one Latin-1 character. The code page of the
/// writer is not recorded, and modern writers use UTF-8.
pub(crate) fn text8(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().map(|b| char::from(*b)).collect()),
    }
}

/// Number of UTF-16 units in front of the first nul.
#[inline]
pub(crate) fn nul16(bytes: &[u8]) -> Option<usize> {
    let text = utf16::until_nul(bytes).len();
    bytes.get(text + 1).map(|_| text / 2)
}

/// Number of bytes in front of the first nul.
#[inline]
pub(crate) fn nul8(bytes: &[u8]) -> Option<usize> {
    let (words, _) = bytes.as_chunks::<8>();
    for (i, word) in words.iter().enumerate() {
        // The top bits of bytes that are zero; those above the lowest such byte may be marked wrongly.
        let word = u64::from_le_bytes(*word);
        let zeros = word.wrapping_sub(0x0101_0101_0101_0101) & !word & 0x8080_8080_8080_8080;
        if zeros != 0 {
            return Some(8 * i + zeros.trailing_zeros() as usize / 8);
        }
    }
    let done = 8 * words.len();
    bytes.get(done..).unwrap_or(&[]).iter().position(|b| *b == 0).map(|at| done + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_decoded_leniently() {
        assert_eq!(utf16::text(&[0x41, 0, 0x00, 0xD8, 0x42, 0, 0x43]), "A\u{FFFD}B");
        assert_eq!(utf16::text(&[0x41, 0, 0x42, 0, 0x43]), "AB");
        assert_eq!(utf16::text(&[0x41, 0, 0x41, 1]), "A\u{141}");
        assert_eq!(text8(b"gr\xfcn"), "grün");
        assert_eq!(text8("grün".as_bytes()), "grün");
    }

    #[test]
    fn texts_are_equal_in_any_encoding() {
        assert_eq!(Text::utf16(b"h\0i\0"), "hi".into());
        assert_eq!(Text::utf16(b"h\0i\0!"), "hi".into());
        assert_ne!(Text::ansi(b"h\0i\0"), "hi".into());
        assert!(Text::utf16(b"h").is_empty() && !Text::ansi(b"h").is_empty());
        assert_eq!(format!("{:?}", Text::utf16(b"h\0\"\0")), r#""h\"""#);
    }

    #[test]
    fn nuls_are_found_wherever_they_stand() {
        for len in 0..40 {
            let mut bytes = vec![0x80u8; len];
            assert_eq!((nul8(&bytes), nul16(&bytes)), (None, None));
            for at in 0..len {
                bytes.fill(1);
                bytes[at] = 0;
                assert_eq!(nul8(&bytes), Some(at));
                assert_eq!(nul16(&bytes), None, "half a unit is no nul");
                if let Some(next) = bytes.get_mut(at + 1) {
                    *next = 0;
                    assert_eq!(nul8(&bytes), Some(at));
                    assert_eq!(nul16(&bytes), (at % 2 == 0).then_some(at / 2));
                }
                bytes[at..].fill(0);
                assert_eq!(
                    nul16(&bytes),
                    (len - at.next_multiple_of(2).min(len) >= 2).then_some(at.div_ceil(2))
                );
            }
        }
    }
}
