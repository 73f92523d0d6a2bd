//! Texts of Windows-1252 as UTF-8.

use super::out::Out;

/// Characters 0x80 to 0x9F of Windows-1252 (unassigned ones stay control characters, as Windows maps them).
const CP1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8D}', 'Ž', '\u{8F}', '\u{90}',
    '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9D}', 'ž', 'Ÿ',
];

/// Appends text of Windows-1252.
pub fn push_ansi(out: &mut impl Out, bytes: &[u8]) {
    if bytes.is_ascii() {
        return out.ascii(bytes);
    }
    ansi(bytes).for_each(|c| out.char(c));
}

/// Characters of a text of Windows-1252.
pub(super) fn ansi(bytes: &[u8]) -> impl Iterator<Item = char> {
    bytes.iter().map(|byte| match byte {
        0x80..=0x9F => CP1252[usize::from(byte - 0x80)],
        other => char::from(*other),
    })
}
