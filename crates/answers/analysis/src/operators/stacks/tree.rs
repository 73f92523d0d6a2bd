//! A tree of weights: of calls from the outside in, or inverted.
//!
//! Node 0 is the root; a parent stands before its children and is never lighter than all of them together. The sum of
//! `own` over all nodes is the root's `total`, whatever was folded, collapsed or turned around.

use super::frames::FrameName;
use crate::fold::Kind;
use crate::operators::add;
use etwhy_knowledge::is_security;
use foldhash::HashMap;

/// What a node stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NodeKind {
    /// Everything.
    #[default]
    Root,
    /// A group: process, thread, service, module, tag or category.
    Group,
    /// DPCs or ISRs, apart from the threads that they interrupted.
    Interrupt,
    /// Code of the kernel or a driver.
    Kernel,
    /// Code of a process.
    User,
    /// .NET.
    Managed,
    /// Nothing is known there.
    Unknown,
    /// Code of Windows that was hidden, where nothing else is on the stack.
    System,
    /// There is no stack.
    NoStack,
    /// Nodes that were too small to be shown.
    Others,
}

impl NodeKind {
    /// The word in JSON and CSV.
    pub fn name(self) -> &'static str {
        match self {
            NodeKind::Root => "root",
            NodeKind::Group => "group",
            NodeKind::Interrupt => "interrupt",
            NodeKind::Kernel => "kernel",
            NodeKind::User => "user",
            NodeKind::Managed => "managed",
            NodeKind::Unknown => "unknown",
            NodeKind::System => "system",
            NodeKind::NoStack => "no_stack",
            NodeKind::Others => "others",
        }
    }

    /// It is a function or module that can stand on a stack.
    pub fn is_code(self) -> bool {
        matches!(self, NodeKind::Kernel | NodeKind::User | NodeKind::Managed | NodeKind::Unknown)
    }
}

impl From<Kind> for NodeKind {
    fn from(kind: Kind) -> NodeKind {
        match kind {
            Kind::Kernel => NodeKind::Kernel,
            Kind::User => NodeKind::User,
            Kind::Managed => NodeKind::Managed,
            Kind::Unknown => NodeKind::Unknown,
        }
    }
}

/// What a node is called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodeName {
    /// `module!function`, a process, a group.
    pub label: String,
    /// What it is.
    pub kind: NodeKind,
    /// Module; empty for what is no code.
    pub module: String,
    /// Category of the module, from the knowledge base; empty if unknown.
    pub category: String,
    /// Stack tag; empty if it has none.
    pub tag: String,
    /// The category is one of security products.
    pub security: bool,
}

impl NodeName {
    /// A name of something that is no code.
    pub fn named(label: impl Into<String>, kind: NodeKind) -> NodeName {
        NodeName { label: label.into(), kind, ..NodeName::default() }
    }
}

impl From<&FrameName> for NodeName {
    fn from(frame: &FrameName) -> NodeName {
        NodeName {
            label: frame.label.clone(),
            kind: frame.kind.into(),
            module: frame.module.clone(),
            category: frame.category.clone(),
            tag: frame.tag.clone(),
            security: is_security(&frame.category),
        }
    }
}

impl From<&NodeName> for FrameName {
    /// What was made of frames; of what is no code an empty name that nothing means.
    fn from(name: &NodeName) -> FrameName {
        if !name.kind.is_code() {
            return FrameName::default();
        }
        FrameName {
            label: name.label.clone(),
            module: name.module.clone(),
            function: None,
            kind: match name.kind {
                NodeKind::Kernel => Kind::Kernel,
                NodeKind::User => Kind::User,
                NodeKind::Managed => Kind::Managed,
                _ => Kind::Unknown,
            },
            category: name.category.clone(),
            tag: name.tag.clone(),
        }
    }
}

/// What stands at a stack, or at several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Weight in the metric's unit.
    pub weight: i64,
    /// Events.
    pub count: i64,
    /// Time of the first; `None` if no time is known.
    pub first_ns: Option<i64>,
    /// Time of the last.
    pub last_ns: Option<i64>,
}

impl Sum {
    /// Adds another one.
    pub fn add(&mut self, other: &Sum) {
        add(&mut self.weight, other.weight);
        add(&mut self.count, other.count);
        let pick = |a: Option<i64>, b: Option<i64>, f: fn(i64, i64) -> i64| match (a, b) {
            (Some(a), Some(b)) => Some(f(a, b)),
            (a, b) => a.or(b),
        };
        self.first_ns = pick(self.first_ns, other.first_ns, i64::min);
        self.last_ns = pick(self.last_ns, other.last_ns, i64::max);
    }
}

