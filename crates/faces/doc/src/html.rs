//! Documents as HTML: the inside of a page, without scripts and styles. Classes: `muted`, `scroll`, `finding`, `n` (numbers) and the levels
//! of [`crate::Level`].

use crate::figure::spark;
use crate::layout::bar;
use crate::{Block, Column, Doc, Finding, Level, Line, Span, Table, escape_markup, limits};

/// Bars of a sparkline, and columns of a bar.
const BARS: (usize, usize) = (60, 10);

/// The document as HTML elements behind each other.
pub fn render(doc: &Doc) -> String {
    let title = doc
        .title
        .as_deref()
        .map_or(String::new(), |title| element("h1", &escape_markup(&limits::prose(title))));
    title + &blocks(&doc.blocks)
}

/// A line, as what stands in an element.
pub fn line(line: &Line) -> String {
    let prose = |text: &str| {
        let blank = |is: bool| if is { " " } else { "" };
        format!(
            "{}{}{}",
            blank(text.starts_with(' ')),
            escape_markup(&limits::prose(text)),
            blank(text.ends_with(' '))
        )
    };
    let span = |span: &Span| match span {
        Span::Text(text) => prose(text),
        Span::Strong(text) => format!("<strong>{}</strong>", prose(text)),
        Span::Name(name) => format!("<code>{}</code>", escape_markup(&limits::name(name))),
        Span::Mark(level, text) => format!("<strong class=\"{}\">{}</strong>", class(*level), prose(text)),
        // Only what browsers open without harm.
        Span::Link(text) if text.starts_with("https://") => {
            format!("<a href=\"{0}\" rel=\"noreferrer\">{0}</a>", escape_markup(text))
        }
        Span::Link(text) => prose(text),
        Span::Bar(share) => bar(*share, BARS.1).trim_end().to_owned(),
        Span::Spark(values, whole) => spark(values, *whole, BARS.0),
    };
    line.0.iter().map(span).collect()
}

fn class(level: Level) -> &'static str {
    match level {
        Level::Plain => "plain",
        Level::Info => "info",
        Level::Warning => "warning",
        Level::Bad => "bad",
    }
}

/// An element with its content, which is HTML.
fn element(name: &str, inner: &str) -> String {
    if inner.is_empty() { String::new() } else { format!("<{name}>{inner}</{name}>\n") }
}

fn list<'a>(items: impl Iterator<Item = &'a Line>) -> String {
    element("ul", &items.map(|item| element("li", &line(item))).collect::<String>())
}

fn blocks(all: &[Block]) -> String {
    let one = |block: &Block| match block {
        Block::Heading { level, text } => element(&format!("h{}", level.clamp(&1, &6)), &line(text)),
        Block::Text { text } => element("p", &line(text)),
        Block::Table(one) => table(one),
        Block::List { items } => {
            let item = |item: &crate::Item| element("li", &(line(&item.text) + &list(item.below.iter())));
            element("ul", &items.iter().map(item).collect::<String>())
        }
        Block::Note { label, text } => {
            element("p", &format!("<strong>{}</strong> {}", line(label), line(text)))
        }
        Block::Facts { title, lines } => {
            element("h3", &escape_markup(&limits::prose(title))) + &list(lines.iter())
        }
        Block::Finding(one) => finding(one),
        Block::Timeline(one) => {
            let (bars, scale) = one.drawn(BARS.0);
            let title = escape_markup(&limits::prose(&one.title));
            format!("<figure><figcaption>{title}: {}</figcaption>{bars}</figure>\n", escape_markup(&scale))
        }
        Block::Figure { figure } => {
            let alt = escape_markup(&limits::prose(&figure.alt()));
            format!(
                "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{alt}\">{}</div>\n",
                figure.html()
            )
        }
        Block::Verbatim { lines, .. } => {
            let lines: Vec<String> =
                lines.iter().map(|line| escape_markup(&limits::verbatim(line))).collect();
            element("pre", &lines.join("\n"))
        }
        Block::Details { summary, blocks: inner } => element(
            "details",
            &(element("summary", &escape_markup(&limits::prose(summary))) + &blocks(inner)),
        ),
        Block::Space => String::new(),
    };
    all.iter().map(one).collect()
}

