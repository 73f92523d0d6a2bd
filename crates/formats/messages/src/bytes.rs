//! Parts and texts of bytes that nobody can trust.

use crate::error::Error;
use etwhy_base::{Bytes as _, utf16};

/// Bytes of a resource.
pub(crate) trait Resource {
    /// A part, or the error that names it.
    fn need(&self, structure: &'static str, offset: usize, len: usize) -> Result<&[u8], Error>;
}

impl Resource for [u8] {
    fn need(&self, structure: &'static str, offset: usize, len: usize) -> Result<&[u8], Error> {
        let there = self.len().saturating_sub(offset);
        self.sub(offset, len).ok_or_else(|| Error::truncated(structure, offset, len, there))
    }
}

/// UTF-16LE up to a NUL or the end; what is no valid text becomes U+FFFD.
pub(crate) fn utf16(bytes: &[u8]) -> String {
    utf16::text(utf16::until_nul(bytes))
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
pub(crate) struct Budget {
    left: usize,
    spent: bool,
}

impl Budget {
    /// A budget of so many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Self { left: bytes, spent: false }
    }

    /// Takes bytes from it; false if it is used up.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        match self.left.checked_sub(bytes) {
            Some(rest) => self.left = rest,
            None => self.spent = true,
        }
        !self.spent
    }

    /// Whether it was not enough.
    pub(crate) fn is_spent(&self) -> bool {
        self.spent
    }
}
