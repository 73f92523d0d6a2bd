//! Which characters are safe to show.

/// True for characters that change what a terminal does or how the text around them reads: controls,
/// direction marks (Unicode Technical Report 36, "Bidirectional Text Spoofing"), and invisible ones.
#[inline]
pub fn is_unsafe(c: char) -> bool {
    matches!(c,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}'
            | '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
