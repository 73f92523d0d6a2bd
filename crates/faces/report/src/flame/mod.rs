//! Flame graphs and icicles of a tree of weights, as SVG and as a page.
//!
//! The width of a box is its weight with what it called; children stand on their caller (flame graph) or hang below it
//! (icicle), the heaviest first. What is narrower than a third of a pixel is left out: its room stays empty. Names come
//! from traces: they are text everywhere, and unsafe characters are made visible.

mod draw;
mod page;

pub use draw::svg;
pub use page::html;

use etwhy_analysis::stacks::{Before, NodeKind, NodeName, Tree};
use etwhy_export::sanitize;
use std::collections::BTreeMap;

/// Boxes that are narrower are not drawn, in pixels.
const LEAST_WIDTH: f64 = 0.3;
/// Boxes that are drawn, heaviest first: more than this no viewer shows in time.
const MOST_BOXES: usize = 30_000;
/// Longest names that are kept.
const LONGEST: usize = 300;

/// What colours stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colours {
    /// Kernel, program, .NET, DPC and ISR, security products.
    #[default]
    Kind,
    /// Categories of the knowledge base.
    Category,
}

/// How a graph looks and what is written on it.
pub struct Options<'o> {
    /// What it shows.
    pub title: &'o str,
    /// How it was made: metric, whole, filters.
    pub subtitle: &'o str,
    /// The root is on top.
    pub icicle: bool,
    /// Width in pixels.
    pub width: u32,
    /// What colours stand for, where nothing is compared.
    pub colours: Colours,
    /// A weight with its unit.
    pub amount: &'o dyn Fn(i64) -> String,
}

/// What a tree was before, on the scale of the tree itself.
pub struct Comparison {
    /// Weights before.
    pub before: Before,
    /// What a weight before is multiplied with: for another duration and number of processors.
    pub factor: f64,
}

/// A box.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    /// Left side and width, as shares of the whole.
    pub left: f64,
    pub width: f64,
    /// Levels below the root.
    pub depth: u32,
    pub label: String,
    /// What it says when it is pointed at.
    pub title: String,
    pub class: String,
}

/// All that is drawn.
pub(crate) struct Picture {
    pub cells: Vec<Cell>,
    /// Levels.
    pub levels: u32,
    /// Classes with what they mean.
    pub legend: Vec<(String, String)>,
    /// What is left out, in words; empty if nothing is.
    pub note: String,
}

/// Classes of categories that have a colour of their own; what is rarer shares the last one.
const CATEGORY_COLOURS: usize = 9;

struct Painter<'p> {
    colours: Colours,
    comparison: Option<&'p Comparison>,
    categories: BTreeMap<String, usize>,
}

impl Painter<'_> {
    fn new<'p>(tree: &Tree, colours: Colours, comparison: Option<&'p Comparison>) -> Painter<'p> {
        let mut weights: BTreeMap<&str, i64> = BTreeMap::new();
        for node in &tree.nodes {
            let name = tree.name(node);
            if !name.category.is_empty() {
                let sum = weights.entry(&name.category).or_default();
                *sum = sum.saturating_add(node.own.weight);
            }
        }
        let mut order: Vec<(&str, i64)> = weights.into_iter().collect();
        order.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        let place = |(n, (name, _)): (usize, &(&str, i64))| ((*name).to_owned(), n.min(CATEGORY_COLOURS));
        let categories = order.iter().enumerate().map(place).collect();
        Painter { colours, comparison, categories }
    }

    /// Class of a node.
    fn class(&self, number: usize, name: &NodeName, weight: i64) -> String {
        if let Some(comparison) = self.comparison {
            return change_class(comparison.of(number), weight as f64);
        }
        match (self.colours, self.categories.get(&name.category)) {
            (Colours::Category, Some(place)) => format!("c{place}"),
            (Colours::Category, None) if name.kind.is_code() => "unknown".to_owned(),
            _ if name.security => "watched".to_owned(),
            _ => match name.kind {
                NodeKind::Root | NodeKind::Group => "group",
                NodeKind::Kernel => "kernel",
                NodeKind::User => "user",
                NodeKind::Managed => "managed",
                NodeKind::Interrupt => "interrupt",
                _ => "unknown",
            }
            .to_owned(),
        }
    }

    /// Meaning of a class.
    fn meaning(&self, class: &str) -> String {
        if let Some(place) = class.strip_prefix('c').and_then(|n| n.parse::<usize>().ok()) {
            let of: Vec<&str> =
                self.categories.iter().filter(|(_, p)| **p == place).map(|(name, _)| name.as_str()).collect();
            return if of.len() > 2 { "other categories".to_owned() } else { of.join(", ") };
        }
        match class {
            "group" => "process or group",
            "kernel" => "kernel and drivers",
            "user" => "program",
            "managed" => ".NET",
            "interrupt" => "DPC and ISR",
            "watched" => "security product",
            "more3" => "more than before: at least twice",
            "more2" => "a quarter more",
            "more1" => "5 % more",
            "same" => "as before (within 5 %)",
            "less1" => "5 % less",
            "less2" => "a quarter less",
            "less3" => "less: at most half",
            "new" => "not there before",
            _ if self.colours == Colours::Category => "no category",
            _ => "unknown",
        }
        .to_owned()
    }
}

