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

use super::{Fold, Group, Seen, Sums, freeze, id, text};
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

/// Sums on the way to the table.
pub(crate) struct ModuleCosts {
    rows: TableBuilder<ModuleCostRow>,
    strings: Strings,
    sums: Sums,
    /// Number that stands for samples without any place.
    nowhere: u32,
}

impl ModuleCosts {
    /// Nothing yet.
    pub fn new(fold: &Fold, memory: &Memory) -> ModuleCosts {
        let count = fold.facts.modules.len();
        ModuleCosts {
            rows: TableBuilder::new(memory),
            strings: Strings::new(),
            sums: Sums::new(count + 1),
            nowhere: count as u32,
        }
    }

    /// Adds a stack.
    pub fn stack(&mut self, fold: &Fold, seen: &Seen<'_>) {
        let (samples, weight) = (seen.row.samples, seen.row.weight);
        self.sums.next();
        let mut last = self.nowhere;
        for frame in seen.part.frames() {
            let number = fold.facts.module_of(frame);
            // Neighbours are often the same.
            if number != last {
                self.sums.on_stack(number, samples, weight);
                last = number;
            }
        }
        let leaf = seen.part.leaf().map_or(self.nowhere, |frame| fold.facts.module_of(frame));
        if leaf == self.nowhere {
            self.sums.on_stack(self.nowhere, samples, weight);
        }
        if let Some(cell) = self.sums.cell(leaf) {
            cell.exclusive = cell.exclusive.saturating_add(weight);
        }
    }

    /// Writes the rows of a group.
    pub fn flush(&mut self, fold: &Fold, group: &Group) {
        for (number, cell) in self.sums.take() {
            let module = fold.facts.module(number).cloned().unwrap_or_default();
            self.rows.push(ModuleCostRow {
                class: self.strings.intern(group.class.name()),
                upid: id(group.upid),
                module: text(&mut self.strings, &module.name),
                kind: self.strings.intern(module.kind.name()),
                os: (module.kind == super::Kind::Kernel).then_some(module.os),
                vendor: text(&mut self.strings, &module.vendor),
                product: text(&mut self.strings, &module.product),
                category: text(&mut self.strings, &module.category),
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
