//! Text from a trace, made safe to show.

use etwhy_base::is_unsafe;
use std::borrow::Cow;

/// Replaces each unsafe character by one that can be seen: controls by their Unicode picture (`␛`), all
/// others by `�`. Text without any is not copied.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    // Printable ASCII, the common case, is decided without decoding.
    if text.bytes().all(|b| matches!(b, 0x20..=0x7e)) || !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let visible = |c: char| match c {
        // The block "Control Pictures" has the 32 ASCII controls in order.
        '\0'..='\u{1f}' => char::from_u32(0x2400 + c as u32).unwrap_or('\u{fffd}'),
        '\u{7f}' => '\u{2421}',
        c if is_unsafe(c) => '\u{fffd}',
        c => c,
    };
    Cow::Owned(text.chars().map(visible).collect())
}

/// JSON in which what is unsafe is written as `\u` escapes, which any reader turns back. `None` if there is nothing of it: outside of
/// strings JSON has none, and controls of ASCII are escapes already. Line ends between values stay.
pub fn escape_json(json: &str) -> Option<String> {
    let unsafe_in_json = |c: char| c != '\n' && is_unsafe(c);
    if !json.bytes().any(|b| b >= 0x7f) || !json.contains(unsafe_in_json) {
        return None;
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if unsafe_in_json(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
    }
    Some(out)
}

/// Text for HTML and XML: markup becomes text, unsafe characters become visible as [`sanitize`] shows them, and those that XML 1.0 forbids
/// besides are replaced.
pub fn escape_markup(text: &str) -> String {
    let clean = sanitize(text);
    let mut out = String::with_capacity(clean.len());
    for c in clean.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\u{FFFE}' | '\u{FFFF}' => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal() {
        assert_eq!(sanitize("\u{1b}[31mred\u{7}"), "␛[31mred␇");
        assert_eq!(sanitize("exe.\u{202e}fdp"), "exe.�fdp");
        assert_eq!(sanitize("a\nb\tc\r\u{7f}\u{9b}2J"), "a␊b␉c␍␡�2J");
        assert_eq!(sanitize("zero\u{200b}width\u{feff}"), "zero�width�");
        assert!(matches!(sanitize("Größe 日本.exe"), Cow::Borrowed("Größe 日本.exe")));
    }
    #[test]
    fn nothing_becomes_markup() {
        assert_eq!(
            escape_markup("<img src=x onerror='a(\"b\")'> & c"),
            "&lt;img src=x onerror=&#39;a(&quot;b&quot;)&#39;&gt; &amp; c"
        );
        // XML 1.0 (2.2): control characters but three, and these two, are no characters.
        assert_eq!(escape_markup("a\u{1}b\nc\u{fffe}d\u{ffff}"), "a␁b␊c\u{fffd}d\u{fffd}");
    }
}