impl Comparison {
    /// The weight of a node before, on the scale of now.
    fn of(&self, number: usize) -> f64 {
        self.before.weights.get(number).map_or(0.0, |&weight| weight as f64 * self.factor)
    }
}

/// Class of a change. The steps are ratios, the same both ways.
fn change_class(before: f64, now: f64) -> String {
    if before <= 0.0 {
        return "new".to_owned();
    }
    let ratio = now / before;
    let step = |ratio: f64| match ratio {
        r if r >= 2.0 => 3,
        r if r >= 1.25 => 2,
        r if r >= 1.05 => 1,
        _ => 0,
    };
    match (step(ratio), step(if ratio > 0.0 { 1.0 / ratio } else { f64::INFINITY })) {
        (0, 0) => "same".to_owned(),
        (0, less) => format!("less{less}"),
        (more, _) => format!("more{more}"),
    }
}

/// Lays a tree out.
pub(crate) fn picture(tree: &Tree, options: &Options<'_>, comparison: Option<&Comparison>) -> Picture {
    let whole = tree.total().weight.max(1) as f64;
    let painter = Painter::new(tree, options.colours, comparison);
    let children = tree.children();
    let least = LEAST_WIDTH / f64::from(options.width.max(100));
    let mut out = Picture { cells: Vec::new(), levels: 0, legend: Vec::new(), note: String::new() };
    let (mut narrow, mut unseen) = (0u64, 0i64);
    let mut open: std::collections::VecDeque<(u32, f64, u32)> =
        std::collections::VecDeque::from([(0, 0.0, 0)]);
    while let Some((number, left, depth)) = open.pop_front() {
        let Some(node) = tree.node(number) else { continue };
        let name = tree.name(node);
        let label: String = sanitize(&name.label).chars().take(LONGEST).collect();
        let share = node.total.weight as f64 / whole;
        let mut title = format!(
            "{label}: {:.1} %, {} with what it called, {} itself",
            share * 100.0,
            (options.amount)(node.total.weight),
            (options.amount)(node.own.weight)
        );
        if let Some(comparison) = comparison {
            let before = comparison.of(number as usize);
            let change = node.total.weight as f64 - before;
            let percent =
                if before > 0.0 { format!(" ({:+.0} %)", change / before * 100.0) } else { String::new() };
            title.push_str(&format!(
                "; before {}, change {}{}{percent}",
                (options.amount)(before.round() as i64),
                if change >= 0.0 { "+" } else { "" },
                (options.amount)(change.round() as i64),
            ));
        }
        if !name.category.is_empty() {
            title.push_str(&format!("; {}", sanitize(&name.category)));
        }
        if node.cut > 0 {
            title.push_str(&format!(
                "; {} of stacks that begin here in their middle",
                (options.amount)(node.cut)
            ));
        }
        out.levels = out.levels.max(depth + 1);
        let class = painter.class(number as usize, name, node.total.weight);
        out.cells.push(Cell { left, width: share, depth, label, title, class });
        let mut at = left;
        for &child in children.get(number as usize).into_iter().flatten() {
            let Some(below) = tree.node(child) else { continue };
            let width = below.total.weight as f64 / whole;
            // What stands for others is no function: its room stays empty.
            let drawn = tree.name(below).kind != NodeKind::Others && width >= least;
            if drawn && out.cells.len() + open.len() < MOST_BOXES {
                open.push_back((child, at, depth + 1));
            } else {
                narrow += u64::from(below.folded.max(1));
                unseen = unseen.saturating_add(below.total.weight);
            }
            at += width;
        }
    }
    let order = [
        "group",
        "user",
        "managed",
        "kernel",
        "watched",
        "interrupt",
        "more3",
        "more2",
        "more1",
        "new",
        "same",
        "less1",
        "less2",
        "less3",
    ];
    let mut classes: Vec<&str> = out.cells.iter().map(|cell| cell.class.as_str()).collect();
    classes.sort_by_key(|class| (order.iter().position(|o| o == class).unwrap_or(order.len()), *class));
    classes.dedup();
    out.legend = classes.iter().map(|class| ((*class).to_owned(), painter.meaning(class))).collect();
    if narrow > 0 {
        out.note = format!("{narrow} narrow branches are left out ({}). ", (options.amount)(unseen));
    }
    if let Some(gone) =
        comparison.map(|c| (c.before.gone as f64 * c.factor).round() as i64).filter(|&g| g > 0)
    {
        out.note.push_str(&format!("What is no longer there took {}. ", (options.amount)(gone)));
    }
    out
}

#[cfg(test)]
pub(crate) mod tests;
