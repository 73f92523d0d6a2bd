//! The weights of a metric, kept in the order of time, so that any range of it is a search and a loop.
//!
//! # How it is computed
//!
//! Rows differ in time and weight; what is charged (class, process, thread, processor, stack) is the same for many and is kept once.

use super::{Class, Metric, TracePart, WeightedStack};
use etwhy_table::Database;
use foldhash::HashMap;

/// Weights in the order of time.
pub struct Weighed {
    keys: Vec<WeightedStack>,
    /// Time; those without one stand first.
    ts: Vec<Option<i64>>,
    key: Vec<u32>,
    weight: Vec<i64>,
    /// Empty if all are 1.
    count: Vec<i64>,
}

type Key = (Class, Option<i64>, Option<i64>, Option<i64>, Option<i64>, Option<i64>);

impl Weighed {
    /// Reads a metric. `go_on` is asked now and then; `None` if it says no, or if there are more than `most` rows.
    pub fn read(db: &Database, metric: &Metric, most: usize, go_on: &dyn Fn() -> bool) -> Option<Weighed> {
        let mut out = Weighed {
            keys: Vec::new(),
            ts: Vec::new(),
            key: Vec::new(),
            weight: Vec::new(),
            count: Vec::new(),
        };
        let mut numbers: HashMap<Key, u32> = HashMap::default();
        let (mut stopped, mut sorted, mut last) = (false, true, None);
        metric.each(db, &mut |w| {
            let rows = out.ts.len();
            stopped |= rows >= most || rows.is_multiple_of(65_536) && !go_on();
            if stopped || w.weight < 0 {
                return;
            }
            let number =
                *numbers.entry((w.class, w.upid, w.utid, w.cpu, w.stack, w.frame)).or_insert_with(|| {
                    out.keys.push(WeightedStack { ts_ns: None, weight: 0, count: 0, ..w });
                    (out.keys.len() - 1) as u32
                });
            sorted &= last <= w.ts_ns;
            last = w.ts_ns;
            out.ts.push(w.ts_ns);
            out.key.push(number);
            out.weight.push(w.weight);
            if w.count != 1 || !out.count.is_empty() {
                out.count.resize(rows, 1);
                out.count.push(w.count);
            }
        });
        if stopped {
            return None;
        }
        if !sorted {
            out.sort();
        }
        Some(out)
    }

    fn sort(&mut self) {
        let mut order: Vec<u32> = (0..self.ts.len() as u32).collect();
        order.sort_by_key(|&row| self.ts.get(row as usize).copied().flatten());
        fn by<T: Copy>(order: &[u32], list: &[T]) -> Vec<T> {
            order.iter().filter_map(|&row| list.get(row as usize).copied()).collect()
        }
        self.ts = by(&order, &self.ts);
        self.key = by(&order, &self.key);
        self.weight = by(&order, &self.weight);
        self.count = by(&order, &self.count);
    }

    /// Bytes that it takes, about.
    pub fn bytes(&self) -> usize {
        self.ts.len() * (16 + 4 + 8) + self.count.len() * 8 + self.keys.len() * size_of::<WeightedStack>()
    }

    /// Hands over the rows of a stretch of time whose key is wanted, in the order of time.
    pub fn rows_of(
        &self,
        from: i64,
        to: i64,
        wanted: &dyn Fn(&WeightedStack) -> bool,
        give: &mut dyn FnMut(WeightedStack),
    ) {
        let place = |bound: i64| self.ts.partition_point(|ts| ts.is_none_or(|ts| ts < bound));
        let wanted: Vec<bool> = self.keys.iter().map(wanted).collect();
        for row in place(from)..place(to) {
            let (Some(&key), Some(&weight)) = (self.key.get(row), self.weight.get(row)) else { break };
            if wanted.get(key as usize) == Some(&true)
                && let Some(known) = self.keys.get(key as usize)
            {
                let count = self.count.get(row).copied().unwrap_or(1);
                give(WeightedStack { ts_ns: self.ts.get(row).copied().flatten(), weight, count, ..*known });
            }
        }
    }

    /// Hands over the sums of a part: of each distinct key one weight, with the time of the first row.
    pub fn each_of(&self, part: &TracePart, give: &mut dyn FnMut(WeightedStack)) {
        let place = |bound: Option<i64>, default: usize| match bound {
            Some(bound) => self.ts.partition_point(|ts| ts.is_none_or(|ts| ts < bound)),
            None => default,
        };
        let timed = self.ts.partition_point(Option::is_none);
        let bounded = part.from_ns.is_some() || part.to_ns.is_some();
        let from = place(part.from_ns, 0).max(if bounded { timed } else { 0 });
        let to = place(part.to_ns, self.ts.len()).max(from);
        let whole = TracePart { from_ns: None, to_ns: None, ..part.clone() };
        // Zero: not in the part, or not seen yet; else one more than its place in `sums`.
        let mut places = vec![0u32; self.keys.len()];
        let mut sums: Vec<WeightedStack> = Vec::new();
        let wanted: Vec<bool> = self.keys.iter().map(|key| whole.has(key)).collect();
        for row in from..to {
            let (Some(&key), Some(&weight)) = (self.key.get(row), self.weight.get(row)) else { break };
            if wanted.get(key as usize) != Some(&true) {
                continue;
            }
            let count = self.count.get(row).copied().unwrap_or(1);
            let Some(slot) = places.get_mut(key as usize) else { continue };
            if *slot == 0 {
                let Some(first) = self.keys.get(key as usize) else { continue };
                sums.push(WeightedStack {
                    ts_ns: self.ts.get(row).copied().flatten(),
                    weight,
                    count,
                    ..*first
                });
                *slot = sums.len() as u32;
            } else if let Some(sum) = sums.get_mut(*slot as usize - 1) {
                sum.weight = sum.weight.saturating_add(weight);
                sum.count = sum.count.saturating_add(count);
            }
        }
        sums.into_iter().for_each(give);
    }
}
