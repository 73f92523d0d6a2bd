//! Levels between the root and the frames: by process, thread, service, module, tag, category.

use super::frames::Frames;
use super::grow::View;
use super::tree::{NodeKind, NodeName};
use super::{Class, WeightedStack};
use crate::operators::{for_each_batch, process_names};
use etwhy_knowledge::{FrameTag, deciding_frame, tag_path};
use etwhy_table::Database;
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
    /// Stack tag of the innermost frame that has one.
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
    numbers: HashMap<(NodeKind, String), u32>,
    one_interrupt: bool,
    without_ids: bool,
}

impl Groups {
    /// Reads processes and threads.
    pub fn read(db: &Database, view: &View) -> Groups {
        let by = &view.groups;
        let mut process_services = Vec::new();
        let mut threads = Vec::new();
        if by.contains(&GroupBy::Service) {
            for_each_batch(db, "process", ["services"], |rows, [services]| {
                process_services.extend((0..rows).map(|row| services.text(row).unwrap_or("").to_owned()));
            });
        }
        if by.contains(&GroupBy::Thread) || by.contains(&GroupBy::Service) {
            for_each_batch(db, "thread", ["tid", "name", "service"], |rows, [tid, name, service]| {
                threads.extend((0..rows).map(|row| {
                    let text =
                        |column: &etwhy_table::ColumnView<'_>| column.text(row).unwrap_or("").to_owned();
                    (tid.i64(row).unwrap_or(-1), text(&name), text(&service))
                }));
            });
        }
        Groups {
            by: by.clone(),
            processes: process_names(db),
            process_services,
            threads,
            numbers: HashMap::default(),
            one_interrupt: view.one_interrupt,
            without_ids: view.without_ids,
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
            names.push(NodeName::of(label.clone(), *kind));
            (names.len() - 1) as u32
        })
    }

    fn label(&self, group: GroupBy, weight: &WeightedStack, frames: &[u32], known: &Frames) -> String {
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
                if let Some(path) = file_tag(frames, known) {
                    return path;
                }
                innermost.find(|n| !n.tag.is_empty()).map_or("[no tag]", |n| n.tag.as_str()).to_owned()
            }
            GroupBy::Category => innermost
                .find(|n| !n.category.is_empty())
                .map_or("[no category]", |n| n.category.as_str())
                .to_owned(),
        }
    }
}

/// The tag of a stack that a file of the user's gives it, chosen as for column `tag` of table `stack`.
fn file_tag(frames: &[u32], known: &Frames) -> Option<String> {
    let name = |at: usize| known.name(*frames.get(at)?);
    let tags = (0..frames.len()).map(|at| name(at)?.file_tag.map(FrameTag::File));
    let (at, tag) = deciding_frame(tags)?;
    let path = tag_path(at, tag, |at| name(at).map(|n| (n.module.as_str(), n.function.as_deref())));
    Some(path).filter(|path| !path.is_empty())
}
