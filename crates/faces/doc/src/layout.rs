//! Layout of plain text: widths, wrapping, boxes and bars.
//!
//! Widths are terminal columns (Unicode Standard Annex 11): `日` takes two. Callers pass text that is
//! already [`sanitize`](crate::sanitize)d.

use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns that `text` takes.
pub fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.width() }
}

/// The text with blanks after it, `columns` wide at least. (`format!` cannot do it: it panics at 65,536 columns.)
pub fn pad_end(text: &str, columns: usize) -> String {
    let mut padded = text.to_owned();
    padded.extend(std::iter::repeat_n(' ', columns.saturating_sub(width(text))));
    padded
}

/// The text with blanks before it, `columns` wide at least.
pub fn pad_start(text: &str, columns: usize) -> String {
    let mut padded = " ".repeat(columns.saturating_sub(width(text)));
    padded.push_str(text);
    padded
}

/// The longest beginning of `text` that fits into `columns`.
fn head(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > columns {
            return text.get(..at).unwrap_or(text);
        }
    }
    text
}

/// The longest end of `text` that fits into `columns`.
fn tail(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices().rev() {
        used += c.width().unwrap_or(0);
        if used > columns {
            return text.get(at + c.len_utf8()..).unwrap_or("");
        }
    }
    text
}

/// The text with `…` in place of its middle, at most `columns` wide: paths tell most at their ends.
pub fn truncate_middle(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    match columns {
        0 => String::new(),
        1 => "…".to_owned(),
        // The end gets the larger half: it has the file's name.
        _ => format!("{}…{}", head(text, (columns - 1) / 2), tail(text, columns / 2)),
    }
}

/// The text with `…` in place of its end, at most `columns` wide.
pub fn truncate_end(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    if columns == 0 { String::new() } else { format!("{}…", head(text, columns - 1)) }
}

/// What stands behind a number belongs to it: a line that ends between both is read twice.
const UNITS: &[&str] = &[
    "%", "/", "ns", "µs", "ms", "s", "min", "h", "B", "KB", "MB", "GB", "KiB", "MiB", "GiB", "J", "mJ", "kJ",
    "W", "Wh", "×",
];

/// Holds two words together.
const NO_BREAK: char = '\u{a0}';

/// The words with one blank between them, those that belong together with [`NO_BREAK`].
fn joined(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for word in line.split_whitespace() {
        if let Some(last) = out.chars().last() {
            let unit = UNITS.contains(&word.trim_end_matches([',', '.', ';', ':', ')']));
            let per = last == '/' && out.chars().rev().nth(1) == Some(NO_BREAK);
            out.push(if per || (unit && last.is_ascii_digit()) { NO_BREAK } else { ' ' });
        }
        out.push_str(word);
    }
    out
}

/// Paragraphs, broken at blanks into lines of at most `columns`, but not between a number and its unit. Words that are longer are broken where
/// the line ends. Line ends in `text` stay.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let options = Options::new(columns.max(1))
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit);
    let lines = |text: String| {
        textwrap::wrap(&text, &options)
            .into_iter()
            .map(|line| line.replace(NO_BREAK, " "))
            .collect::<Vec<_>>()
    };
    text.lines().map(joined).flat_map(lines).collect()
}

/// A wrapped text whose first line begins with `first` and every other one with `rest`, the prefixes
/// included in `columns`: list items and labelled paragraphs.
pub fn hanging(first: &str, rest: &str, text: &str, columns: usize) -> Vec<String> {
    let room = columns.saturating_sub(width(first).max(width(rest)));
    let mut lines = wrap(text, room);
    for (i, line) in lines.iter_mut().enumerate() {
        *line = format!("{}{line}", if i == 0 { first } else { rest }).trim_end().to_owned();
    }
    lines
}

