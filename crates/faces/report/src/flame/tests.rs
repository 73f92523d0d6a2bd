//! Pictures of trees whose widths are easy to see.

use super::*;
use etwhy_analysis::stacks::{Node, Sum};

fn node(name: u32, parent: u32, total: i64, own: i64) -> Node {
    let sum = |weight: i64| Sum { weight, count: weight, ..Sum::default() };
    Node { name, parent, total: sum(total), own: sum(own), ..Node::default() }
}

/// A root of 100: 60 of a program (20 itself, 40 in the kernel), 40 of .NET with a hostile name.
fn tree() -> Tree {
    let name = |label: &str, kind| NodeName { label: label.to_owned(), kind, ..NodeName::default() };
    let names = vec![
        name("all", NodeKind::Root),
        name("a.exe!main", NodeKind::User),
        NodeName { category: "EDR".to_owned(), security: true, ..name("e.sys!f", NodeKind::Kernel) },
        name("</title><script>alert(1)</script>\u{202e}&\"'\u{1}", NodeKind::Managed),
    ];
    let nodes = vec![node(0, 0, 100, 0), node(1, 0, 60, 20), node(2, 1, 40, 40), node(3, 0, 40, 40)];
    Tree { names, nodes, refused: 0, before_steps: Default::default() }
}

fn options(icicle: bool) -> Options<'static> {
    Options {
        title: "CPU <of> \"x\"",
        subtitle: "cpu & more",
        icicle,
        width: 1020,
        colours: Colours::Kind,
        amount: &|weight| format!("{weight} ms"),
    }
}

fn drawn(icicle: bool, comparison: Option<&Comparison>) -> String {
    let mut out = Vec::new();
    svg(&tree(), &options(icicle), comparison, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Left, top, width, class, title of each box.
fn boxes(text: &str) -> Vec<(f64, f64, f64, String, String)> {
    let document = roxmltree::Document::parse(text).unwrap();
    let groups = document.descendants().filter(|n| n.attribute("data-n").is_some());
    groups
        .map(|g| {
            let rect = g.children().find(|n| n.has_tag_name("rect")).unwrap();
            let title = g.children().find(|n| n.tag_name().name() == "title").unwrap().text().unwrap();
            let number = |name| rect.attribute(name).unwrap().parse::<f64>().unwrap();
            let class = g.attribute("class").unwrap().trim_start_matches("n ");
            (number("x"), number("y"), number("width"), class.to_owned(), title.to_owned())
        })
        .collect()
}

#[test]
fn boxes_are_as_wide_as_their_weight() {
    let found = boxes(&drawn(true, None));
    let places: Vec<(f64, f64, f64, &str)> = found.iter().map(|b| (b.0, b.1, b.2, b.3.as_str())).collect();
    let expected = [
        (10.0, 54.0, 1000.0, "group"),
        (10.0, 72.0, 600.0, "user"),
        (610.0, 72.0, 400.0, "managed"),
        (10.0, 90.0, 400.0, "watched"),
    ];
    assert_eq!(places, expected);
    assert_eq!(found[3].4, "e.sys!f: 40.0 %, 40 ms with what it called, 40 ms itself; EDR");
    let flame = boxes(&drawn(false, None));
    assert_eq!(
        flame.iter().map(|b| b.1).collect::<Vec<_>>(),
        [90.0, 72.0, 72.0, 54.0],
        "the root is at the bottom"
    );
}

#[test]
fn hostile_names_are_text() {
    let text = drawn(true, None);
    assert!(!text.contains("<script") && !text.contains('\u{202e}') && !text.contains('\u{1}'), "{text}");
    let document = roxmltree::Document::parse(&text).unwrap();
    assert_eq!(
        document
            .root_element()
            .children()
            .find(|n| n.has_tag_name(("http://www.w3.org/2000/svg", "title")))
            .unwrap()
            .text(),
        Some("CPU <of> \"x\"")
    );
    let mut page = Vec::new();
    html(&tree(), &options(false), None, &mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert_eq!(page.matches("<script").count(), 1, "the page's own");
}

#[test]
fn a_comparison_is_red_where_there_is_more() {
    // Before, on half as many processors: main 15, the driver 20, .NET nothing; something else took 5.
    let comparison = Comparison { before: Before { weights: vec![40, 15, 20, 0], gone: 5 }, factor: 2.0 };
    let text = drawn(true, Some(&comparison));
    let classes: Vec<String> = boxes(&text).into_iter().map(|b| b.3).collect();
    assert_eq!(classes, ["more2", "more3", "new", "same"]);
    assert!(text.contains("before 30 ms, change +30 ms (+100 %)"), "{text}");
    assert!(text.contains("What is no longer there took 10 ms."));
    assert_eq!(
        (change_class(100.0, 50.0), change_class(100.0, 96.0)),
        ("less3".to_owned(), "same".to_owned())
    );
    assert_eq!(
        (change_class(100.0, 79.0), change_class(100.0, 0.0)),
        ("less2".to_owned(), "less3".to_owned())
    );
}
