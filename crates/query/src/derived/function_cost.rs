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

use crate::derive::DerivedSpec;
use crate::fold::{Fold, Sums, freeze, id, text};
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

/// Declaration.
pub static DERIVED: DerivedSpec = DerivedSpec {
    tables: &[&FUNCTION_COST],
    reads: &["process", "stack_cost", "stack", "stack_frame", "frame", "image"],
    on_demand: false,
    make,
};

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    let fold = Fold::read(db, false);
    let mut rows = TableBuilder::<FunctionCostRow>::new(memory);
    let mut strings = Strings::new();
    let nowhere = fold.facts.functions.len() as u32;
    let mut sums = Sums::new(fold.facts.functions.len() + 1);
    for group in &fold.groups {
        for row in &group.rows {
            let part = fold.part(group.class, row.stack);
            sums.next();
            for frame in part.frames() {
                sums.on_stack(fold.facts.function_of(frame), row.samples, row.weight);
            }
            let leaf = part.leaf().map_or(nowhere, |frame| fold.facts.function_of(frame));
            if leaf == nowhere {
                sums.on_stack(nowhere, row.samples, row.weight);
            }
            if let Some(cell) = sums.cell(leaf) {
                cell.exclusive = cell.exclusive.saturating_add(row.weight);
            }
        }
        for (number, cell) in sums.take() {
            let (function, module) = fold.facts.functions.get(number as usize).cloned().unwrap_or_default();
            let module = match function.is_empty() {
                true => None,
                false => fold.facts.module(module),
            };
            rows.push(FunctionCostRow {
                class: strings.intern(group.class.name()),
                upid: id(group.upid),
                module: module.and_then(|m| text(&mut strings, &m.name)),
                function: text(&mut strings, &function),
                inclusive_ns: cell.inclusive,
                exclusive_ns: cell.exclusive,
                samples: cell.samples,
            });
        }
    }
    Ok(vec![rows.finish(&freeze(strings, db)?)?])
}
