//! Hard page faults by process and file.
//!
//! # How it is computed
//!
//! Rows of `hard_fault`, summed. Waits of several threads at the same time count in full.
//!
//! # What fools it
//!
//! A first start reads its program from the disk, whatever the memory. Faults on the page file tell of memory that was
//! taken away.

use crate::derive::DerivedSpec;
use crate::fold::{freeze, id, text};
use crate::operators::{ProcessRow, add};
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, define_table, reads};
use etwhy_trace::catalog::{file::FileRow, hard_fault::HardFaultRow};
use foldhash::HashMap;
use std::collections::BTreeMap;

define_table! {
    /// Hard page faults by process and file, the most expensive first.
    pub table HARD_FAULT_COST: HardFaultCostRow = "hard_fault_cost" {
        version: 1,
        /// Process whose threads waited.
        upid: Option<i32> [None, Process],
        /// File that was read; null if no name was recorded.
        path: Option<Sym> [None, Path],
        /// The file is a page file.
        page_file: bool [None, Flag],
        /// Faults.
        count: i64 [Count, Count],
        /// Bytes read.
        size_bytes: i64 [Bytes, Bytes],
        /// Time that threads waited, summed.
        total_ns: i64 [Ns, Duration],
        /// Longest wait.
        max_ns: i64 [Ns, Duration],
    }
}

/// Declaration.
pub static DERIVED: DerivedSpec = DerivedSpec {
    tables: &[&HARD_FAULT_COST],
    reads: reads::<(ProcessRow, HardFaultRow, FileRow)>,
    on_demand: false,
    make,
};

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    let mut rows = TableBuilder::<HardFaultCostRow>::new(memory);
    let mut strings = Strings::new();
    let mut sums: BTreeMap<(i64, i64), [i64; 4]> = BTreeMap::new();
    for row in &db.read_or_empty::<HardFaultRow>() {
        let key = (row.upid().unwrap_or(-1), row.file_id().unwrap_or(-1));
        let [count, bytes, total, max] = sums.entry(key).or_default();
        let dur = row.dur_ns();
        add(count, 1);
        add(bytes, row.size_bytes());
        add(total, dur);
        *max = (*max).max(dur);
    }
    let mut paths: HashMap<i64, Sym> = HashMap::default();
    if !sums.is_empty() {
        for row in &db.read_or_empty::<FileRow>() {
            if let Some(path) = row.path() {
                paths.insert(row.file_id(), strings.intern(path));
            }
        }
    }
    // A file may have had several keys.
    let mut by_path: BTreeMap<(i64, Option<Sym>), [i64; 4]> = BTreeMap::new();
    for ((upid, file), more) in sums {
        let [count, bytes, total, max] = by_path.entry((upid, paths.get(&file).copied())).or_default();
        add(count, more[0]);
        add(bytes, more[1]);
        add(total, more[2]);
        *max = (*max).max(more[3]);
    }
    let mut sums: Vec<_> = by_path.into_iter().collect();
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(sum[2]));
    for ((upid, path), [count, size_bytes, total_ns, max_ns]) in sums {
        let name = path.map(|path| strings.get(path).to_ascii_lowercase()).unwrap_or_default();
        let name = name.rsplit(['\\', '/']).next().unwrap_or("").to_owned();
        rows.push(HardFaultCostRow {
            upid: id(upid),
            path: path.and_then(|path| {
                let path = strings.get(path).to_owned();
                text(&mut strings, &path)
            }),
            page_file: matches!(name.as_str(), "pagefile.sys" | "swapfile.sys"),
            count,
            size_bytes,
            total_ns,
            max_ns,
        });
    }
    Ok(vec![rows.finish(&freeze(strings, db)?)?])
}
