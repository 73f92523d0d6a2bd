//! CPU time by class, process and module.
//!
//! # How it is computed
//!
//! Rows of `stack_cost` folded along their stacks. Exclusive time is that of the innermost frame, inclusive time counts
//! a module once per sample however often it stands on the stack. The sum of `exclusive_ns` over all rows is the
//! sampled time that was not idle; samples without any place are the rows without a module.
//!
//! # What fools it
//!
//! Inclusive times of different modules overlap: do not add them up. Of a DPC or ISR only the part inside of the
//! kernel's dispatcher counts, since the rest of its stack is a thread that it interrupted by chance; without
//! symbols of the kernel that place cannot be seen, and the whole kernel part counts.

use crate::derive::DerivedSpec;
use crate::fold::{Fold, Sums, freeze, id, text};
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, define_table};

define_table! {
    /// CPU time by class, process and module, from samples.
    pub table MODULE_COST: ModuleCostRow = "module_cost" {
        version: 1,
        /// thread, dpc or isr.
        class: Sym [None, Kind],
        /// Process that was running; for DPCs and ISRs the one that they interrupted.
        upid: Option<i32> [None, Process],
        /// File name of the module; null for samples without any place.
        module: Option<Sym> [None, Name],
        /// kernel, user, managed or unknown.
        kind: Sym [None, Kind],
        /// Windows itself, or a framework that hosts other drivers; null outside of the kernel.
        os: Option<bool> [None, Flag],
        /// Who makes it, from the knowledge base or the version resource.
        vendor: Option<Sym> [None, Name],
        /// What it belongs to, from the version resource or the knowledge base.
        product: Option<Sym> [None, Name],
        /// What it is for, from the knowledge base.
        category: Option<Sym> [None, Kind],
        /// Time with it on the stack.
        inclusive_ns: i64 [Ns, Weight],
        /// Time in itself.
        exclusive_ns: i64 [Ns, Weight],
        /// Samples with it on the stack.
        samples: i64 [Count, Count],
    }
}

/// Declaration.
pub static DERIVED: DerivedSpec = DerivedSpec {
    tables: &[&MODULE_COST],
    reads: &["process", "stack_cost", "stack", "stack_frame", "frame", "image"],
    on_demand: false,
    make,
};

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    let fold = Fold::read(db, false);
    let mut rows = TableBuilder::<ModuleCostRow>::new(memory);
    let mut strings = Strings::new();
    let nowhere = fold.facts.modules.len() as u32;
    let mut sums = Sums::new(fold.facts.modules.len() + 1);
    for group in &fold.groups {
        for row in &group.rows {
            let part = fold.part(group.class, row.stack);
            sums.next();
            for frame in part.frames() {
                sums.on_stack(fold.facts.module_of(frame), row.samples, row.weight);
            }
            let leaf = part.leaf().map_or(nowhere, |frame| fold.facts.module_of(frame));
            if leaf == nowhere {
                sums.on_stack(nowhere, row.samples, row.weight);
            }
            if let Some(cell) = sums.cell(leaf) {
                cell.exclusive = cell.exclusive.saturating_add(row.weight);
            }
        }
        for (number, cell) in sums.take() {
            let module = fold.facts.module(number).cloned().unwrap_or_default();
            rows.push(ModuleCostRow {
                class: strings.intern(group.class.name()),
                upid: id(group.upid),
                module: text(&mut strings, &module.name),
                kind: strings.intern(module.kind.name()),
                os: (module.kind == crate::fold::Kind::Kernel).then_some(module.os),
                vendor: text(&mut strings, &module.vendor),
                product: text(&mut strings, &module.product),
                category: text(&mut strings, &module.category),
                inclusive_ns: cell.inclusive,
                exclusive_ns: cell.exclusive,
                samples: cell.samples,
            });
        }
    }
    Ok(vec![rows.finish(&freeze(strings, db)?)?])
}
