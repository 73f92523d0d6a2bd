//! What most kinds of lanes share: bands with names.

use super::index::Entry;
use super::{Band, Series};
use foldhash::HashMap;

/// Bands of entries, by key.
pub fn by_key(entries: &[Entry]) -> HashMap<i32, Vec<(u32, f64)>> {
    let mut out: HashMap<i32, Vec<(u32, f64)>> = HashMap::default();
    for entry in entries.iter().filter(|entry| entry.amount != 0) {
        out.entry(entry.key).or_default().push((entry.bucket, entry.amount as f64));
    }
    out
}

/// Bands in order of their keys, named.
pub fn named(entries: &[Entry], name: impl Fn(i32) -> String) -> Vec<Series> {
    let mut keys: Vec<(i32, Vec<(u32, f64)>)> = by_key(entries).into_iter().collect();
    keys.sort_by_key(|(key, _)| *key);
    keys.into_iter().map(|(key, values)| Series::new(Band::Plain, name(key), values)).collect()
}

/// Entries of several groups as those of one.
pub fn together(lists: Vec<Vec<Entry>>) -> Vec<Entry> {
    let mut sums: HashMap<(u32, i32), i64> = HashMap::default();
    for entry in lists.into_iter().flatten() {
        let sum = sums.entry((entry.bucket, entry.key)).or_default();
        *sum = sum.saturating_add(entry.amount);
    }
    let mut out: Vec<Entry> =
        sums.into_iter().map(|((bucket, key), amount)| Entry { bucket, key, amount }).collect();
    out.sort_by_key(|entry| (entry.bucket, entry.key));
    out
}
