//! Tables of modules and files in a terminal.

use super::terminal::text;
use etwhy_doc::{Block, Column, Doc, Line, Table};
use std::io::{Result, Write};

/// A column: its heading, and whether it holds numbers.
pub type Heading = (&'static str, bool);

/// Rows below headings. The last column takes what is left and goes on in the next line.
pub fn columns(out: &mut impl Write, headings: &[Heading], rows: &[Vec<String>]) -> Result<()> {
    let last = headings.len().saturating_sub(1);
    let column = |(at, (head, number)): (usize, &Heading)| match number {
        true => Column::number(*head),
        false if at == last => Column::text(*head),
        false => Column::name(*head).least(8),
    };
    let mut table = Table::new(headings.iter().enumerate().map(column));
    rows.iter().for_each(|row| table.row(row.iter().map(Line::from)));
    let mut doc = Doc::default();
    doc.blocks.push(Block::Table(table));
    write!(out, "{}", text(&doc))
}

/// A sentence below a table, after an empty line.
pub fn paragraph(out: &mut impl Write, words: &str) -> Result<()> {
    let mut doc = Doc::default();
    doc.text(words);
    write!(out, "\n{}", text(&doc))
}
