//! Kernel pool from the process that allocates it to the process that frees it.
//!
//! # How it is computed
//!
//! Rows of `pool` by tag, allocating function and process, and the process whose thread freed the memory. The function is
//! the innermost of the kernel on the stack that is no function of the pool itself.
//!
//! # What fools it
//!
//! Memory that one process allocates and another frees is handed from one to the other: a notification, a message, a
//! finished request. Worker threads of the System process free for everybody. Processes are those of the threads,
//! not those that the memory belongs to.

use crate::derive::DerivedSpec;
use crate::fold::{Facts, FactsRows, NONE, Stacks, StacksRows, freeze, id, text};
use crate::operators::{ProcessRow, add};
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, define_table, reads};
use etwhy_trace::catalog::pool::PoolRow;
use std::collections::BTreeMap;

define_table! {
    /// Kernel pool by tag, allocating function and process, and freeing process.
    pub table POOL_FLOW: PoolFlowRow = "pool_flow" {
        version: 1,
        /// Four characters that the allocator chose.
        tag: Sym [None, Name],
        /// paged or nonpaged.
        pool: Sym [None, Kind],
        /// Function of the kernel that allocated it, `module!function`; null without stacks.
        function: Option<Sym> [None, Name],
        /// Process that allocated it.
        upid: Option<i32> [None, Process],
        /// Process that freed it; null while it is there, and where the free was not seen.
        freed_by_upid: Option<i32> [None, Other],
        /// How it ended: free, unseen, doubtful; null if it is there at the end of the trace.
        freed_by: Option<Sym> [None, Kind],
        /// Allocations.
        count: i64 [Count, Count],
        /// Bytes of all.
        size_bytes: i64 [Bytes, Bytes],
        /// The largest.
        max_bytes: i64 [Bytes, Bytes],
        /// Time that they lived, summed, of those that were freed.
        alive_ns: i64 [Ns, Duration],
    }
}

/// Declaration.
pub static DERIVED: DerivedSpec = DerivedSpec {
    tables: &[&POOL_FLOW],
    reads: reads::<(ProcessRow, PoolRow, FactsRows, StacksRows)>,
    on_demand: false,
    make,
};

#[derive(Default)]
struct Sum {
    count: i64,
    bytes: i64,
    max: i64,
    alive: i64,
}

/// A function that does the pool's work or fills memory for whoever called it.
pub(crate) fn is_memory_helper(label: &str) -> bool {
    let function = label.split_once('!').map_or(label, |(_, function)| function);
    let prefixes = ["Mi", "Mm", "Ki", "Kx", "Rtlp", "RtlpHp", "mem", "?"];
    let middle = ["Pool", "ZeroMemory", "CopyMemory", "MoveMemory", "FillMemory"];
    prefixes.iter().any(|p| function.starts_with(p)) || middle.iter().any(|m| function.contains(m))
}

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    let mut rows = TableBuilder::<PoolFlowRow>::new(memory);
    let mut strings = Strings::new();
    if !db.read_or_empty::<PoolRow>().is_empty() {
        let (facts, stacks) = (Facts::read(db, false), Stacks::read(db));
        let helpers: Vec<bool> = facts.functions.iter().map(|(label, _)| is_memory_helper(label)).collect();
        let site = |stack: Option<i64>| {
            let part = stacks.get(stack);
            let numbers = part.kernel.iter().map(|&frame| facts.function_of(frame));
            let helps = |n: &u32| helpers.get(*n as usize).copied().unwrap_or(true);
            numbers.into_iter().find(|n| !helps(n)).unwrap_or(NONE)
        };
        // By tag, pool, function, process, process that freed it, and how.
        type Key = (Sym, Sym, u32, i64, i64, Option<Sym>);
        let mut sums: BTreeMap<Key, Sum> = BTreeMap::new();
        for row in &db.read_or_empty::<PoolRow>() {
            let key = (
                strings.intern(row.tag()),
                strings.intern(row.pool()),
                site(row.stack_id()),
                row.upid().unwrap_or(-1),
                row.freed_by_upid().unwrap_or(-1),
                row.freed_by().map(|text| strings.intern(text)),
            );
            let size = row.size_bytes();
            let sum = sums.entry(key).or_default();
            sum.count += 1;
            add(&mut sum.bytes, size);
            sum.max = sum.max.max(size);
            add(&mut sum.alive, row.dur_ns().unwrap_or(0));
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.bytes));
        for ((tag, pool, function, upid, freer, freed_by), sum) in sums {
            let label = facts.functions.get(function as usize).map_or("", |f| f.0.as_str());
            rows.push(PoolFlowRow {
                tag,
                pool,
                function: text(&mut strings, label),
                upid: id(upid),
                freed_by_upid: id(freer),
                freed_by,
                count: sum.count,
                size_bytes: sum.bytes,
                max_bytes: sum.max,
                alive_ns: sum.alive,
            });
        }
    }
    Ok(vec![rows.finish(&freeze(strings, db)?)?])
}

#[cfg(test)]
mod tests {
    use super::is_memory_helper;

    #[test]
    fn helpers_of_memory_are_not_who_allocates() {
        for helper in
            ["ntoskrnl.exe!ExAllocatePoolWithTag", "ntoskrnl.exe!memset", "ntoskrnl.exe!MmAccessFault"]
        {
            assert!(is_memory_helper(helper), "{helper}");
        }
        assert!(!is_memory_helper("ntoskrnl.exe!FsRtlNotifyFilterReportChangeLiteEx"));
        assert!(!is_memory_helper("a.sys!Read"));
    }
}
