//! Tables within the width of a terminal.

use super::{Look, Terminal, WIDEST_BARS, look, words};
use crate::figure::spark;
use crate::layout::{hanging, pad_end, pad_start, truncate_end, truncate_middle, width, wrap};
use crate::{Column, Fit, Line, Span, Table, sanitize};

/// Columns between cells.
const GAP: usize = 2;

/// The lines of a table.
pub(super) fn lines(table: &Table, terminal: Terminal, columns: usize, indent: usize) -> Vec<String> {
    let heads: Vec<String> =
        table.columns.iter().map(|column| sanitize(&column.title()).into_owned()).collect();
    let cells: Vec<Vec<String>> = table.rows.iter().map(|row| row.iter().map(words).collect()).collect();
    let widths = fit(&table.columns, &heads, &cells, columns.saturating_sub(indent));
    let mut page =
        Lines { widths: &widths, columns: &table.columns, indent, most: columns, lines: Vec::new() };
    if table.has_head() {
        page.groups();
        page.row(&heads, &[], terminal, Look::Bold);
    }
    for (row, texts) in table.rows.iter().zip(&cells) {
        page.row(texts, row, terminal, Look::Plain);
    }
    let mut lines = page.lines;
    lines.extend(table.rest().map(|rest| format!("{}{}", pad_end("", indent), sanitize(&rest))));
    if table.names_left_out && widths.len() < heads.len() {
        let names: Vec<&str> = heads.iter().skip(widths.len()).map(String::as_str).collect();
        let text = format!("left out: {} (COLUMNS=200 shows them)", names.join("; "));
        let blank = pad_end("", indent);
        lines.extend(hanging(&blank, &blank, &text, columns));
    }
    lines
}

/// Widths of the columns from the left; those beyond them have no room.
fn fit(columns: &[Column], heads: &[String], cells: &[Vec<String>], room: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = heads.iter().map(|head| width(head)).collect();
    for row in cells {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = width(cell).max(*widest);
        }
    }
    for (width, column) in widths.iter_mut().zip(columns) {
        *width = match column.fit {
            Fit::Rest => column.least,
            Fit::Whole => *width,
            Fit::Cut | Fit::Wrap => (*width).min(room),
        };
    }
    let needed = |widths: &[usize]| widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
    let least = |widths: &[usize]| -> Vec<usize> {
        let narrow = |(width, column): (&usize, &Column)| match column.fit {
            Fit::Cut | Fit::Wrap => (*width).min(column.least),
            Fit::Whole | Fit::Rest => *width,
        };
        widths.iter().zip(columns).map(narrow).collect()
    };
    // Bars go first, then the last columns, which say least.
    while widths.len() > 1 && needed(&least(&widths)) > room {
        widths.pop();
    }
    // Sentences give way before names, the widest of them first.
    for kind in [Fit::Wrap, Fit::Cut] {
        while needed(&widths) > room {
            let can = |(width, column): &(&mut usize, &Column)| column.fit == kind && **width > column.least;
            let Some((widest, _)) =
                widths.iter_mut().zip(columns).filter(can).max_by_key(|(width, _)| **width)
            else {
                break;
            };
            *widest -= 1;
        }
    }
    let rest = room.saturating_sub(needed(&widths));
    for (width, _) in widths.iter_mut().zip(columns).filter(|(_, column)| column.fit == Fit::Rest) {
        *width = (*width + rest).min(WIDEST_BARS);
    }
    widths
}

struct Lines<'a> {
    widths: &'a [usize],
    columns: &'a [Column],
    indent: usize,
    most: usize,
    lines: Vec<String>,
}

