//! The terminal: its width, colours, standard output.

use crate::stdout::{Out, watched};
use etwhy_doc::Doc;
use etwhy_doc::terminal::Terminal;
use etwhy_export::sanitize;
use etwhy_export::text::{hanging, wrap};
use std::io::{BufWriter, IsTerminal, Write, stdout};
use std::path::Path;

/// Buffered standard output.
pub fn out() -> BufWriter<Out> {
    BufWriter::with_capacity(1 << 16, watched())
}

/// A path as a result: as it is for programs, without what acts on terminals on one.
pub fn path(path: &Path) -> String {
    let text = path.display().to_string();
    if stdout().is_terminal() { sanitize(&text).into_owned() } else { text }
}

/// Columns to use: those of the terminal, of `COLUMNS`, or 100.
pub fn width() -> usize {
    if let Some(columns) = std::env::var("COLUMNS").ok().and_then(|c| c.parse::<usize>().ok()) {
        return columns.clamp(40, 400);
    }
    terminal_columns().unwrap_or(100).clamp(40, 400)
}

/// Columns to use for what programs read line by line, too: a pipe has none, unless `COLUMNS` gives it some.
pub fn width_of_rows() -> Option<usize> {
    (stdout().is_terminal() || std::env::var_os("COLUMNS").is_some()).then(width)
}

/// An entry of a list: a text behind its head, which goes on below itself where a line ends.
pub fn entry(out: &mut impl Write, head: &str, text: &str) -> std::io::Result<()> {
    let Some(columns) = width_of_rows() else { return writeln!(out, "{head}{text}") };
    let rest = " ".repeat(head.chars().count());
    hanging(head, &rest, text, columns).iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// A manual, whose lines end where those of the source do.
pub fn manual(out: &mut impl Write, text: &str) -> std::io::Result<()> {
    let Some(columns) = width_of_rows() else { return writeln!(out, "{text}") };
    wrap(&joined(text), columns).iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// A text with each paragraph in one line. What looks like a list, a table or code keeps its lines.
fn joined(text: &str) -> String {
    let apart = |line: &str| line.is_empty() || line.starts_with(['-', '*', '|', ' ']);
    let mut out = String::new();
    let mut last_apart = true;
    for line in text.lines() {
        let apart = apart(line);
        if !out.is_empty() {
            out.push(if apart || last_apart { '\n' } else { ' ' });
        }
        out.push_str(line);
        last_apart = apart;
    }
    out
}

fn terminal_columns() -> Option<usize> {
    if !stdout().is_terminal() {
        return None;
    }
    terminal_size::terminal_size().map(|(width, _)| usize::from(width.0))
}

/// True when colours are welcome: a terminal, and `NO_COLOR` is not set.
pub fn color() -> bool {
    stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// How tables are written.
pub fn options(total_rows: Option<usize>) -> etwhy_export::Options {
    let (width, facts) = (Some(width()), Vec::new());
    etwhy_export::Options { width, color: color(), exact: false, hex: false, total_rows, threads: 1, facts }
}

/// A document as text for this terminal.
pub fn text(doc: &Doc) -> String {
    Terminal { columns: width(), color: color() }.render(doc)
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[test]
    fn paragraphs_become_lines_and_lists_stay() {
        assert_eq!(joined("One\ntwo\n\nthree\n- a\n- b\nfour"), "One two\n\nthree\n- a\n- b\nfour");
        assert_eq!(joined(""), "");
    }
}
