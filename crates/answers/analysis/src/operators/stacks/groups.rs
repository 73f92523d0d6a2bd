//! Levels between the root and the frames: by process, thread, service, module, tag, category.

use super::frames::Frames;
use super::tree::{NodeKind, NodeName};
use super::{Class, WeightedStack};
use crate::operators::process_names;
use etwhy_knowledge::{FrameTag, deciding_frame, tag_path};
use etwhy_table::Database;
use etwhy_trace::catalog::{process::ProcessRow, stack::StackRow, thread::ThreadRow};
use foldhash::HashMap;

/// What a level tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupBy {
    /// Processes.
    Process,
    /// Threads.
    Thread,
    /// Services of threads, else of processes.
    Service,
    /// Module of the innermost frame.
    Module,
    /// The stack's one tag; of a DPC or ISR that of its own part of the stack.
    Tag,
    /// Category of the innermost frame that has one.
    Category,
}

impl GroupBy {
    /// All of them with their names.
    pub const ALL: &'static [(&'static str, GroupBy)] = &[
        ("process", GroupBy::Process),
        ("thread", GroupBy::Thread),
        ("service", GroupBy::Service),
        ("module", GroupBy::Module),
        ("tag", GroupBy::Tag),
        ("category", GroupBy::Category),
    ];

    /// The one with this name.
    pub fn by_name(name: &str) -> Option<GroupBy> {
        Self::ALL.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, group)| *group)
    }

    fn is_of_stack(self) -> bool {
        matches!(self, GroupBy::Module | GroupBy::Tag | GroupBy::Category)
    }
}

/// Names of groups, on demand.
pub(super) struct Groups {
    by: Vec<GroupBy>,
    processes: Vec<(String, i64)>,
    process_services: Vec<String>,
    /// Thread id, name and services.
    threads: Vec<(i64, String, String)>,
    /// The tag of each stack; empty if it has none.
    stack_tags: Vec<String>,
    /// The tag of each name of a frame, once it was asked for.
    name_tags: HashMap<u32, Option<FrameTag>>,
    numbers: HashMap<(NodeKind, String), u32>,
    one_interrupt: bool,
    without_ids: bool,
}

impl Groups {
    /// Reads processes and threads. See [`super::View`] for the two choices.
    pub fn read(db: &Database, by: &[GroupBy], one_interrupt: bool, without_ids: bool) -> Groups {
        let mut process_services = Vec::new();
        let mut threads = Vec::new();
        if by.contains(&GroupBy::Service) {
            process_services.extend(
                db.read_or_empty::<ProcessRow>().iter().map(|row| row.services().unwrap_or("").to_owned()),
            );
        }
        if by.contains(&GroupBy::Thread) || by.contains(&GroupBy::Service) {
            threads.extend(db.read_or_empty::<ThreadRow>().iter().map(|row| {
                let text = |text: Option<&str>| text.unwrap_or("").to_owned();
                (row.tid(), text(row.name()), text(row.service()))
            }));
        }
        let mut stack_tags = Vec::new();
        if by.contains(&GroupBy::Tag) {
            stack_tags
                .extend(db.read_or_empty::<StackRow>().iter().map(|row| row.tag().unwrap_or("").to_owned()));
        }
        Groups {
            by: by.to_vec(),
            processes: process_names(db),
            process_services,
            threads,
            stack_tags,
            name_tags: HashMap::default(),
            numbers: HashMap::default(),
            one_interrupt,
            without_ids,
        }
    }

    /// The weight without what no level tells apart, so that equal stacks are looked at once.
    pub fn key(&self, weight: &WeightedStack) -> (Class, Option<i64>, Option<i64>) {
        let needs =
            |groups: &[GroupBy]| weight.class == Class::Thread && self.by.iter().any(|g| groups.contains(g));
        let upid = weight.upid.filter(|_| needs(&[GroupBy::Process, GroupBy::Service]));
        (weight.class, upid, weight.utid.filter(|_| needs(&[GroupBy::Thread, GroupBy::Service])))
    }

