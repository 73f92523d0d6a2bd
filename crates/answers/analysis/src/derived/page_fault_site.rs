//! Page faults by the function that touched the memory.
//!
//! # How it is computed
//!
//! Rows of `page_fault_cost`, with the innermost function of each stack that does not only handle the fault, clear
//! or copy memory.
//!
//! # What fools it
//!
//! Where functions have no names, the module stands for them. The function that touches memory first pays for it;
//! another one may have asked for it.

use super::pool_flow::is_memory_helper;
use crate::derive::DerivedSpec;
use crate::fold::{Facts, FactsRows, NONE, Stacks, StacksRows, freeze, id, text};
use crate::operators::{ProcessRow, add};
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, define_table, reads};
use etwhy_trace::catalog::page_fault_cost::PageFaultCostRow;
use std::collections::BTreeMap;

define_table! {
    /// Page faults by process, kind and the function that touched the memory.
    pub table PAGE_FAULT_SITE: PageFaultSiteRow = "page_fault_site" {
        version: 1,
        /// Process whose thread faulted.
        upid: Option<i32> [None, Process],
        /// TransitionFault, DemandZeroFault, CopyOnWrite, GuardPageFault, HardPageFault, AccessViolation.
        kind: Sym [None, Kind],
        /// Function that touched the memory, `module!function`; null without stacks.
        function: Option<Sym> [None, Name],
        /// It is a function of the kernel or a driver.
        in_kernel: bool [None, Flag],
        /// Faults.
        count: i64 [Count, Count],
        /// Bytes that they brought.
        size_bytes: i64 [Bytes, Bytes],
    }
}

/// Declaration.
pub static DERIVED: DerivedSpec = DerivedSpec {
    tables: &[&PAGE_FAULT_SITE],
    reads: reads::<(ProcessRow, PageFaultCostRow, FactsRows, StacksRows)>,
    on_demand: false,
    make,
};

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    let mut rows = TableBuilder::<PageFaultSiteRow>::new(memory);
    let mut strings = Strings::new();
    if !db.read_or_empty::<PageFaultCostRow>().is_empty() {
        let (facts, stacks) = (Facts::read(db, false), Stacks::read(db));
        let helpers: Vec<bool> = facts.functions.iter().map(|(label, _)| is_memory_helper(label)).collect();
        let site = |stack: i64| {
            let part = stacks.get(stack);
            let find = |frames: &[u32]| {
                let numbers = frames.iter().map(|&frame| facts.function_of(frame));
                numbers.into_iter().find(|n| !helpers.get(*n as usize).copied().unwrap_or(true))
            };
            // The outermost frame of the kernel is the system call; without a better one the program did it.
            find(part.kernel).map(|n| (n, true)).or_else(|| find(part.user).map(|n| (n, false)))
        };
        // By process, kind, and function with whether it was charged: faults and bytes.
        type Key = (i64, Sym, (u32, bool));
        let mut sums: BTreeMap<Key, (i64, i64)> = BTreeMap::new();
        for row in &db.read_or_empty::<PageFaultCostRow>() {
            let site = row.stack_id().and_then(site).unwrap_or((NONE, false));
            let key = (row.upid().unwrap_or(-1), strings.intern(row.kind()), site);
            let sum = sums.entry(key).or_default();
            add(&mut sum.0, row.count());
            add(&mut sum.1, row.size_bytes());
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        for ((upid, kind, (function, in_kernel)), (count, size_bytes)) in sums {
            let label = facts.functions.get(function as usize).map_or("", |f| f.0.as_str());
            let function = text(&mut strings, label);
            rows.push(PageFaultSiteRow { upid: id(upid), kind, function, in_kernel, count, size_bytes });
        }
    }
    Ok(vec![rows.finish(&freeze(strings, db)?)?])
}
