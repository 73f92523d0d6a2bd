//! Call trees for a terminal.
//!
//! A node with one child stands right above it without an indent: stacks are deep, terminals narrow. Branches are
//! drawn.

use super::amount::{Scale, percent_text};
use super::terminal::color;
use etwhy_analysis::stacks::{Metric, Node, NodeKind, NodeName, Tree};
use etwhy_base::units::thousands;
use etwhy_doc::{Column, Doc, Line, Table, terminal::Terminal};
use etwhy_export::sanitize;
use etwhy_export::text::{pad_start, truncate_middle, width as columns};
use std::io::{self, Write};

/// How a tree is printed.
pub struct Look {
    /// Columns of the terminal.
    pub width: usize,
    /// Colours are welcome.
    pub color: bool,
    /// The unit.
    pub scale: Scale,
    /// What shares are shares of.
    pub whole: i64,
    /// Weights of nodes themselves are shown too. In an inverted tree they say nothing.
    pub own: bool,
    /// A count beside the weight says something: it does not for metrics that count.
    pub count: bool,
}

impl Look {
    /// For a tree of a metric.
    pub fn new(metric: &Metric, whole: i64, width: usize, inverted: bool) -> Look {
        let scale = Scale::for_total(metric.unit, whole);
        let count = width >= 90 && metric.unit != etwhy_table::Unit::Count;
        Look { width, color: color(), scale, whole, own: !inverted, count }
    }

