//! The table for eyes.
//!
//! * Numbers stand to the right with `,` between thousands; ids without. Spans and points of time and
//!   sizes are shown in one unit per column, which the header spells as filters do (`wait_ms`).
//! * Where the terminal is too narrow, texts lose their middle; if that is not enough the last columns go,
//!   and a line below says which.
//! * Every cell is [`sanitize`](crate::sanitize)d.

mod cells;
mod fit;

use std::io::Write;

use etwhy_table::Selection;

use crate::text::{pad_end, pad_start, truncate_middle};
use crate::{Format, Options, Result};
use etwhy_base::units::thousands;

use cells::Column;

pub(super) const FORMATS: &[Format] = &[Format {
    name: "table",
    extensions: &["txt"],
    about: "a table for people: readable units, fitted to the terminal",
    binary: false,
    write,
    parts: None,
}];

/// Widths and units follow from so many rows at the beginning. Longer tables are not for eyes; their
/// later cells may stand out.
const MEASURED_ROWS: usize = 10_000;

const BOLD: &str = "\u{1b}[1m";
const DIM: &str = "\u{1b}[2m";
const RESET: &str = "\u{1b}[0m";

/// Cells are filled up to this width. Where lines may be as long as they get, one long text would otherwise fill all
/// rows with blanks.
const MOST_PADDED: usize = 1000;

/// Blanks between columns.
const GAP: &str = "  ";

fn write(selection: &Selection<'_>, options: &Options, out: &mut (dyn Write + Send)) -> Result<()> {
    let columns = Column::measure(selection, MEASURED_ROWS);
    let reader = selection.reader();
    let cell = |column: &Column, shown: usize, row: u32| column.cell(reader.stored(row, shown));

    // Measured rows are formatted once and kept; there are few of them.
    let measured: Vec<Vec<String>> = selection
        .row_ids()
        .take(MEASURED_ROWS)
        .map(|row| columns.iter().enumerate().map(|(shown, column)| cell(column, shown, row)).collect())
        .collect();
    let widths = fit::fit(&columns, &measured, options.width, GAP.len());

    let (bold, dim, reset) = if options.color { (BOLD, DIM, RESET) } else { ("", "", "") };
    let mut line = String::new();
    let mut put = |cells: &mut dyn Iterator<Item = (&Column, usize, &str)>, out: &mut (dyn Write + Send)| {
        line.clear();
        for (i, (column, width, text)) in cells.enumerate() {
            if i > 0 {
                line.push_str(GAP);
            }
            let padded = width.min(MOST_PADDED);
            if column.right {
                line.push_str(&pad_start(text, padded));
            } else {
                line.push_str(&pad_end(&truncate_middle(text, width), padded));
            }
        }
        out.write_all(line.trim_end().as_bytes())?;
        out.write_all(b"\n")
    };

    let kept = || columns.iter().zip(widths.iter().copied());
    out.write_all(bold.as_bytes())?;
    let headers: Vec<String> = kept().map(|(c, width)| truncate_middle(&c.header, width)).collect();
    put(&mut kept().zip(&headers).map(|((c, width), text)| (c, width, text.as_str())), out)?;
    out.write_all(reset.as_bytes())?;
    let rules: Vec<String> = widths.iter().map(|width| "─".repeat((*width).min(MOST_PADDED))).collect();
    writeln!(out, "{dim}{}{reset}", rules.join(GAP))?;
    for row in &measured {
        put(&mut kept().zip(row).map(|((c, width), text)| (c, width, text.as_str())), out)?;
    }
    for row in selection.row_ids().skip(MEASURED_ROWS) {
        let cells: Vec<String> = kept().enumerate().map(|(shown, (c, _))| cell(c, shown, row)).collect();
        put(&mut kept().zip(&cells).map(|((c, width), text)| (c, width, text.as_str())), out)?;
    }

    let rows = selection.len();
    match options.total_rows.filter(|total| *total > rows) {
        Some(total) => {
            writeln!(out, "{dim}{} of {} rows{reset}", thousands(rows as i128), thousands(total as i128))?
        }
        None if rows == 0 => writeln!(out, "{dim}no rows{reset}")?,
        None => {}
    }
    let hidden: Vec<&str> = columns.iter().skip(widths.len()).map(|c| c.header.as_str()).collect();
    if !hidden.is_empty() {
        let text = format!("not shown for want of width: {}", hidden.join(", "));
        for line in crate::text::wrap(&text, options.width.unwrap_or(80)) {
            writeln!(out, "{dim}{line}{reset}")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_table::{long, sample, text};
    use crate::text::width;

    fn table(options: &Options) -> String {
        text(Format::by_name("table").unwrap(), &sample(), options)
    }

    #[test]
    fn units_and_alignment() {
        let out = table(&Options::default());
        let wanted =
            "    ts_ms  cpu    wait_us   size  process             address      status  share  in_dpc  path
─────────  ───  ─────────  ─────  ───────  ──────────────────  ──────────  ─────  ──────  ────────
1,500.000    0  1,500.000  4,096  cmd.exe  0xfffff80000000000  0xc0000034   12.5  yes     =a,\"b\"
1,500.000    1                 0                          0x0  0x00000000                 ␛[31mred
";
        assert_eq!(out, wanted);
        assert!(!out.contains('\u{1b}'));
    }

    #[test]
    fn nothing_is_wider_than_the_terminal() {
        for columns in [20, 40, 80, 100, 200] {
            for table in [sample(), long()] {
                let options = Options { width: Some(columns), ..Options::default() };
                let out = text(Format::by_name("table").unwrap(), &table, &options);
                let widest = out.lines().map(width).max().unwrap();
                assert!(widest <= columns, "{widest} > {columns}\n{out}");
            }
        }
    }

    #[test]
    fn hidden_columns_are_named() {
        let out = table(&Options { width: Some(40), ..Options::default() });
        assert!(out.contains("not shown for want of width:"), "{out}");
        assert!(out.lines().last().unwrap().ends_with("path"), "{out}");
        assert!(!table(&Options { width: Some(200), ..Options::default() }).contains("not shown"));
    }

    #[test]
    fn colour_only_when_asked() {
        let out = table(&Options { color: true, total_rows: Some(1234), ..Options::default() });
        assert!(out.starts_with(BOLD));
        assert!(out.contains("2 of 1,234 rows"));
    }
}
