//! CPU time by stack tag: what the time went to, whichever function did it.
//!
//! # How it is computed
//!
//! Stack tags are patterns of `module!function` with a meaning (`crates/model/knowledge`), grouped in categories: `etw`, `lock`,
//! `spin`, `memory` and others. Rows of level `tag` are one pattern each, rows of level `category` all patterns of a
//! category; take rows of one level only. A sample counts once in `inclusive_ns` of each tag on its stack, and
//! in `exclusive_ns` of the innermost one only, so exclusive times can be added up. `owner` is the driver that the
//! sample is charged to in `driver_cost`, wherever it stands on the stack.
//!
//! # What fools it
//!
//! Tags need names of functions: without symbols only modules that are tagged as a whole appear. A tag far out on the stack is
//! inclusive of everything below, also of what has nothing to do with its meaning.

use super::{Cell, Fold, Group, Seen, freeze, id, text};
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, define_table};
use std::collections::BTreeMap;

define_table! {
    /// CPU time by stack tag and driver, from samples.
    ///
    /// `level` says what a row sums over: `tag` or `category`. Take rows of one level only.
    pub table TAG_COST: TagCostRow = "tag_cost" {
        version: 1,
        /// What the row sums over: tag or category.
        level: Sym [None, Kind],
        /// thread, dpc or isr.
        class: Sym [None, Kind],
        /// Process that was running; for DPCs and ISRs the one that they interrupted.
        upid: Option<i32> [None, Process],
        /// Category of the tag: etw, lock, spin, memory, ...
        category: Sym [None, Kind],
        /// The tag's pattern, `module!function`; null at level category.
        tag: Option<Sym> [None, Name],
        /// What the tag means; null at level category.
        meaning: Option<Sym> [None, Name],
        /// Driver that the samples are charged to (table `driver_cost`); null if there is none.
        owner: Option<Sym> [None, Name],
        /// Time with a function of the tag on the stack.
        inclusive_ns: i64 [Ns, Weight],
        /// Time in which a function of the tag is the innermost that has any tag.
        exclusive_ns: i64 [Ns, Weight],
        /// Samples with a function of the tag on the stack.
        samples: i64 [Count, Count],
    }
}

/// Sums on the way to the table.
pub(crate) struct TagCosts {
    rows: TableBuilder<TagCostRow>,
    strings: Strings,
    /// The category of each tag, by number.
    category: Vec<u32>,
    categories: Vec<&'static str>,
    /// By driver, and by tag, or by category (those come first).
    sums: BTreeMap<(u32, Level, u32), Cell>,
    mark: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Category,
    Tag,
}

impl TagCosts {
    /// Nothing yet.
    pub fn new(fold: &Fold, memory: &Memory) -> TagCosts {
        let (mut category, mut categories) = (Vec::new(), Vec::new());
        for tag in &fold.facts.tags {
            let number = categories.iter().position(|name| *name == tag.category).unwrap_or_else(|| {
                categories.push(tag.category);
                categories.len() - 1
            });
            category.push(number as u32);
        }
        TagCosts {
            rows: TableBuilder::new(memory),
            strings: Strings::new(),
            category,
            categories,
            sums: BTreeMap::new(),
            mark: 0,
        }
    }

    /// Adds a stack.
    pub fn stack(&mut self, fold: &Fold, seen: &Seen<'_>) {
        self.mark += 1;
        let mut innermost = true;
        for frame in seen.part.frames() {
            let tag = fold.facts.tag_of(frame);
            let Some(&category) = self.category.get(tag as usize) else { continue };
            let innermost = std::mem::take(&mut innermost);
            for (level, number) in [(Level::Category, category), (Level::Tag, tag)] {
                let cell = self.sums.entry((seen.owner, level, number)).or_default();
                cell.on_stack(self.mark, seen.row.samples, seen.row.weight);
                if innermost {
                    cell.exclusive = cell.exclusive.saturating_add(seen.row.weight);
                }
            }
        }
    }

    /// Writes the rows of a group.
    pub fn flush(&mut self, fold: &Fold, group: &Group) {
        let mut sums: Vec<_> = std::mem::take(&mut self.sums).into_iter().collect();
        sums.sort_by_key(|((_, level, _), cell)| (*level, std::cmp::Reverse(cell.inclusive)));
        for ((owner, level, number), cell) in sums {
            let tag = (level == Level::Tag).then(|| fold.facts.stack_tag(number)).flatten();
            let category = match tag {
                Some(tag) => tag.category,
                None => self.categories.get(number as usize).copied().unwrap_or(""),
            };
            let owner = fold.facts.module(owner).map_or("", |module| module.name.as_str());
            self.rows.push(TagCostRow {
                level: self.strings.intern(if tag.is_some() { "tag" } else { "category" }),
                class: self.strings.intern(group.class.name()),
                upid: id(group.upid),
                category: self.strings.intern(category),
                tag: tag.map(|t| self.strings.intern(&format!("{}!{}", t.module, t.function))),
                meaning: tag.map(|t| self.strings.intern(t.meaning)),
                owner: text(&mut self.strings, owner),
                inclusive_ns: cell.inclusive,
                exclusive_ns: cell.exclusive,
                samples: cell.samples,
            });
        }
    }

    /// The table.
    pub fn finish(self, db: &Database) -> etwhy_table::Result<Table> {
        self.rows.finish(&freeze(self.strings, db)?)
    }
}
