//! Reading of little-endian values and texts from bytes that nobody can trust.

use crate::error::Error;

/// Bytes of a resource.
#[derive(Clone, Copy)]
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    /// Number of bytes.
    pub(crate) fn len(self) -> usize {
        self.0.len()
    }

    /// A part, if it is there.
    pub(crate) fn get(self, offset: usize, len: usize) -> Option<&'a [u8]> {
        self.0.get(offset..offset.checked_add(len)?)
    }

    /// A part, or the error that names it.
    pub(crate) fn need(self, structure: &'static str, offset: usize, len: usize) -> Result<Bytes<'a>, Error> {
        self.get(offset, len)
            .map(Bytes)
            .ok_or_else(|| Error::truncated(structure, offset, len, self.len().saturating_sub(offset)))
    }

    /// One byte.
    pub(crate) fn u8(self, offset: usize) -> Option<u8> {
        self.0.get(offset).copied()
    }

    /// Two bytes.
    pub(crate) fn u16(self, offset: usize) -> Option<u16> {
        self.get(offset, 2)?.try_into().ok().map(u16::from_le_bytes)
    }

    /// Four bytes.
    pub(crate) fn u32(self, offset: usize) -> Option<u32> {
        self.get(offset, 4)?.try_into().ok().map(u32::from_le_bytes)
    }

    /// Eight bytes.
    pub(crate) fn u64(self, offset: usize) -> Option<u64> {
        self.get(offset, 8)?.try_into().ok().map(u64::from_le_bytes)
    }
}

/// UTF-16LE up to a NUL or the end; what is no valid text becomes U+FFFD.
pub(crate) fn utf16(bytes: &[u8]) -> String {
    let units = bytes
        .chunks_exact(2)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
        .take_while(|&unit| unit != 0);
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// Text of the code page of Western Europe (1252) up to a NUL, unless it is UTF-8.
///
/// Message tables say that a text is *ANSI* and not of which code page; of the 256 bytes those below 0x80 mean the
/// same everywhere.
pub(crate) fn ansi(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    let bytes = bytes.get(..end).unwrap_or_default();
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.to_owned();
    }
    // https://www.unicode.org/Public/MAPPINGS/VENDORS/MICSFT/WINDOWS/CP1252.TXT
    const HIGH: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
        '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
    ];
    bytes
        .iter()
        .map(|&b| match b {
            0x80..=0x9f => HIGH.get(usize::from(b & 0x1f)).copied().unwrap_or(char::REPLACEMENT_CHARACTER),
            _ => char::from(b),
        })
        .collect()
}

/// How much memory the reading of one file may still take for texts and rows.
///
/// Offsets of a damaged or hostile file may all point to the same long text; without a limit a file of some
/// megabytes would become many gigabytes.
pub(crate) struct Budget(usize);

impl Budget {
    /// A budget of so many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Self(bytes)
    }

    /// Takes bytes from it; false if it is used up.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        match self.0.checked_sub(bytes) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }
}
