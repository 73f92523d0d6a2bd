//! Tables of modules and files in a terminal.

use super::terminal::width;
use etwhy_export::sanitize;
use etwhy_export::text;
use std::io::{Result, Write};

/// A column: its heading, and whether it holds numbers.
pub type Heading = (&'static str, bool);

/// Narrowest that the last column gets.
const LAST: usize = 30;

/// Rows below headings. The last column takes what is left and goes on in the next line.
pub fn columns(out: &mut impl Write, headings: &[Heading], rows: &[Vec<String>]) -> Result<()> {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| sanitize(cell).into_owned()).collect()).collect();
    let last = headings.len().saturating_sub(1);
    let mut widths: Vec<usize> = headings.iter().map(|(title, _)| text::width(title)).collect();
    for row in &rows {
        for (cell, most) in row.iter().zip(&mut widths) {
            *most = (*most).max(text::width(cell));
        }
    }
    let all = width();
    let gaps = 2 * last;
    // The widest column gives way until the last one has room.
    loop {
        let used: usize = widths.iter().take(last).sum::<usize>() + gaps;
        let wanted = widths.get(last).copied().unwrap_or(0).min(LAST);
        // Numbers are never cut.
        let words = widths.iter_mut().zip(headings).take(last).filter(|(_, (_, number))| !number);
        let Some(widest) = words.map(|(most, _)| most).max() else { break };
        if used + wanted <= all || *widest <= 8 {
            break;
        }
        *widest -= 1;
    }
    let used: usize = widths.iter().take(last).sum::<usize>() + gaps;
    let room = all.saturating_sub(used).max(8);
    let line = |cells: &[String]| -> String {
        let mut line = String::new();
        for ((cell, (_, number)), most) in cells.iter().zip(headings).zip(&widths).take(last) {
            let cell = text::truncate_middle(cell, *most);
            let padded = if *number { text::pad_start(&cell, *most) } else { text::pad_end(&cell, *most) };
            line.push_str(&padded);
            line.push_str("  ");
        }
        line
    };
    let titles: Vec<String> = headings.iter().map(|(title, _)| (*title).to_owned()).collect();
    let title = titles.get(last).cloned().unwrap_or_default();
    writeln!(out, "{}", format!("{}{title}", line(&titles)).trim_end())?;
    for row in &rows {
        let head = line(row);
        let end = row.get(last).map_or("", String::as_str);
        let pieces = text::wrap(end, room);
        writeln!(out, "{}", format!("{head}{}", pieces.first().map_or("", String::as_str)).trim_end())?;
        for piece in pieces.iter().skip(1) {
            writeln!(out, "{}{piece}", " ".repeat(used))?;
        }
    }
    Ok(())
}

/// A sentence below a table, after an empty line.
pub fn paragraph(out: &mut impl Write, words: &str) -> Result<()> {
    writeln!(out)?;
    for line in text::wrap(&sanitize(words), width()) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}