impl Lines<'_> {
    /// The headings that columns share.
    fn groups(&mut self) {
        if self.columns.iter().all(|column| column.group.is_empty()) {
            return;
        }
        let (mut line, mut used, mut last) = (pad_end("", self.indent), self.indent, "");
        for (column, width) in self.columns.iter().zip(self.widths) {
            if column.group != last && !column.group.is_empty() {
                line = format!("{}{}", pad_end(line.trim_end(), used), sanitize(&column.group));
            }
            last = &column.group;
            used += width + GAP;
        }
        self.lines.push(truncate_end(line.trim_end(), self.most));
    }

    fn row(&mut self, texts: &[String], spans: &[Line], terminal: Terminal, plain: Look) {
        let cell = |at: usize| texts.get(at).map_or("", String::as_str);
        let of = |at: usize| spans.get(at).map_or(plain, look);
        let pieces: Vec<Vec<String>> =
            (0..self.widths.len()).map(|at| self.pieces(at, cell(at), spans.get(at))).collect();
        for n in 0..pieces.iter().map(Vec::len).max().unwrap_or(0) {
            let (mut line, mut used) = (pad_end("", self.indent), 0);
            for (at, (column, most)) in self.columns.iter().zip(self.widths).enumerate() {
                let text = pieces.get(at).and_then(|pieces| pieces.get(n)).map_or("", String::as_str);
                let padded = if column.right { pad_start(text, *most) } else { pad_end(text, *most) };
                let gap = if at > 0 { GAP } else { 0 };
                // Only numbers, which nobody cuts, can be wider than the terminal.
                let padded = truncate_end(&padded, self.most.saturating_sub(self.indent + used + gap));
                line.push_str(&pad_end("", gap));
                line.push_str(&terminal.paint(&padded, of(at)));
                used += gap + width(&padded);
            }
            self.lines.push(line.trim_end().to_owned());
        }
    }

    /// The lines of a cell.
    fn pieces(&self, at: usize, text: &str, line: Option<&Line>) -> Vec<String> {
        let most = self.widths.get(at).copied().unwrap_or(0);
        match (self.columns.get(at).map(|column| column.fit), line.map(|line| line.0.as_slice())) {
            (Some(Fit::Rest), Some([Span::Spark(values, whole)])) => vec![spark(values, *whole, most)],
            (Some(Fit::Wrap), _) => wrap(text, most),
            (Some(Fit::Whole), _) => vec![text.to_owned()],
            _ => vec![truncate_middle(text, most)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(columns: usize) -> Vec<String> {
        let mut table = Table::new([
            Column::name("process"),
            Column::number("time").unit("ms"),
            Column::text("what it did").least(10),
            Column::word("state"),
        ]);
        table.row(["a rather long name.exe", "1.5", "it waited for the disk", "ended"].map(Line::from));
        lines(&table, Terminal::plain(columns), columns, 0)
    }

    #[test]
    fn columns_give_way_in_turn() {
        assert_eq!(
            shown(80),
            [
                "process                 time (ms)  what it did             state",
                "a rather long name.exe        1.5  it waited for the disk  ended"
            ]
        );
        assert_eq!(shown(50)[2], "a rather …g name.exe        1.5  it waited   ended");
        // Less says less, from the right.
        assert!(shown(30).iter().all(|line| width(line) <= 30 && !line.contains("ended")), "{:?}", shown(30));
    }

    #[test]
    fn columns_share_headings_and_bars_take_what_is_left() {
        let spark = || Line::from(Span::Spark(vec![Some(0.0), Some(50.0), None, Some(100.0)], 100.0));
        let mut table = Table::new([
            Column::word("cpu"),
            Column::number("mean").below("% DPC Time"),
            Column::number("max").below("% DPC Time"),
            Column::rest(""),
        ]);
        table.row(["0".into(), "12".into(), "100".into(), spark()]);
        let text = lines(&table, Terminal::plain(40), 40, 2);
        assert_eq!(text, ["       % DPC Time", "  cpu  mean  max", "  0      12  100  ▁▅ █"]);
        assert_eq!(lines(&table, Terminal::plain(22), 22, 2)[2], "  0      12  100");
    }
}
