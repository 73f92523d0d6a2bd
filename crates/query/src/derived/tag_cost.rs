//! CPU time by stack tag: what the time went to, whichever function did it.
//!
//! # How it is computed
//!
//! Stack tags are patterns of `module!function` with a meaning (`crates/knowledge`), grouped in categories: `etw`, `lock`,
//! `spin`, `memory` and others. Rows of level `tag` are one pattern each, rows of level `category` all patterns of a
//! category; take rows of one level only. A sample counts once in `inclusive_ns` of each tag on its stack, and
//! in `exclusive_ns` of the innermost one only, so exclusive times can be added up. `owner` is the driver that the
//! sample is charged to in `driver_cost`, wherever it stands on the stack.
//!
//! # What fools it
//!
//! Tags need names of functions: without symbols only modules that are tagged as a whole appear. A tag far out on the stack is
//! inclusive of everything below, also of what has nothing to do with its meaning.

use crate::derive::DerivedSpec;
use crate::fold::{Fold, NONE, Sums, freeze, id, text};
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, define_table};

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

/// Declaration.
pub static DERIVED: DerivedSpec = DerivedSpec {
    tables: &[&TAG_COST],
    reads: &["process", "stack_cost", "stack", "stack_frame", "frame", "image"],
    on_demand: false,
    make,
};

/// The category of each tag, by number.
struct Categories {
    names: Vec<&'static str>,
    of_tag: Vec<u32>,
}

impl Categories {
    fn new(fold: &Fold) -> Categories {
        let mut out = Categories { names: Vec::new(), of_tag: Vec::new() };
        for tag in &fold.facts.tags {
            let number = out.names.iter().position(|name| *name == tag.category).unwrap_or_else(|| {
                out.names.push(tag.category);
                out.names.len() - 1
            });
            out.of_tag.push(number as u32);
        }
        out
    }
}

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    let fold = Fold::read(db, true);
    let mut rows = TableBuilder::<TagCostRow>::new(memory);
    let mut strings = Strings::new();
    let categories = Categories::new(&fold);
    let mut by_tag = Sums::new(fold.facts.tags.len());
    let mut by_category = Sums::new(categories.names.len());
    for group in &fold.groups {
        // One run per owner: rows are put in its order first.
        let mut owned: Vec<(u32, usize)> = group
            .rows
            .iter()
            .enumerate()
            .map(|(at, row)| (fold.owner(&fold.part(group.class, row.stack)), at))
            .collect();
        owned.sort_unstable();
        for run in owned.chunk_by(|a, b| a.0 == b.0) {
            for row in run.iter().filter_map(|&(_, at)| group.rows.get(at)) {
                by_tag.next();
                by_category.next();
                let mut innermost = true;
                for frame in fold.part(group.class, row.stack).frames() {
                    let tag = fold.facts.tag_of(frame);
                    let Some(&category) = categories.of_tag.get(tag as usize) else { continue };
                    by_tag.on_stack(tag, row.samples, row.weight);
                    by_category.on_stack(category, row.samples, row.weight);
                    if std::mem::take(&mut innermost) {
                        for cell in [by_tag.cell(tag), by_category.cell(category)].into_iter().flatten() {
                            cell.exclusive = cell.exclusive.saturating_add(row.weight);
                        }
                    }
                }
            }
            let owner = run.first().map_or(NONE, |first| first.0);
            let owner = fold.facts.module(owner).and_then(|m| text(&mut strings, &m.name));
            let (class, upid) = (strings.intern(group.class.name()), id(group.upid));
            let tags = by_tag.take().into_iter().map(|(number, cell)| {
                let tag = fold.facts.stack_tag(number);
                (tag.map_or("", |t| t.category), tag, cell)
            });
            let names = by_category.take().into_iter().map(|(number, cell)| {
                (categories.names.get(number as usize).copied().unwrap_or(""), None, cell)
            });
            for (category, tag, cell) in names.chain(tags) {
                rows.push(TagCostRow {
                    level: strings.intern(if tag.is_some() { "tag" } else { "category" }),
                    class,
                    upid,
                    category: strings.intern(category),
                    tag: tag.map(|t| strings.intern(&format!("{}!{}", t.module, t.function))),
                    meaning: tag.map(|t| strings.intern(t.meaning)),
                    owner,
                    inclusive_ns: cell.inclusive,
                    exclusive_ns: cell.exclusive,
                    samples: cell.samples,
                });
            }
        }
    }
    Ok(vec![rows.finish(&freeze(strings, db)?)?])
}
