//! Text from a trace in Markdown, so that it stays text.
//!
//! GitHub reads more than CommonMark: mentions, numbers of issues, bare addresses, mathematics. All of it is off inside code
//! spans, so names are code spans.

use crate::layout::truncate_middle;
use crate::sanitize;

/// Longest name that is shown whole.
const NAME: usize = 200;
/// Longest text of prose.
const PROSE: usize = 4000;

/// A name from a trace as a code span, also in a cell of a table.
pub fn code(name: &str) -> String {
    let name = truncate_middle(&sanitize(name), NAME);
    let name = name.trim();
    if name.is_empty() {
        return "–".to_owned();
    }
    // In a cell a bar ends the code span, whatever stands before it; a backtick would need longer fences.
    if !name.contains(['|', '`']) {
        return format!("`{name}`");
    }
    // References to characters are never markup (CommonMark, "Entity and numeric character references").
    let mut out = String::from("<code>");
    for c in name.chars() {
        if c.is_ascii_punctuation() {
            out.push_str(&format!("&#{};", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out.push_str("</code>");
    out
}

/// A text of ours that may hold names from a trace, in a paragraph, a list item or a cell. One line.
pub fn prose(text: &str) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = truncate_middle(&sanitize(&joined), PROSE);
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '|' => out.push_str("&#124;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '~' | '$' | '!' => {
                out.push('\\');
                out.push(c);
            }
            // The empty comment ends what would be a mention, an issue or a mail address.
            '@' | '#' => {
                out.push(c);
                out.push_str("<!-- -->");
            }
            ':' if text.get(at..).is_some_and(|rest| rest.starts_with("://")) => out.push_str("&#58;"),
            '.' if text.get(..at).is_some_and(ends_with_www) => out.push_str("&#46;"),
            // At the start of a line these make lists and headings.
            '-' | '+' | '=' if at == 0 => {
                out.push('\\');
                out.push(c);
            }
            '.' | ')'
                if text.get(..at).is_some_and(|head| head.bytes().all(|b| b.is_ascii_digit()))
                    && text.get(at + 1..).is_none_or(|rest| rest.is_empty() || rest.starts_with(' ')) =>
            {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

fn ends_with_www(head: &str) -> bool {
    head.len().checked_sub(3).and_then(|from| head.get(from..)).is_some_and(|w| w.eq_ignore_ascii_case("www"))
}

/// A block of code with a fence that nothing in it closes.
pub fn block(language: &str, text: &str) -> String {
    let lines: Vec<String> =
        text.lines().map(|line| sanitize(&line.replace('\t', "    ")).into_owned()).collect();
    let text = lines.join("\n");
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.saturating_add(1).max(3));
    format!("{fence}{language}\n{text}\n{fence}\n")
}

/// The address of a source as a link, if it is one that browsers open without harm; else as text.
pub fn reference(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/:.-_%?=&#+~".contains(c);
    if text.starts_with("https://") && text.chars().all(plain) { format!("<{text}>") } else { prose(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_text() {
        assert_eq!(code("solver.exe"), "`solver.exe`");
        assert_eq!(code("<img src=x onerror=alert(1)>"), "`<img src=x onerror=alert(1)>`");
        assert_eq!(code("a|b"), "<code>a&#124;b</code>");
        assert_eq!(code("a\\|`x"), "<code>a&#92;&#124;&#96;x</code>");
        assert_eq!(code("exe.\u{202e}fdp\u{1b}[2J\n| x"), "<code>exe&#46;�fdp␛&#91;2J␊&#124; x</code>");
        assert_eq!(code(" \u{20}"), "–");
        assert_eq!(code(&"A".repeat(30_000)).chars().count(), NAME + 2);
    }

    #[test]
    fn prose_has_no_markup() {
        assert_eq!(
            prose("<b>x</b> | *a* _b_ [c](d) `e` \\ ~~f~~ $g$ ![h](i) @me #12 &amp;"),
            "&lt;b&gt;x&lt;/b&gt; &#124; \\*a\\* \\_b\\_ \\[c\\](d) \\`e\\` \\\\ \\~\\~f\\~\\~ \\$g\\$ \\!\\[h\\](i) \
             @<!-- -->me #<!-- -->12 &amp;amp;"
        );
        assert_eq!(prose("see http://x.y www.z.y"), "see http&#58;//x.y www&#46;z.y");
        assert_eq!(prose("- a\n# b"), "\\- a #<!-- --> b");
        assert_eq!(prose("12. x"), "12\\. x");
    }

    #[test]
    fn fences_are_longer_than_what_they_hold() {
        assert_eq!(block("sql", "SELECT 1\n````\n<x>"), "`````sql\nSELECT 1\n````\n<x>\n`````\n");
        assert_eq!(reference("https://learn.microsoft.com/a?b=c"), "<https://learn.microsoft.com/a?b=c>");
        assert_eq!(reference("https://x> <y"), "https&#58;//x&gt; &lt;y");
    }
}
