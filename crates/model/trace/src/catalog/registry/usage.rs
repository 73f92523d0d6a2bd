//! Registry operations by key and process, with repeated reads of the same value.

use super::{Operation, QUERY_VALUE};
use crate::analysis::{Filled, Finish};
use crate::owner::Owner;
use etwhy_decode::kernel::events::Registry;
use etwhy_table::{Memory, Sym, TableBuilder, define_table};
use foldhash::HashMap;
use std::collections::BTreeMap;

define_table! {
    /// Registry operations by process, key and operation, the most frequent first.
    ///
    /// Sums of `registry`. Names of keys and values are compared without regard to case. A value that one process reads
    /// again and again is often the same answer computed for every message, row or window.
    pub table REGISTRY_USAGE: RegistryUsageRow = "registry_usage" {
        version: 1,
        /// Key; none if nothing of it is known.
        key: Option<Sym> [None, Path],
        /// Process.
        upid: Option<i32> [None, Process],
        /// Operation, as in `registry`.
        op: Sym [None, Kind],
        /// Operations.
        count: i64 [Count, Count],
        /// Operations that ended with an error.
        failed: i64 [Count, Count],
        /// Time of all with a known duration.
        total_ns: i64 [Ns, Duration],
        /// Longest.
        max_ns: Option<i64> [Ns, Duration],
        /// Distinct values that were read; none unless the operation is QueryValue.
        values: Option<i64> [Count, Count],
        /// Reads of a value beyond the process's first of that value; none unless the operation is QueryValue.
        repeats: Option<i64> [Count, Count],
        /// The value that was read most often.
        top_value: Option<Sym> [None, Name],
        /// How often.
        top_value_reads: Option<i64> [Count, Count],
        /// End of the first operation: with `last_ns` the time in which they were made.
        first_ns: Option<i64> [Ns, Time],
        /// End of the last operation.
        last_ns: Option<i64> [Ns, Time],
    }
}

#[derive(Default)]
struct Sums {
    count: i64,
    failed: i64,
    total_ns: i64,
    max_ns: Option<i64>,
    first_ns: Option<i64>,
    last_ns: Option<i64>,
}

impl Sums {
    fn merge(&mut self, other: &Sums) {
        self.count += other.count;
        self.failed += other.failed;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.first_ns = self.first_ns.into_iter().chain(other.first_ns).min();
        self.last_ns = self.last_ns.max(other.last_ns);
    }
}

/// Sums so far.
pub(super) struct Usage {
    sums: HashMap<(Owner, u32, u8), Sums>,
    /// Reads of values.
    reads: HashMap<(Owner, u32, Sym), i64>,
    rows: TableBuilder<RegistryUsageRow>,
}

/// Values by name in lower case: reads, and the spelling that was seen first.
type Values = BTreeMap<String, (i64, Sym)>;

/// Process, key in lower case and operation.
type By<'k> = (Option<u32>, &'k str, u8);

impl Usage {
    pub(super) fn new(memory: &Memory) -> Usage {
        Usage { sums: HashMap::default(), reads: HashMap::default(), rows: TableBuilder::new(memory) }
    }

    /// Counts an operation.
    pub(super) fn add(&mut self, operation: &Operation) {
        let Operation { op, ns, owner, key, value, failed, dur_ns } = *operation;
        let one = Sums {
            count: 1,
            failed: i64::from(failed),
            total_ns: dur_ns.unwrap_or(0),
            max_ns: dur_ns,
            first_ns: Some(ns),
            last_ns: Some(ns),
        };
        self.sums.entry((owner, key, op)).or_default().merge(&one);
        if let (QUERY_VALUE, Some(value)) = (op, value) {
            *self.reads.entry((owner, key, value)).or_default() += 1;
        }
    }

    /// The table.
    pub(super) fn finish(mut self, end: &mut Finish<'_>) -> Filled {
        let mut keys: Vec<u32> = self.sums.keys().map(|(_, key, _)| *key).collect();
        keys.sort_unstable();
        keys.dedup();
        let texts: HashMap<u32, (String, String)> = keys
            .into_iter()
            .map(|key| {
                let text = end.model.keys.text(key, end.strings).unwrap_or_default();
                (key, (text.to_lowercase(), text))
            })
            .collect();
        let empty = (String::new(), String::new());
        let folded = |key: &u32| texts.get(key).map_or("", |(folded, _)| folded.as_str());
        let mut sums: BTreeMap<By<'_>, (Sums, u32)> = BTreeMap::new();
        for ((owner, key, op), more) in &self.sums {
            let by = (owner.upid(end.model), folded(key), *op);
            let (sum, shown) = sums.entry(by).or_insert_with(|| (Sums::default(), *key));
            sum.merge(more);
            // The spelling that was seen first.
            *shown = (*shown).min(*key);
        }
        // Distinct values with their reads, by process and key.
        let mut reads: BTreeMap<(Option<u32>, &str), Values> = BTreeMap::new();
        for ((owner, key, value), count) in &self.reads {
            let values = reads.entry((owner.upid(end.model), folded(key))).or_default();
            let name = end.strings.get(*value).to_lowercase();
            let (sum, shown) = values.entry(name).or_insert((0, *value));
            *sum += count;
            *shown = (*shown).min(*value);
        }
        let mut rows: Vec<_> = sums.iter().collect();
        rows.sort_by_key(|(_, (sums, _))| std::cmp::Reverse(sums.count));
        for ((upid, folded, op), (sums, key)) in rows {
            let values = reads.get(&(*upid, *folded)).filter(|_| *op == QUERY_VALUE);
            let total = values.map(|values| values.values().map(|(reads, _)| reads).sum::<i64>());
            let distinct = values.map(|values| values.len() as i64);
            // Of equals the first by name.
            let top = values.and_then(|values| values.values().rev().max_by_key(|(reads, _)| *reads));
            let (_, text) = texts.get(key).unwrap_or(&empty);
            self.rows.push(RegistryUsageRow {
                key: if text.is_empty() { None } else { Some(end.strings.intern(text)) },
                upid: upid.map(|u| u as i32),
                op: end.strings.intern(Registry::name(*op)),
                count: sums.count,
                failed: sums.failed,
                total_ns: sums.total_ns,
                max_ns: sums.max_ns,
                values: distinct,
                repeats: total.zip(distinct).map(|(total, distinct)| total - distinct),
                top_value: top.map(|(_, value)| *value),
                top_value_reads: top.map(|(reads, _)| *reads),
                first_ns: sums.first_ns,
                last_ns: sums.last_ns,
            });
        }
        self.rows.into()
    }
}