/// A node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Its name, as a place in [`Tree::names`].
    pub name: u32,
    /// Its parent; that of the root is itself.
    pub parent: u32,
    /// With what stands below it.
    pub total: Sum,
    /// Itself: where a stack ends here.
    pub own: Sum,
    /// Weight of stacks that begin here but in their middle: they were too deep, or a half never came.
    pub cut: i64,
    /// Nodes that it stands for ([`NodeKind::Others`]), or that were folded into it by a limit of depth.
    pub folded: u32,
}

/// A tree.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// Names of nodes.
    pub names: Vec<NodeName>,
    /// Nodes, parents before children.
    pub nodes: Vec<Node>,
    /// Nodes that were not made because the tree was full; their weight stays in the nodes above them.
    pub refused: u64,
    /// Sum of the part before the steps of [`super::View::steps`], some of which choose stacks.
    pub before_steps: Sum,
}

impl Tree {
    /// The root's sum.
    pub fn total(&self) -> Sum {
        self.nodes.first().map(|root| root.total).unwrap_or_default()
    }

    /// The node with this number.
    pub fn node(&self, number: u32) -> Option<&Node> {
        self.nodes.get(number as usize)
    }

    /// The name of a node.
    pub fn name(&self, node: &Node) -> &NodeName {
        static NONE: NodeName = NodeName {
            label: String::new(),
            kind: NodeKind::Unknown,
            module: String::new(),
            category: String::new(),
            tag: String::new(),
            security: false,
        };
        self.names.get(node.name as usize).unwrap_or(&NONE)
    }

    /// Children of all nodes, the heaviest first; what stands for others comes last.
    pub fn children(&self) -> Vec<Vec<u32>> {
        let mut out: Vec<Vec<u32>> = vec![Vec::new(); self.nodes.len()];
        for (number, node) in self.nodes.iter().enumerate().skip(1) {
            if let Some(list) = out.get_mut(node.parent as usize) {
                list.push(number as u32);
            }
        }
        for list in &mut out {
            list.sort_by_cached_key(|&number| {
                let Some(node) = self.node(number) else { return (false, 0, 0, "") };
                let name = self.name(node);
                let others = name.kind == NodeKind::Others;
                (others, -node.total.weight, -node.total.count, name.label.as_str())
            });
        }
        out
    }

    /// How many edges lie between the root and each node.
    pub fn depths(&self) -> Vec<u32> {
        let mut out: Vec<u32> = Vec::with_capacity(self.nodes.len());
        for (number, node) in self.nodes.iter().enumerate() {
            let above = out.get(node.parent as usize).copied().unwrap_or(0);
            out.push(if number == 0 { 0 } else { above.saturating_add(1) });
        }
        out
    }
}

/// Nodes of a tree, most that are made: about 400 MB.
const MAX_NODES: usize = 4_000_000;

/// A tree while it grows.
pub(super) struct Grow {
    nodes: Vec<Node>,
    children: HashMap<(u32, u32), u32>,
    refused: u64,
}

impl Grow {
    /// A root with this name.
    pub fn new(root: u32) -> Grow {
        let nodes = vec![Node { name: root, ..Node::default() }];
        Grow { nodes, children: HashMap::default(), refused: 0 }
    }

    /// Adds a path of names below the root. `cut`: the place of the path at which a stack begins that is not whole.
    pub fn add(&mut self, path: impl Iterator<Item = u32>, sum: &Sum, cut: Option<usize>) {
        let mut at = 0u32;
        self.total(at, sum);
        for (place, name) in path.enumerate() {
            let next = self.nodes.len() as u32;
            let node = match self.children.get(&(at, name)) {
                Some(&node) => node,
                None if self.nodes.len() >= MAX_NODES => {
                    self.refused += 1;
                    break;
                }
                None => {
                    self.children.insert((at, name), next);
                    self.nodes.push(Node { name, parent: at, ..Node::default() });
                    next
                }
            };
            at = node;
            self.total(at, sum);
            if cut == Some(place)
                && let Some(node) = self.nodes.get_mut(at as usize)
            {
                add(&mut node.cut, sum.weight);
            }
        }
        if let Some(node) = self.nodes.get_mut(at as usize) {
            node.own.add(sum);
        }
    }

    fn total(&mut self, node: u32, sum: &Sum) {
        if let Some(node) = self.nodes.get_mut(node as usize) {
            node.total.add(sum);
        }
    }

    /// The tree.
    pub fn finish(self, names: Vec<NodeName>) -> Tree {
        Tree { names, nodes: self.nodes, refused: self.refused, before_steps: Sum::default() }
    }
}

/// A path with its sum: groups, then frames, outermost first.
pub(super) struct Path<'p> {
    pub groups: &'p [u32],
    pub frames: &'p [u32],
    pub sum: &'p Sum,
    /// The stack begins in its middle.
    pub cut: bool,
}