    /// Colour of a kind of node: those of the pages' flame graph.
    fn paint(&self, kind: NodeKind, text: &str) -> String {
        let code = match kind {
            NodeKind::Kernel => "31",
            NodeKind::Interrupt => "35",
            NodeKind::User => "34",
            NodeKind::Managed => "32",
            NodeKind::Root | NodeKind::Group => "1",
            NodeKind::Unknown | NodeKind::System | NodeKind::NoStack | NodeKind::Others => "2",
        };
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// The letter that tells kinds of code apart where colours cannot.
fn letter(kind: NodeKind) -> char {
    match kind {
        NodeKind::Kernel => 'k',
        NodeKind::User => 'u',
        NodeKind::Managed => 'm',
        NodeKind::Interrupt => 'i',
        NodeKind::Unknown => '?',
        _ => ' ',
    }
}

/// What the letters mean.
pub const LETTERS: &str =
    "k kernel, u program, m .NET, i DPC or ISR, ? unknown; [cut]: stacks begin there, but in their middle";

/// Widths of the numbers: weight, share, own, count.
struct Widths {
    weight: usize,
    own: usize,
    count: usize,
}

/// Prints a tree with its head.
///
/// # Errors
/// If it cannot be written.
pub fn print(out: &mut impl Write, tree: &Tree, look: &Look) -> io::Result<()> {
    let longest =
        |of: &dyn Fn(&Node) -> String| tree.nodes.iter().map(|n| columns(&of(n))).max().unwrap_or(0);
    let title = if look.scale.unit.is_empty() { "count" } else { look.scale.unit };
    let widths = Widths {
        weight: longest(&|n| look.scale.number(n.total.weight)).max(columns(title)),
        own: longest(&|n| look.scale.number(n.own.weight)).max(4),
        count: longest(&|n| thousands(n.total.count.into())).max(5),
    };
    let mut head = format!("{} {:>5}", pad_start(title, widths.weight), "%");
    if look.own {
        head.push_str(&format!(" {}", pad_start("self", widths.own)));
    }
    if look.count {
        head.push_str(&format!(" {}", pad_start("count", widths.count)));
    }
    writeln!(out, "{head}")?;
    let children = tree.children();
    // Node, what stands before its name, what stands before those of its children.
    let mut open: Vec<(u32, String, String)> = vec![(0, String::new(), String::new())];
    while let Some((number, before, below)) = open.pop() {
        let Some(node) = tree.node(number) else { continue };
        let mut list = children.get(number as usize).map(Vec::as_slice).unwrap_or(&[]);
        // Beside a single child they would make a branch of a chain.
        let others =
            list.last().and_then(|&n| tree.node(n)).filter(|n| tree.name(n).kind == NodeKind::Others);
        let others = others.filter(|_| list.len() <= 2);
        if others.is_some() {
            list = list.split_last().map_or(&[], |(_, rest)| rest);
        }
        line(out, tree.name(node), node, others, &before, &widths, look)?;
        if let [only] = list {
            open.push((*only, below.clone(), below));
            continue;
        }
        // Deep branches keep the indent that they have, so that names stay visible.
        let deep = columns(&below) > look.width / 3;
        for (place, &child) in list.iter().enumerate().rev() {
            let last = place + 1 == list.len();
            let (branch, more) = match (last, deep) {
                (false, false) => ("├─ ", "│  "),
                (true, false) => ("└─ ", "   "),
                (false, true) => ("├", "│"),
                (true, true) => ("└", " "),
            };
            open.push((child, format!("{below}{branch}"), format!("{below}{more}")));
        }
    }
    Ok(())
}

fn line(
    out: &mut impl Write,
    name: &NodeName,
    node: &Node,
    others: Option<&Node>,
    before: &str,
    widths: &Widths,
    look: &Look,
) -> io::Result<()> {
    let mut head = format!(
        "{} {:>5}",
        pad_start(&look.scale.number(node.total.weight), widths.weight),
        percent_text(node.total.weight, look.whole)
    );
    if look.own {
        let own = if node.own.weight == 0 { String::new() } else { look.scale.number(node.own.weight) };
        head.push_str(&format!(" {}", pad_start(&own, widths.own)));
    }
    if look.count {
        head.push_str(&format!(" {}", pad_start(&thousands(node.total.count.into()), widths.count)));
    }
    let mut behind = String::new();
    if node.cut > 0 {
        let share = if node.cut == node.total.weight {
            String::new()
        } else {
            format!(" {} %", percent_text(node.cut, node.total.weight))
        };
        behind.push_str(&format!(" [cut{share}]"));
    }
    if node.folded > 0 && name.kind != NodeKind::Others {
        behind.push_str(&format!(" [… {} below]", thousands(node.folded.into())));
    }
    if let Some(others) = others {
        let weight = look.scale.number(others.total.weight);
        behind.push_str(&format!(
            " [… {} other{} {weight}]",
            others.folded,
            if others.folded == 1 { "" } else { "s" }
        ));
    }
    let letter = letter(name.kind);
    let used = columns(&head) + columns(before) + columns(&behind) + 4;
    let label = sanitize(&name.label).into_owned();
    let label = truncate_middle(&label, look.width.saturating_sub(used).max(12));
    let text = format!("{head} {letter} {before}{}{behind}", look.paint(name.kind, &label));
    writeln!(out, "{}", text.trim_end())
}

/// A list of names with two sums each, such as processes.
///
/// # Errors
/// If it cannot be written.
pub fn print_list(
    out: &mut impl Write,
    rows: &[(String, i64, i64)],
    look: &Look,
    top: usize,
) -> io::Result<()> {
    let mut table = Table::new([
        Column::name(""),
        Column::number(look.scale.unit),
        Column::number("%"),
        Column::number("self"),
    ]);
    for (name, all, own) in rows {
        let numbers = [look.scale.number(*all), percent_text(*all, look.whole), look.scale.number(*own)]
            .map(Line::from);
        table.row(std::iter::once(Line::name(name)).chain(numbers));
    }
    let mut doc = Doc::default();
    doc.table(table.at_most(top));
    write!(out, "{}", Terminal { columns: look.width, color: look.color }.render(&doc))
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_analysis::stacks::Sum;

    fn node(name: u32, parent: u32, total: i64, own: i64) -> Node {
        let sum = |weight: i64| Sum { weight: weight * 1_000_000, count: weight, ..Sum::default() };
        Node { name, parent, total: sum(total), own: sum(own), ..Node::default() }
    }

    fn printed(width: usize) -> String {
        let kinds = [NodeKind::Root, NodeKind::User, NodeKind::Kernel, NodeKind::Managed];
        let labels = [
            "[all]",
            "app.exe!main",
            "nt!Ke\u{1b}[31mWait",
            "x!一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十",
        ];
        let names = labels.iter().zip(kinds).map(|(label, kind)| NodeName {
            label: (*label).into(),
            kind,
            ..NodeName::default()
        });
        let mut nodes = vec![
            node(0, 0, 20_000, 0),
            node(1, 0, 20_000, 1),
            node(2, 1, 15_000, 15_000),
            node(3, 1, 4_999, 4_999),
        ];
        nodes[3].cut = 4_999_000_000;
        let tree = Tree { names: names.collect(), nodes, refused: 0, before_steps: Default::default() };
        let metric = Metric::of_unit(etwhy_table::Unit::Ns);
        let look = Look { color: false, ..Look::new(&metric, tree.total().weight, width, false) };
        let mut out = Vec::new();
        print(&mut out, &tree, &look).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn branches_are_drawn_and_chains_are_not() {
        let expected = "    ms     %   self\n\
                        20,000   100          [all]\n\
                        20,000   100      1 u app.exe!main\n\
                        15,000  75.0 15,000 k ├─ nt!Ke␛[31mWait\n";
        let text = printed(60);
        assert!(text.starts_with(expected), "{text}");
        let last = text.lines().last().unwrap();
        assert!(last.contains("m └─ x!一二") && last.ends_with(" [cut]"), "{text}");
        assert!(text.lines().all(|line| columns(line) <= 60), "{text}");
        assert!(printed(200).contains("ms     %   self  count"));
    }
}
