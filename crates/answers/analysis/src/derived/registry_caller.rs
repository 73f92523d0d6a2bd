//! Registry operations by the code that asked for them.
//!
//! # How it is computed
//!
//! Rows of `registry_stack`. The caller is the innermost function outside of the libraries of Windows that programs
//! call, the API the outermost function of these libraries that it called; where a stack holds such libraries only,
//! there is no caller. For operations that the kernel did on its own the caller is the innermost
//! driver.
//!
//! # What fools it
//!
//! Stacks of registry events must be recorded. A program's own wrapper around the registry is the caller; who calls the
//! wrapper stands on the stack (`stack_id`, the most frequent one of the row).

use crate::derive::DerivedSpec;
use crate::fold::{Facts, FactsRows, NONE, Stacks, StacksRows, freeze, id, text};
use crate::operators::{ProcessRow, add};
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, define_table, reads};
use etwhy_trace::catalog::registry::RegistryStackRow;
use std::collections::BTreeMap;

define_table! {
    /// Registry operations by process, caller and operation, the most frequent first.
    pub table REGISTRY_CALLER: RegistryCallerRow = "registry_caller" {
        version: 1,
        /// Process.
        upid: Option<i32> [None, Process],
        /// Function that called the API, `module!function`; null if the stack does not tell.
        caller: Option<Sym> [None, Name],
        /// Function of the system's libraries that it called.
        api: Option<Sym> [None, Name],
        /// Operation, as in `registry`.
        op: Sym [None, Kind],
        /// Operations.
        count: i64 [Count, Count],
        /// Operations that ended with an error.
        failed: i64 [Count, Count],
        /// Time of all with a known duration.
        total_ns: i64 [Ns, Duration],
        /// The most frequent of their stacks (table `stack`).
        stack_id: Option<i32> [None, Stack],
    }
}

/// Declaration.
pub static DERIVED: DerivedSpec = DerivedSpec {
    tables: &[&REGISTRY_CALLER],
    reads: reads::<(ProcessRow, RegistryStackRow, FactsRows, StacksRows)>,
    on_demand: true,
    make,
};

#[derive(Default)]
struct Sum {
    count: i64,
    failed: i64,
    total: i64,
    stack: i64,
    most: i64,
}

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    let mut rows = TableBuilder::<RegistryCallerRow>::new(memory);
    let mut strings = Strings::new();
    if !db.read_or_empty::<RegistryStackRow>().is_empty() {
        let (facts, stacks) = (Facts::read(db, false), Stacks::read(db));
        let site = |stack: i64| {
            let part = stacks.get(stack);
            let number = |frame: Option<&u32>| frame.map_or(NONE, |&f| facts.function_of(f));
            if part.user.is_empty() {
                let driver = part.kernel.iter().find(|f| facts.is_driver(facts.module_of(**f)));
                return (number(driver), NONE);
            }
            let inner = part.user.iter().take_while(|f| facts.is_system_library(**f)).count();
            let api = inner.checked_sub(1).and_then(|at| part.user.get(at));
            let caller = part.user.get(inner).filter(|f| !facts.is_thread_start(**f));
            (number(caller), number(api.filter(|f| !facts.is_thread_start(**f))))
        };
        let mut sums: BTreeMap<(i64, (u32, u32), Sym), Sum> = BTreeMap::new();
        for row in &db.read_or_empty::<RegistryStackRow>() {
            let stack = row.stack_id().unwrap_or(-1);
            let op = strings.intern(row.op());
            let sum = sums.entry((row.upid().unwrap_or(-1), site(stack), op)).or_default();
            let count = row.count();
            add(&mut sum.count, count);
            add(&mut sum.failed, row.failed());
            add(&mut sum.total, row.total_ns());
            if count > sum.most {
                (sum.most, sum.stack) = (count, stack);
            }
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.count));
        for ((upid, (caller, api), op), sum) in sums {
            let label = |n: u32| facts.functions.get(n as usize).map_or("", |f| f.0.as_str());
            rows.push(RegistryCallerRow {
                upid: id(upid),
                caller: text(&mut strings, label(caller)),
                api: text(&mut strings, label(api)),
                op,
                count: sum.count,
                failed: sum.failed,
                total_ns: sum.total,
                stack_id: id(sum.stack),
            });
        }
    }
    Ok(vec![rows.finish(&freeze(strings, db)?)?])
}
