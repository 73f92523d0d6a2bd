//! CPU time by class, process and function.
//!
//! # How it is computed
//!
//! As `module_cost`, for functions. Places of a module that no symbol names are one function, `module!?`.
//!
//! # What fools it
//!
//! Compilers merge equal functions and inline small ones; what stands here is what the symbols say. Inclusive times of
//! functions that call each other overlap.

use super::{Fold, Group, Seen, Sums, freeze, id, text};
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, define_table};

define_table! {
    /// CPU time by class, process and function, from samples.
    pub table FUNCTION_COST: FunctionCostRow = "function_cost" {
        version: 1,
        /// thread, dpc or isr.
        class: Sym [None, Kind],
        /// Process that was running; for DPCs and ISRs the one that they interrupted.
        upid: Option<i32> [None, Process],
        /// File name of the module; null for samples without any place.
        module: Option<Sym> [None, Name],
        /// `module!function`, or `module!?` for all places of the module without a name.
        function: Option<Sym> [None, Name],
        /// Time with it on the stack, counted once per sample.
        inclusive_ns: i64 [Ns, Weight],
        /// Time in itself.
        exclusive_ns: i64 [Ns, Weight],
        /// Samples with it on the stack.
        samples: i64 [Count, Count],
    }
}

/// Sums on the way to the table.
pub(crate) struct FunctionCosts {
    rows: TableBuilder<FunctionCostRow>,
    strings: Strings,
    sums: Sums,
    /// Number that stands for samples without any place.
    nowhere: u32,
}

impl FunctionCosts {
    /// Nothing yet.
    pub fn new(fold: &Fold, memory: &Memory) -> FunctionCosts {
        let count = fold.facts.functions.len();
        FunctionCosts {
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
            let number = fold.facts.function_of(frame);
            // Neighbours are often the same.
            if number != last {
                self.sums.on_stack(number, samples, weight);
                last = number;
            }
        }
        let leaf = seen.part.leaf().map_or(self.nowhere, |frame| fold.facts.function_of(frame));
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
            let (function, module) = fold.facts.functions.get(number as usize).cloned().unwrap_or_default();
            let module = match function.is_empty() {
                true => None,
                false => fold.facts.module(module),
            };
            self.rows.push(FunctionCostRow {
                class: self.strings.intern(group.class.name()),
                upid: id(group.upid),
                module: module.and_then(|m| text(&mut self.strings, &m.name)),
                function: text(&mut self.strings, &function),
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
