//! Documents as text for a terminal.

mod table;

use crate::figure::spark;
use crate::layout::{bar, boxed, hanging, pad_end, truncate_end, width, wrap};
use crate::limits::{self, LEAST_COLUMNS};
use crate::{Block, Doc, Finding, Item, Level, Line, Span, sanitize};

/// Columns of a bar for a share within a line.
const BAR: usize = 8;
/// The longest label that the texts of neighbours are aligned behind.
const LABEL: usize = 14;
/// The widest line of bars.
const WIDEST_BARS: usize = 120;

/// A terminal: how wide it is, and whether it shows colours.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    /// Columns.
    pub columns: usize,
    /// Write escape sequences for colours.
    pub color: bool,
}

/// How words look where colours are shown.
#[derive(Clone, Copy)]
enum Look {
    Plain,
    Bold,
    Of(Level),
}

impl Terminal {
    /// Without colours.
    pub fn plain(columns: usize) -> Terminal {
        Terminal { columns, color: false }
    }

    /// The document as lines, each with its end. Nothing in it but colours of ours makes a terminal do anything.
    pub fn render(&self, doc: &Doc) -> String {
        let mut page = Page {
            terminal: *self,
            columns: self.columns.max(LEAST_COLUMNS),
            lines: Vec::new(),
            below: false,
        };
        page.blocks(&doc.blocks);
        while page.lines.last().is_some_and(String::is_empty) {
            page.lines.pop();
        }
        page.lines.iter().fold(String::new(), |text, line| text + line + "\n")
    }

    fn paint(&self, text: &str, look: Look) -> String {
        let code = match look {
            _ if !self.color || text.trim().is_empty() => "",
            Look::Bold => "1",
            Look::Of(Level::Info) => "36",
            Look::Of(Level::Warning) => "33",
            Look::Of(Level::Bad) => "1;31",
            Look::Plain | Look::Of(Level::Plain) => "",
        };
        if code.is_empty() { text.to_owned() } else { format!("\u{1b}[{code}m{text}\u{1b}[0m") }
    }
}

/// A line in words, harmless, without colours.
pub(crate) fn words(line: &Line) -> String {
    let span = |span: &Span| match span {
        // Blanks at the ends part it from its neighbours.
        Span::Text(text) | Span::Strong(text) | Span::Link(text) | Span::Mark(_, text) => {
            let (inner, blank) = (limits::prose(text), |is: bool| if is { " " } else { "" });
            let (before, after) = (text.starts_with(' '), text.ends_with(' ') && !inner.is_empty());
            format!("{}{inner}{}", blank(before), blank(after))
        }
        Span::Name(name) => limits::name(name),
        Span::Bar(share) => bar(*share, BAR),
        Span::Spark(values, whole) => spark(values, *whole, WIDEST_BARS),
    };
    line.0.iter().map(span).collect()
}

/// How a line looks as a whole: as its only span does.
fn look(line: &Line) -> Look {
    match line.0.as_slice() {
        [Span::Mark(level, _)] => Look::Of(*level),
        [Span::Strong(_)] => Look::Bold,
        _ => Look::Plain,
    }
}

struct Page {
    terminal: Terminal,
    columns: usize,
    lines: Vec<String>,
    /// A heading was written, below which tables and lists are indented.
    below: bool,
}

impl Page {
    fn blocks(&mut self, blocks: &[Block]) {
        let mut rest = blocks;
        while let Some((block, after)) = rest.split_first() {
            rest = after;
            match block {
                Block::Heading { text, .. } => self.heading(text),
                Block::Text { text } => self.add(wrap(&words(text), self.columns)),
                Block::Table(table) => {
                    let lines = table::lines(table, self.terminal, self.columns, self.indent());
                    self.add(lines);
                }
                Block::List { items } => items.iter().for_each(|item| self.item(item)),
                Block::Note { .. } => {
                    let count = blocks_of_notes(rest);
                    let (more, after) = rest.split_at_checked(count).unwrap_or((rest, &[]));
                    rest = after;
                    self.notes(std::iter::once(block).chain(more));
                }
                Block::Facts { title, lines } => {
                    let lines: Vec<String> =
                        lines.iter().flat_map(|line| wrap(&words(line), self.columns - 4)).collect();
                    self.add(boxed(&sanitize(title), &lines, self.columns));
                }
                Block::Finding(finding) => self.finding(finding),
                Block::Timeline(one) => {
                    let head = format!("  {}  ", truncate_end(&limits::prose(&one.title), LABEL));
                    let (bars, scale) = one.drawn((self.columns - width(&head)).min(WIDEST_BARS));
                    self.lines.push(format!("{head}{bars}").trim_end().to_owned());
                    let indent = pad_end("", width(&head));
                    self.add(hanging(&indent, &indent, &scale, self.columns));
                }
                Block::Figure { figure } => {
                    let fit = |line: &String| truncate_end(&sanitize(line), self.columns);
                    let lines = figure.text(self.columns).iter().map(fit).collect();
                    self.add(lines);
                }
                Block::Verbatim { lines, .. } => {
                    self.add(lines.iter().map(|line| format!("    {}", limits::verbatim(line))).collect());
                }
                Block::Details { blocks, .. } => self.blocks(blocks),
                Block::Space => self.space(),
            }
        }
    }