    /// Puts the groups of a weight into `path`. `frames` are numbers of names, innermost first.
    pub fn path(
        &mut self,
        weight: &WeightedStack,
        frames: &[u32],
        known: &Frames,
        names: &mut Vec<NodeName>,
        path: &mut Vec<u32>,
    ) {
        match weight.class {
            Class::Thread => {}
            _ if self.one_interrupt => {
                path.push(self.number("[DPC and ISR]".to_owned(), NodeKind::Interrupt, names))
            }
            Class::Dpc => path.push(self.number("[DPC]".to_owned(), NodeKind::Interrupt, names)),
            Class::Isr => path.push(self.number("[ISR]".to_owned(), NodeKind::Interrupt, names)),
        }
        for group in self.by.clone() {
            if weight.class != Class::Thread && !group.is_of_stack() {
                continue;
            }
            let label = self.label(group, weight, frames, known);
            path.push(self.number(label, NodeKind::Group, names));
        }
    }

    fn number(&mut self, label: String, kind: NodeKind, names: &mut Vec<NodeName>) -> u32 {
        *self.numbers.entry((kind, label)).or_insert_with_key(|(kind, label)| {
            names.push(NodeName::named(label.clone(), *kind));
            (names.len() - 1) as u32
        })
    }

    fn label(&mut self, group: GroupBy, weight: &WeightedStack, frames: &[u32], known: &Frames) -> String {
        let at = |id: Option<i64>| id.and_then(|id| usize::try_from(id).ok());
        let mut innermost = frames.iter().filter_map(|&f| known.name(f));
        match group {
            GroupBy::Process => match at(weight.upid).and_then(|p| self.processes.get(p)) {
                Some((name, _)) if self.without_ids => name.clone(),
                Some((name, pid)) => format!("{name} ({pid})"),
                None => "[unknown process]".to_owned(),
            },
            GroupBy::Thread => match at(weight.utid).and_then(|t| self.threads.get(t)) {
                Some((_, name, _)) if self.without_ids && name.is_empty() => {
                    "[thread without a name]".to_owned()
                }
                Some((_, name, _)) if self.without_ids => name.clone(),
                Some((tid, name, _)) if name.is_empty() => format!("thread {tid}"),
                Some((tid, name, _)) => format!("thread {tid} {name}"),
                None => "[unknown thread]".to_owned(),
            },
            GroupBy::Service => {
                let of_thread = at(weight.utid).and_then(|t| self.threads.get(t)).map(|(_, _, s)| s.as_str());
                let of_process =
                    || at(weight.upid).and_then(|p| self.process_services.get(p)).map(String::as_str);
                let found = of_thread.filter(|s| !s.is_empty()).or_else(of_process).filter(|s| !s.is_empty());
                found.unwrap_or("[no service]").to_owned()
            }
            GroupBy::Module => innermost.next().map_or("[no stack]", |n| n.module.as_str()).to_owned(),
            GroupBy::Tag => {
                let tag = self.tag(weight, frames, known);
                if tag.is_empty() { "[no tag]".to_owned() } else { tag }
            }
            GroupBy::Category => innermost
                .find(|n| !n.category.is_empty())
                .map_or("[no category]", |n| n.category.as_str())
                .to_owned(),
        }
    }

    /// The tag of a weight. That of table `stack` belongs to the whole stack: DPCs and ISRs, which have only a part of theirs, are
    /// told by the frames of that part.
    fn tag(&mut self, weight: &WeightedStack, frames: &[u32], known: &Frames) -> String {
        let of_stack = weight.stack.filter(|_| weight.class == Class::Thread);
        if let Some(tag) = of_stack.and_then(|s| self.stack_tags.get(usize::try_from(s).ok()?)) {
            return tag.clone();
        }
        let named = |number: u32| known.name(number).map(|n| (n.module.as_str(), n.function.as_deref()));
        let cache = &mut self.name_tags;
        let tags = frames.iter().map(|&number| {
            let of_name =
                || named(number).and_then(|(module, f)| FrameTag::for_frame(module, f.unwrap_or("")));
            *cache.entry(number).or_insert_with(of_name)
        });
        let best = deciding_frame(tags);
        best.map_or_else(String::new, |(at, tag)| tag_path(at, tag, |at| named(*frames.get(at)?)))
    }
}
