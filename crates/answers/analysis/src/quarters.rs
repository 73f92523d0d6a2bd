//! Quarters of the time in which something could be seen to happen: of the trace, or of a life in it.
//!
//! A leak goes on in each of them. Time in which no processor was observed, or in which the whole machine stood still, is in none: a pause of
//! a virtual machine for a third of the trace had left a quarter empty, and the leak was called none.

use crate::derived::machine::{StandstillRows, silent_ns, standstill};
use crate::operators::span;
use etwhy_table::Database;
use etwhy_trace::catalog::{trace::TraceRow, unobserved::UnobservedRow};
use std::collections::BTreeMap;

/// Tables that [`Dark::read`] and [`Quarters::of_trace`] read.
pub(crate) type QuarterRows = StandstillRows;

/// Time ranges in which nothing can have been seen: start, end, and how much lies in those before. In order and apart from each other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dark(Vec<(i64, i64, i64)>);

impl Dark {
    /// Where the machine stood still, and what is missing of all its processors at once.
    pub(crate) fn read(db: &Database) -> Dark {
        let cpus = db.read_or_empty::<TraceRow>().iter().map(|row| row.cpus()).max().unwrap_or(0);
        let gaps = db.read_or_empty::<UnobservedRow>();
        let ranges = gaps.iter().map(|row| (row.cpu(), row.start_ns(), row.dur_ns()));
        Dark::new(standstill(db), cpus, ranges)
    }

    /// Where the machine stood still: what ran on through that took so much less.
    pub(crate) fn standstill(db: &Database) -> Dark {
        Dark::new(standstill(db), 1, std::iter::empty())
    }

    /// From the time in which the machine stood still, and ranges of single processors: processor, start and length.
    fn new(still: Option<(i64, i64)>, cpus: i64, ranges: impl Iterator<Item = (i64, i64, i64)>) -> Dark {
        // At each time, by how many processors fewer are observed from then on. Ranges of one processor may touch, but not overlap.
        let mut change: BTreeMap<i64, i64> = BTreeMap::new();
        let mut add = |start: i64, end: i64, by: i64| {
            if start < end {
                *change.entry(start).or_default() += by;
                *change.entry(end).or_default() -= by;
            }
        };
        ranges.for_each(|(_, start, ns)| add(start, start.saturating_add(ns), 1));
        if let Some((start, end)) = still {
            add(start, end, cpus);
        }
        let (mut out, mut before, mut missing, mut since) = (Vec::new(), 0i64, 0i64, None);
        for (at, by) in change {
            missing = missing.saturating_add(by);
            match since {
                None if cpus > 0 && missing >= cpus => since = Some(at),
                Some(start) if missing < cpus => {
                    out.push((start, at, before));
                    before = before.saturating_add(at.saturating_sub(start));
                    since = None;
                }
                _ => {}
            }
        }
        Dark(out)
    }

    /// A time as it were if the dark ranges had not been.
    pub(crate) fn without(&self, ts_ns: i64) -> i64 {
        ts_ns.saturating_sub(self.until(ts_ns))
    }

    /// How much of the time until then is dark.
    fn until(&self, ts_ns: i64) -> i64 {
        let last = self.0.partition_point(|&(start, ..)| start < ts_ns).checked_sub(1);
        let last = last.and_then(|last| self.0.get(last));
        last.map_or(0, |&(start, end, before)| before.saturating_add(ts_ns.min(end).saturating_sub(start)))
    }

    /// How much of the time between the two is not dark.
    fn between(&self, from: i64, to: i64) -> i64 {
        let dark = self.until(to).saturating_sub(self.until(from));
        to.saturating_sub(from).saturating_sub(dark).max(0)
    }
}

/// Which quarter of the trace, or of a life, a time is in.
pub(crate) struct Quarters {
    first_ns: i64,
    quarter_ns: i64,
}

impl Quarters {
    /// Of the time in which kernel events were recorded.
    pub(crate) fn of_trace(db: &Database, dark: &Dark) -> Quarters {
        let (first_ns, last_ns) = span(db).unwrap_or((0, 0));
        // Where no kernel events were recorded nothing was seen to be taken.
        let (late, silent) = silent_ns(db);
        Quarters::between(first_ns.saturating_add(late), last_ns.saturating_sub(silent), dark)
    }

    pub(crate) fn between(first_ns: i64, last_ns: i64, dark: &Dark) -> Quarters {
        Quarters { first_ns, quarter_ns: (dark.between(first_ns, last_ns) / 4).max(1) }
    }

    /// 0 to 3.
    pub(crate) fn at(&self, ts_ns: i64, dark: &Dark) -> usize {
        (dark.between(self.first_ns, ts_ns) / self.quarter_ns).clamp(0, 3) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_saw_is_in_no_quarter() {
        // Two processors; the machine stood still from 100 to 200, and both are missing from 250 to 270.
        let gaps = [(0, 240, 30), (1, 250, 40), (0, 300, 10), (1, 310, 10)];
        let dark = Dark::new(Some((100, 200)), 2, gaps.into_iter());
        assert_eq!(dark.0, [(100, 200, 0), (250, 270, 100)]);
        assert_eq!(Dark::new(None, 0, gaps.into_iter()).0, []);
        assert_eq!([50, 150, 300].map(|ts| dark.without(ts)), [50, 100, 180]);
        let whole = Quarters::between(0, 520, &dark);
        let at = |times: &[i64]| times.iter().map(|&ts| whole.at(ts, &dark)).collect::<Vec<_>>();
        assert_eq!(at(&[0, 99, 150, 201, 249, 260, 320, 420, 519, 900]), [0, 0, 1, 1, 1, 1, 2, 3, 3, 3]);
        assert_eq!(Quarters::between(7, 7, &dark).at(i64::MIN, &dark), 0);
        assert_eq!(Quarters::between(i64::MIN, i64::MAX, &dark).at(i64::MAX, &dark), 3);
    }
}