    fn add(&mut self, lines: Vec<String>) {
        self.lines.extend(lines);
    }

    fn indent(&self) -> usize {
        if self.below { 2 } else { 0 }
    }

    fn space(&mut self) {
        if self.lines.last().is_some_and(|line| !line.is_empty()) {
            self.lines.push(String::new());
        }
    }

    fn heading(&mut self, text: &Line) {
        self.space();
        for line in wrap(&words(text), self.columns) {
            self.lines.push(self.terminal.paint(&line, Look::Bold));
        }
        self.below = true;
    }

    fn item(&mut self, item: &Item) {
        let indent = pad_end("", self.indent());
        self.add(hanging(&format!("{indent}- "), &format!("{indent}  "), &words(&item.text), self.columns));
        for line in &item.below {
            self.add(hanging(&format!("{indent}  - "), &format!("{indent}    "), &words(line), self.columns));
        }
    }

    /// Notes behind each other: their texts begin in one column, unless labels are long.
    fn notes<'a>(&mut self, notes: impl Iterator<Item = &'a Block>) {
        let notes: Vec<(String, Look, String)> = notes
            .filter_map(|note| match note {
                Block::Note { label, text } => Some((words(label), look(label), words(text))),
                _ => None,
            })
            .collect();
        let widest = notes.iter().map(|(label, ..)| width(label)).filter(|w| *w <= LABEL).max().unwrap_or(0);
        for (label, look, text) in notes {
            self.hang(&format!("{}  ", pad_end(&label, widest)), look, &text, (widest + 2).min(LABEL + 2));
        }
    }

    /// A text behind a head; its other lines begin at `indent`.
    fn hang(&mut self, head: &str, look: Look, text: &str, indent: usize) {
        let first = width(head);
        let mut lines = match first > indent {
            true => hanging("", &pad_end("", indent), &format!("{} {text}", head.trim_end()), self.columns),
            false => hanging(head, &pad_end("", indent), text, self.columns),
        };
        if lines.is_empty() {
            lines.push(head.trim_end().to_owned());
        }
        for (at, line) in lines.into_iter().enumerate() {
            let painted = line.strip_prefix(head.trim_end()).filter(|_| at == 0);
            let line = painted
                .map(|rest| format!("{}{rest}", self.terminal.paint(head.trim_end(), look)))
                .unwrap_or(line);
            self.lines.push(line);
        }
    }

    fn finding(&mut self, finding: &Finding) {
        let severity = limits::prose(&finding.severity);
        let level = Look::Of(Level::from_word(&severity));
        self.hang(&pad_end(&severity, 9), level, &words(&finding.headline), 9);
        finding.also.iter().for_each(|also| self.part("also", also));
        if finding.more > 0 {
            self.part("", &format!("and {} more", finding.more).into());
        }
        self.part("why", &finding.why);
        self.part("do", &finding.fix);
        finding.caveats.iter().for_each(|caveat| self.part("but", caveat));
        self.part("see", &finding.see.as_str().into());
    }

    /// A part of a finding behind its word.
    fn part(&mut self, word: &str, text: &Line) {
        let text = words(text);
        if !text.is_empty() {
            let head = format!(
                "{}{}",
                pad_end("", 10),
                if word.is_empty() { String::new() } else { pad_end(word, 6) }
            );
            self.hang(&head, Look::Plain, &text, width(&head));
        }
    }
}