fn table(table: &Table) -> String {
    let head = |column: &Column| {
        let group = if column.group.is_empty() { String::new() } else { format!("{}: ", column.group) };
        format!(
            "<th scope=\"col\">{}</th>",
            escape_markup(&limits::prose(&format!("{group}{}", column.title())))
        )
    };
    let cell = |(at, (column, cell)): (usize, (&Column, &Line))| match (at, column.right) {
        (0, _) => format!("<th scope=\"row\">{}</th>", line(cell)),
        (_, true) => format!("<td class=\"n\">{}</td>", line(cell)),
        (_, false) => format!("<td>{}</td>", line(cell)),
    };
    let row = |row: &Vec<Line>| {
        element("tr", &table.columns.iter().zip(row).enumerate().map(cell).collect::<String>())
    };
    let body: String = table.rows.iter().map(row).collect();
    let heads: String = table.columns.iter().map(head).collect();
    let more = table
        .rest()
        .map_or(String::new(), |rest| format!("<p class=\"muted\">{}</p>\n", escape_markup(&rest)));
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table\"><table><thead><tr>{heads}</tr></thead><tbody>\n\
         {body}</tbody></table></div>\n{more}"
    )
}

fn finding(one: &Finding) -> String {
    let level = Level::from_word(&one.severity);
    let title = Line::from(Span::Mark(level, one.severity.clone())).and(" ");
    let heading =
        if one.title.is_empty() { title.and(one.headline.clone()) } else { title.and(one.title.as_str()) };
    let mut out = element("h3", &line(&heading));
    if !one.title.is_empty() {
        out += &element("p", &line(&one.headline));
    }
    let more = if one.more > 0 { format!("And {} more.", one.more) } else { String::new() };
    out += &list(one.also.iter());
    out += &element("p", &more);
    out += &element("p", &line(&one.why));
    for (label, text) in std::iter::once(("What to do", &one.fix))
        .chain(one.caveats.iter().map(|caveat| ("But", caveat)))
        .chain(std::iter::once(("What would disprove it", &one.disproof)))
    {
        if !text.is_empty() {
            out += &element("p", &format!("<strong>{label}:</strong> {}", line(text)));
        }
    }
    if !one.see.is_empty() {
        out += &element("p", &line(&Line::from("See ").and(Line::name(one.see.clone()))));
    }
    format!("<section class=\"finding {}\">\n{out}</section>\n", class(level))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_never_markup() {
        let hostile = "<img src=x onerror='a(\"b\")'>&\u{202e}\u{1b}";
        let mut doc = Doc::titled(hostile);
        doc.heading(hostile);
        doc.text(
            Line::name(hostile).and(Line::strong(hostile)).and(Span::Link(format!("https://x\"{hostile}"))),
        );
        doc.text(Span::Link("javascript:alert(1)".into()));
        let mut rows =
            Table::new([Column::name(hostile).below(hostile), Column::number(hostile).unit(hostile)]);
        rows.hint = hostile.to_owned();
        rows.row([Line::mark(hostile), hostile.into()]);
        rows.row([Line::mark(hostile), hostile.into()]);
        doc.table(rows.at_most(1));
        doc.item(hostile, [hostile]);
        doc.note(hostile, hostile);
        doc.facts(hostile, vec![hostile.into()]);
        doc.verbatim(hostile, hostile);
        let mut inner = Doc::default();
        inner.finding(Finding {
            severity: hostile.into(),
            headline: hostile.into(),
            see: hostile.into(),
            ..Finding::default()
        });
        doc.details(hostile, inner);
        let text = render(&doc);
        assert!(!text.contains("<img") && !text.contains("'a(") && !text.contains("\"b\""), "{text}");
        assert!(!text.contains(|c| c != '\n' && crate::is_unsafe(c)), "{text}");
        assert!(
            !text.contains("href=\"javascript") && text.contains("href=\"https://x&quot;&lt;img"),
            "{text}"
        );
        for name in
            ["h1", "h2", "p", "table", "tr", "ul", "li", "details", "section", "pre", "th", "td", "div"]
        {
            let (open, close) = (
                text.matches(&format!("<{name}>")).count() + text.matches(&format!("<{name} ")).count(),
                text.matches(&format!("</{name}>")).count(),
            );
            assert_eq!(open, close, "{name}: {text}");
        }
    }

    #[test]
    fn programs_get_the_same() {
        let mut doc = Doc::titled("T");
        doc.text("a\u{202e}");
        doc.table({
            let mut rows = Table::new([Column::number("n").unit("ms")]);
            rows.row([Line::from("1")]);
            rows
        });
        let json = crate::json::write(&doc, serde_json::value::Serializer).unwrap();
        assert_eq!(
            json["blocks"][0],
            serde_json::json!({ "block": "text", "text": [{ "text": "a\u{202e}" }] })
        );
        assert_eq!(
            (&json["blocks"][1]["block"], &json["blocks"][1]["columns"][0]["unit"]),
            (&"table".into(), &"ms".into())
        );
    }
}
