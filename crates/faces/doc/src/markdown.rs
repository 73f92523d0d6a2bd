//! Documents as Markdown, as GitHub shows it. [`escape`] is the one place that makes text harmless.

pub mod escape;

use crate::figure::spark;
use crate::layout::bar;
use crate::{Block, Doc, Finding, Line, Span, Table, limits};
use escape::{block, code, prose, reference};

/// Bars of a sparkline, and columns of a bar.
const BARS: (usize, usize) = (40, 10);
/// Columns of a figure and of a timeline.
const FIGURE: usize = 90;

/// The document as Markdown. Text in it is never markup, an image or a link that was not meant as one.
pub fn render(doc: &Doc) -> String {
    let mut out = String::new();
    if let Some(title) = &doc.title {
        out.push_str(&format!("# {}\n\n", prose(title)));
    }
    blocks(&mut out, &doc.blocks);
    format!("{}\n", out.trim_matches('\n'))
}

/// A line, harmless in a paragraph, a list item or a cell.
pub fn line(line: &Line) -> String {
    let span = |span: &Span| match span {
        Span::Text(text) => apart(text, prose(text)),
        Span::Strong(text) | Span::Mark(_, text) if text.trim().is_empty() => String::new(),
        Span::Strong(text) | Span::Mark(_, text) => format!("**{}**", prose(text)),
        Span::Name(name) if name.is_empty() => String::new(),
        Span::Name(name) => code(name),
        Span::Link(text) => reference(text),
        Span::Bar(share) => bar(*share, BARS.1).trim_end().to_owned(),
        Span::Spark(values, whole) => spark(values, *whole, BARS.0),
    };
    line.0.iter().map(span).collect::<String>().trim().to_owned()
}

/// Blanks at the ends of a text part it from its neighbours.
fn apart(text: &str, inner: String) -> String {
    let blank = |is: bool| if is { " " } else { "" };
    format!("{}{inner}{}", blank(text.starts_with(' ')), blank(text.ends_with(' ') && !inner.is_empty()))
}

fn blocks(out: &mut String, all: &[Block]) {
    for (at, one) in all.iter().enumerate() {
        match one {
            Block::Heading { level, text } => {
                out.push_str(&format!("{} {}\n\n", "#".repeat(usize::from(*level).clamp(1, 6)), line(text)));
            }
            Block::Text { text } => out.push_str(&format!("{}\n\n", line(text))),
            Block::Table(one) => table(out, one),
            Block::List { items } => {
                for item in items {
                    out.push_str(&format!("- {}\n", line(&item.text)));
                    item.below.iter().for_each(|below| out.push_str(&format!("  - {}\n", line(below))));
                }
                out.push('\n');
            }
            Block::Note { label, text } => {
                let label = line(label);
                let label = if label.contains("**") { label } else { format!("**{label}**") };
                out.push_str(&format!("- {label} {}\n", line(text)));
                if !matches!(all.get(at + 1), Some(Block::Note { .. })) {
                    out.push('\n');
                }
            }
            Block::Facts { title, lines } => {
                if !title.is_empty() {
                    out.push_str(&format!("**{}**\n\n", prose(title)));
                }
                lines.iter().for_each(|fact| out.push_str(&format!("- {}\n", line(fact))));
                out.push('\n');
            }
            Block::Finding(one) => finding(out, one),
            Block::Timeline(one) => {
                let (bars, scale) = one.drawn(FIGURE);
                out.push_str(&format!(
                    "{}: {}\n\n{}\n",
                    prose(&one.title),
                    prose(&scale),
                    block("text", &bars)
                ));
            }
            Block::Figure { figure } => {
                out.push_str(&format!("{}\n", block("text", &figure.text(FIGURE).join("\n"))));
            }
            Block::Verbatim { language, lines } => {
                let word = language.chars().all(|c| c.is_ascii_alphanumeric());
                let lines: Vec<String> = lines.iter().map(|line| limits::verbatim(line)).collect();
                out.push_str(&format!("{}\n", block(if word { language } else { "" }, &lines.join("\n"))));
            }
            Block::Details { summary, blocks: inner } => {
                out.push_str(&format!("<details><summary>{}</summary>\n\n", prose(summary)));
                blocks(out, inner);
                out.push_str("</details>\n\n");
            }
            Block::Space => {}
        }
    }
}