/// How many notes follow.
fn blocks_of_notes(blocks: &[Block]) -> usize {
    blocks.iter().take_while(|block| matches!(block, Block::Note { .. })).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Column, Table, Timeline};

    /// What a terminal acts on, or what hides.
    const HOSTILE: &str = "a\u{1b}[31m\r\u{202e}\u{200b}\u{9b}2Jb";

    fn hostile() -> Doc {
        let mut doc = Doc::titled(HOSTILE);
        doc.heading(HOSTILE);
        doc.text(HOSTILE);
        let mut table = Table::new([
            Column::name(HOSTILE).below(HOSTILE).unit(HOSTILE),
            Column::text(HOSTILE),
            Column::rest(""),
        ]);
        table.hint = HOSTILE.to_owned();
        table.row([
            Line::name(HOSTILE),
            HOSTILE.into(),
            Span::Spark(vec![Some(f64::NAN), None, Some(1.0)], f64::NAN).into(),
        ]);
        table.row([Line::name("x".repeat(30_000)), "y".repeat(30_000).into()]);
        table.row([Line::strong(HOSTILE), Line::mark(HOSTILE)]);
        doc.table(table.at_most(2));
        doc.item(Line::name(HOSTILE), [HOSTILE]);
        doc.note(HOSTILE, HOSTILE);
        doc.facts(HOSTILE, vec![HOSTILE.into()]);
        doc.finding(Finding {
            severity: HOSTILE.into(),
            title: HOSTILE.into(),
            headline: HOSTILE.into(),
            also: vec![HOSTILE.into()],
            more: 2,
            why: HOSTILE.into(),
            fix: HOSTILE.into(),
            caveats: vec![HOSTILE.into()],
            disproof: HOSTILE.into(),
            see: HOSTILE.into(),
        });
        let (title, unit) = (HOSTILE.to_owned(), HOSTILE.to_owned());
        doc.timeline(Timeline { title, sums: vec![1.0; 1000], slice_ns: 1e9, unit });
        doc.verbatim(HOSTILE, HOSTILE);
        doc
    }

    #[test]
    fn nothing_reaches_the_terminal_and_nothing_is_too_wide() {
        for columns in [0, 1, 20, 40, 80, 400] {
            let text = Terminal::plain(columns).render(&hostile());
            assert!(!text.contains(|c| c != '\n' && crate::is_unsafe(c)), "{text}");
            assert!(text.contains("a␛[31m") && text.contains("and 1 more"), "{text}");
            let widest = text.lines().map(width).max().unwrap();
            assert!(widest <= columns.max(LEAST_COLUMNS + 14), "{columns}: {widest}\n{text}");
        }
    }

    #[test]
    fn colours_are_of_ours() {
        let mut doc = Doc::default();
        doc.heading("Ledger");
        doc.note(Line::mark("error"), "broken");
        doc.note(Line::mark("note\u{1b}[2J"), "other");
        let text = Terminal { columns: 80, color: true }.render(&doc);
        assert_eq!(
            text,
            "\u{1b}[1mLedger\u{1b}[0m\n\u{1b}[1;31merror\u{1b}[0m     broken\nnote␛[2J  other\n"
        );
    }

    #[test]
    fn a_table_whose_columns_belong_together_names_those_without_room() {
        let figures = ["first figure", "second figure", "third figure"].map(Column::number);
        let columns = std::iter::once(Column::name("who").least(8)).chain(figures);
        let mut table = Table::new(columns).naming_left_out();
        table.row(["a", "1", "2", "3"].map(Line::from));
        let mut doc = Doc::titled("x");
        doc.table(table);
        let words = |columns| -> String {
            let text = Terminal::plain(columns).render(&doc);
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert!(words(40).contains("left out: third figure (COLUMNS=200 shows them)"), "{}", words(40));
        assert!(!words(100).contains("left out"), "{}", words(100));
    }

    #[test]
    fn parts_are_apart_and_texts_hang() {
        let mut doc = Doc::default();
        doc.space();
        doc.text("one two three four five six");
        doc.heading("Things");
        doc.item("a thing that is long", ["below"]);
        doc.space();
        doc.note("But:", "a caveat that goes on for longer");
        doc.note("A label that is too long to align:", "text");
        doc.verbatim("bat", "auditpol /get /category:*");
        let text = Terminal::plain(20).render(&doc);
        let wanted = "one two three four\nfive six\n\nThings\n  - a thing that is\n    long\n    - below\n\nBut:  a caveat that\n      goes on for\n      \
                      longer\nA label that\n      is too long to\n      align: text\n    auditpol /get /category:*\n";
        assert_eq!(text, wanted);
    }
}
