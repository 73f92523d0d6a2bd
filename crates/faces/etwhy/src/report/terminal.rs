//! The terminal: its width, colours, standard output.

use crate::stdout::{Out, watched};
use etwhy_doc::Doc;
use etwhy_doc::terminal::Terminal;
use std::io::{BufWriter, IsTerminal, stdout};

/// Buffered standard output.
pub fn out() -> BufWriter<Out> {
    BufWriter::with_capacity(1 << 16, watched())
}

/// Columns to use: those of the terminal, of `COLUMNS`, or 100.
pub fn width() -> usize {
    if let Some(columns) = std::env::var("COLUMNS").ok().and_then(|c| c.parse::<usize>().ok()) {
        return columns.clamp(40, 400);
    }
    terminal_columns().unwrap_or(100).clamp(40, 400)
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