fn table(out: &mut String, table: &Table) {
    let head = |column: &crate::Column| match column.group.as_str() {
        "" => prose(&column.title()),
        group => prose(&format!("{group}: {}", column.title())),
    };
    let mut row = |cells: Vec<String>| out.push_str(&format!("| {} |\n", cells.join(" | ")));
    row(table.columns.iter().map(head).collect());
    row(table.columns.iter().map(|column| if column.right { "---:" } else { "---" }.to_owned()).collect());
    for cells in &table.rows {
        let cell = |at: usize| cells.get(at).map_or(String::new(), line);
        row((0..table.columns.len()).map(cell).collect());
    }
    out.push('\n');
    if let Some(rest) = table.rest() {
        out.push_str(&format!("{}\n\n", prose(&rest)));
    }
}

fn finding(out: &mut String, finding: &Finding) {
    let title = if finding.title.is_empty() { line(&finding.headline) } else { prose(&finding.title) };
    out.push_str(&format!("### {}: {title}\n\n", prose(&finding.severity.to_uppercase())));
    let mut part = |label: &str, text: String| {
        if !text.is_empty() {
            out.push_str(&format!("{label}{text}\n\n"));
        }
    };
    if !finding.title.is_empty() {
        part("", format!("**{}**", line(&finding.headline)));
    }
    finding.also.iter().for_each(|also| part("Also: ", line(also)));
    if finding.more > 0 {
        part("", format!("And {} more.", finding.more));
    }
    part("", line(&finding.why));
    part("What to do: ", line(&finding.fix));
    finding.caveats.iter().for_each(|caveat| part("But: ", line(caveat)));
    part("What would disprove it: ", line(&finding.disproof));
    if !finding.see.is_empty() {
        part("See ", code(&finding.see));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Column, Timeline};

    #[test]
    fn text_is_never_markup() {
        let hostile = "![i](http://evil.example/p.png) <img src=x> | `x` @me\n# y\u{202e}";
        let mut doc = Doc::titled(hostile);
        doc.heading(hostile);
        doc.subheading(Line::name(hostile));
        doc.text(
            Line::from(hostile)
                .and(Line::strong(hostile))
                .and(Line::name(hostile))
                .and(Span::Link(hostile.into())),
        );
        let mut rows =
            Table::new([Column::name(hostile).below(hostile), Column::number(hostile).unit(hostile)]);
        rows.hint = hostile.to_owned();
        for _ in 0..2 {
            rows.row([Line::name(hostile), Line::mark(hostile)]);
        }
        doc.table(rows.at_most(1));
        doc.item(hostile, [hostile]);
        doc.note(hostile, hostile);
        doc.facts(hostile, vec![hostile.into()]);
        doc.finding(Finding {
            severity: hostile.into(),
            title: hostile.into(),
            headline: hostile.into(),
            also: vec![hostile.into()],
            more: 1,
            why: hostile.into(),
            fix: hostile.into(),
            caveats: vec![hostile.into()],
            disproof: hostile.into(),
            see: hostile.into(),
        });
        let mut inner = Doc::default();
        inner.text(hostile);
        doc.details(hostile, inner);
        let (title, unit) = (hostile.to_owned(), hostile.to_owned());
        doc.timeline(Timeline { title, sums: vec![1.0, 0.0], slice_ns: 1e9, unit });
        let text = render(&doc);
        // Code spans and blocks hold anything; nothing else may.
        let mut code = false;
        for line in text.lines().filter(|line| {
            code ^= line.starts_with("```");
            !code
        }) {
            let bare = line.replace("&#", "").replace("\\!", "").replace("\\[", "").replace("\\|", "");
            assert!(!bare.contains("![i]") && !bare.contains("<img") && !bare.contains("](http:"), "{line}");
            assert!(!line.contains('\u{202e}') && !line.trim_start_matches('#').contains("@me"), "{line}");
        }
        assert!(text.lines().all(|line| !line.starts_with("# y")), "{text}");
        // A cell stays one.
        assert!(text.lines().filter(|l| l.starts_with('|')).all(|l| l.matches('|').count() == 3), "{text}");
    }

    #[test]
    fn blocks_look_like_markdown() {
        let mut doc = Doc::titled("Why");
        doc.heading("Costs");
        let mut rows = Table::new([Column::name("name"), Column::number("time")]);
        rows.row([Line::name("a.exe"), "1 s".into()]);
        rows.row([Line::name("b.exe"), "2 s".into()]);
        rows.hint = "--top shows more".into();
        doc.table(rows.at_most(1));
        doc.note("But:", "one");
        doc.note(Line::mark("error"), "two");
        doc.space();
        doc.verbatim("bat", "a\nb");
        doc.verbatim("no such\nlanguage", "```");
        let wanted = "# Why\n\n## Costs\n\n| name | time |\n| --- | ---: |\n| `a.exe` | 1 s |\n\n… and 1 more (--top shows more)\n\n\
                      - **But:** one\n- **error** two\n\n```bat\na\nb\n```\n\n````\n```\n````\n";
        assert_eq!(render(&doc), wanted);
    }
}