/// Lines in a box, `columns` wide in all, with a title in its upper edge. Lines that do not fit are cut.
pub fn boxed(title: &str, lines: &[String], columns: usize) -> Vec<String> {
    let inner = columns.saturating_sub(4).max(1);
    let title = truncate_end(title, inner.saturating_sub(2));
    let mut out = Vec::with_capacity(lines.len() + 2);
    let title = if title.is_empty() { String::new() } else { format!(" {title} ") };
    out.push(format!("╭─{title}{}╮", "─".repeat((inner + 1).saturating_sub(width(&title)))));
    out.extend(lines.iter().map(|line| format!("│ {} │", pad_end(&truncate_end(line, inner), inner))));
    out.push(format!("╰{}╯", "─".repeat(inner + 2)));
    out
}

/// A horizontal bar for a share between 0 and 1, exact to an eighth of a column; blanks fill it up to
/// `columns`. A share above zero shows at least a sliver.
pub fn bar(share: f64, columns: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
    let mut eighths = (share * columns as f64 * 8.0).round() as usize;
    if share > 0.0 && columns > 0 {
        eighths = eighths.max(1);
    }
    let part = EIGHTHS.get(eighths % 8).copied().unwrap_or_default();
    pad_end(&format!("{}{part}", "█".repeat(eighths / 8)), columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stays_with_its_unit() {
        assert_eq!(
            wrap("it took 14.4 / s of 100 GiB, 3 s", 10),
            ["it took", "14.4 / s", "of", "100 GiB,", "3 s"]
        );
        assert_eq!(wrap("in / out", 4), ["in /", "out"]);
    }

    #[test]
    fn blanks_have_no_limit() {
        assert_eq!((pad_end("ab", 70_000).len(), pad_start("ab", 70_000).len()), (70_000, 70_000));
        assert_eq!((pad_end("日", 4), pad_start("日", 4)), ("日  ".into(), "  日".into()));
        assert_eq!(pad_end("long", 2), "long");
    }

    #[test]
    fn cuts_respect_width() {
        assert_eq!(
            truncate_middle("C:\\Windows\\System32\\ntdll.dll", 16),
            "C:\\Wind…ntdll.dll"[..].replace("ntdll", "tdll")
        );
        assert_eq!(truncate_middle("short", 5), "short");
        assert_eq!(truncate_middle("日本語日本語", 6), "日…語");
        assert_eq!(truncate_end("日本語", 4), "日…");
        for columns in 0..12 {
            assert!(width(&truncate_middle("日a本b語c日本語", columns)) <= columns);
            assert!(width(&truncate_end("日a本b語c日本語", columns)) <= columns);
        }
    }

    #[test]
    fn paragraphs_wrap() {
        assert_eq!(wrap("one two three\n\nfour", 8), ["one two", "three", "", "four"]);
        assert_eq!(wrap("abcdefghij x", 4), ["abcd", "efgh", "ij x"]);
        assert_eq!(wrap("a abcdefgh", 4), ["a", "abcd", "efgh"]);
        assert_eq!(wrap("日本", 1), ["日", "本"]);
        assert_eq!(wrap("", 10), Vec::<String>::new());
        assert_eq!(hanging("* ", "  ", "one two three", 9), ["* one two", "  three"]);
    }

    #[test]
    fn boxes_are_even() {
        let lines = boxed("Title", &["one".to_owned(), "a line that is too long".to_owned()], 16);
        assert_eq!(lines, ["╭─ Title ──────╮", "│ one          │", "│ a line that… │", "╰──────────────╯"]);
        assert!(boxed("", &[], 10).iter().all(|line| width(line) == 10));
    }

    #[test]
    fn bars_are_proportional() {
        assert_eq!(bar(0.5, 4), "██  ");
        assert_eq!(bar(1.0, 3), "███");
        assert_eq!(bar(2.0, 3), "███");
        assert_eq!(bar(0.0, 2), "  ");
        assert_eq!(bar(1e-9, 2), "▏ ");
        assert_eq!(bar(f64::NAN, 2), "  ");
        assert_eq!(bar(0.5, 1), "▌");
    }
}
