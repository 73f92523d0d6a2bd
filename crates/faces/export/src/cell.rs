//! Text in a cell of CSV, so that no spreadsheet runs it.
//!
//! The characters are those of OWASP's page "CSV Injection" (<https://owasp.org/www-community/attacks/CSV_Injection>), full-width
//! forms included.

use std::borrow::Cow;

use crate::{is_unsafe, sanitize};

/// Text that neither a terminal nor a spreadsheet acts on: what a spreadsheet would run as a formula gets a `'` in front, control
/// characters and direction marks become visible ones. Numbers are not texts: do not pass them.
pub fn harmless(text: &str) -> Cow<'_, str> {
    match (sanitize(text), is_formula(text)) {
        (text, true) => Cow::Owned(format!("'{text}")),
        (text, false) => text,
    }
}

/// [`harmless`] text as a cell, in quotes where it needs them (RFC 4180).
pub fn csv_cell(text: &str) -> Cow<'_, str> {
    let text = harmless(text);
    if text.contains([',', '"']) { Cow::Owned(format!("\"{}\"", text.replace('"', "\"\""))) } else { text }
}

/// As [`csv_cell`], but line ends and tabs stay: for texts of several lines, such as messages of event logs.
pub fn csv_lines(text: &str) -> Cow<'_, str> {
    let quoted = text.contains([',', '"', '\n', '\r', '\t']);
    let is_layout = |c: char| matches!(c, '\n' | '\r' | '\t');
    if !quoted && !is_formula(text) && !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut cell = String::with_capacity(text.len() + 3);
    cell.push('"');
    if is_formula(text) {
        cell.push('\'');
    }
    for part in text.split_inclusive(is_layout) {
        let body = part.strip_suffix(is_layout).unwrap_or(part);
        let end = part.get(body.len()..).unwrap_or("");
        cell.push_str(&sanitize(body).replace('"', "\"\""));
        cell.push_str(end);
    }
    cell.push('"');
    Cow::Owned(cell)
}

/// True if a spreadsheet would run it.
fn is_formula(text: &str) -> bool {
    // Spreadsheets pass over blanks in front of a formula.
    text.trim_start_matches(' ').starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_neither_formulas_nor_commands() {
        for (text, cell) in [
            ("solver.exe", "solver.exe"),
            ("a,b", "\"a,b\""),
            ("=1+1", "'=1+1"),
            ("  -x", "'  -x"),
            ("\tx", "'␉x"),
            ("＠x, \"y\"", "\"'＠x, \"\"y\"\"\""),
            ("a\n=b\u{1b}[2J", "a␊=b␛[2J"),
        ] {
            assert_eq!(csv_cell(text), cell, "{text}");
        }
        for (text, cell) in
            [("plain", "plain"), ("a\r\n\t\"b\"\u{1b}", "\"a\r\n\t\"\"b\"\"␛\""), ("-a", "\"'-a\"")]
        {
            assert_eq!(csv_lines(text), cell, "{text}");
        }
    }
}
