//! The example report in all forms: the JSON follows the published schema, and names stay names.

use etwhy_doc::{markdown, terminal::Terminal};
use etwhy_report::{Form, Report, document, example, html, json};
use etwhy_testkit::schema;
use serde_json::Value;
use std::io::Write;

type Writer = fn(&Report, &mut dyn Write) -> std::io::Result<()>;

fn written(write: Writer) -> String {
    let mut out = Vec::new();
    write(&example::report(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The data of a page.
fn data(page: &str) -> &str {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"etwhy-report\">").unwrap();
    rest.split_once("</script>").unwrap().0
}

#[test]
fn json_follows_the_schema() {
    let report: Value = serde_json::from_str(&written(json::write)).unwrap();
    assert_eq!(schema::violations(&report), Vec::<String>::new());
    let page: Value = serde_json::from_str(data(&written(html::write))).unwrap();
    assert_eq!(schema::violations(&page), Vec::<String>::new());
}

#[test]
fn the_schema_finds_faults() {
    let mut report: Value = serde_json::from_str(&written(json::write)).unwrap();
    report["schema"] = "etwhy.why/0".into();
    report["quality"]["cpus"] = "eight".into();
    report["findings"][0]["answer"] = "maybe".into();
    report["bill"][0].as_object_mut().unwrap().remove("culprit");
    report["bill"][1]["new"] = 1.into();
    assert_eq!(
        schema::violations(&report),
        [
            "/schema: is not \"etwhy.why/1\"",
            "/quality/cpus: is no integer",
            "/findings/0/answer: is none of the values",
            "/bill/0: lacks culprit",
            "/bill/1/new: is not declared",
        ]
    );
}

#[test]
fn every_field_is_explained() {
    assert_eq!(schema::unexplained(), Vec::<String>::new());
}

#[test]
fn json_keeps_names_whole() {
    let text = written(json::write);
    assert!(!text.contains(['\u{202e}', '\u{1b}', '\u{7}']));
    let report: Value = serde_json::from_str(&text).unwrap();
    for (at, name) in example::hostile_names().iter().enumerate() {
        assert_eq!(report["cpu"]["stacks"][0]["frames"][at], Value::from(name.as_str()));
    }
}

#[test]
fn markdown_keeps_names_in_code() {
    let text = markdown::render(&document(&example::report(), &Form::FULL));
    assert!(!text.contains(['\u{202e}', '\u{1b}', '\u{7}']));
    assert!(text.lines().all(|line| line.chars().count() < 5000), "30,000 characters are cut");
    // Outside of code spans, blocks and our own elements there is no markup, and rows keep their cells.
    let ours = ["<details>", "</details>", "<summary>", "</summary>", "<!-- -->", "<code>", "</code>"];
    let mut columns = None;
    let mut fenced = false;
    for line in text.lines() {
        fenced ^= line.starts_with("```");
        if fenced || line.starts_with("```") {
            continue;
        }
        let outside: String = line.split('`').step_by(2).collect();
        let plain = ours.iter().fold(outside, |text, tag| text.replace(tag, ""));
        let links = plain.replace("<https://learn.microsoft.com/", "");
        assert!(!links.contains('<'), "{line}");
        columns = line.starts_with('|').then(|| {
            let cells = line.matches('|').count();
            assert!(columns.is_none_or(|before| before == cells), "{line}");
            cells
        });
    }
}

/// What a terminal shows is as wide as wanted, but for lines to copy, and does nothing.
#[test]
fn terminals_show_names_and_keep_their_width() {
    let mut report = example::report();
    if let Some(activity) = report.activity.as_mut() {
        activity.by_count = activity.by_total.clone();
    }
    for columns in [60, 80, 200] {
        let form = Form { brief: false, full: false, all: true, frames: 0 };
        let text = Terminal::plain(columns).render(&document(&report, &form));
        assert!(!text.contains(|c| c != '\n' && etwhy_doc::is_unsafe(c)), "{text}");
        let copied = |line: &str| line.starts_with("    ") && line.contains("PerfView");
        let wide = |line: &&str| etwhy_doc::layout::width(line) > columns && !copied(line);
        assert_eq!(text.lines().find(wide), None, "{columns}:\n{text}");
        let operations = text.lines().filter(|line| line.starts_with("Operations of"));
        assert_eq!(operations.count(), 1, "the same list is not shown twice");
    }
}

#[test]
fn the_page_has_one_script_and_asks_nothing() {
    let page = written(html::write);
    assert!(page.len() < 2_000_000, "{}", page.len());
    assert!(!data(&page).contains(['<', '>', '&', '\u{202e}', '\u{1b}']));
    // The page's own elements and nothing from names.
    let (frame, hostile) = (page.replace(data(&page), ""), data(&page).to_lowercase());
    assert_eq!(frame.matches("<script").count(), 2);
    assert!(!hostile.contains("</script"));
    for forbidden in ["src=", "href=", "@import", "url("] {
        assert!(!frame.split_once("<script>").unwrap().0.contains(forbidden), "{forbidden}");
    }
    assert!(frame.contains("default-src 'none'; script-src 'sha256-"));
}

#[test]
fn a_page_of_nothing_but_long_names_is_cut() {
    let mut report = example::report();
    let flame = report.charts.as_mut().unwrap().flame.as_mut().unwrap();
    for number in 0..2500 {
        let mut name = flame.names[0].clone();
        name.name = format!("{number}{}", "\u{1f4a3}".repeat(30_000));
        flame.names.push(name);
        flame.name.push(flame.names.len() as u32 - 1);
        flame.parent.push(0);
        flame.total_ns.push(1);
        flame.self_ns.push(1);
    }
    let mut out = Vec::new();
    html::write(&report, &mut out).unwrap();
    assert!(out.len() < 2_000_000, "{}", out.len());
}
