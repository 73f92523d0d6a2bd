//! What filters cost, by driver, operation and phase.

use super::{Facts, major_name, phase};
use crate::analysis::{Filled, Finish};
use crate::histogram::Histogram;
use crate::model::file_name::{FileNames, FileRef, SameFile};
use crate::model::place::PlaceId;
use etwhy_table::{Memory, Sym, TableBuilder, define_table};
use foldhash::{HashMap, HashSet};
use std::collections::BTreeMap;

define_table! {
    /// What file system filters cost, by driver, operation and phase, the most expensive first.
    ///
    /// Sums of `minifilter`. Percentiles are within 0.4 %; the rest is exact. Callbacks of different drivers may lie inside each other:
    /// `exclusive_ns` counts each moment of a thread once, `total_ns` and the other times count it for each callback around it.
    pub table MINIFILTER_COST: MinifilterCostRow = "minifilter_cost" {
        version: 1,
        /// Driver.
        module: Option<Sym> [None, Name],
        /// Altitudes that it is registered at.
        altitude: Option<Sym> [None, Other],
        /// Who makes it, if known.
        vendor: Option<Sym> [None, Name],
        /// What it is for, if known.
        category: Option<Sym> [None, Kind],
        /// Operation: the IRP's major function, CREATE for opens.
        major: Option<Sym> [None, Kind],
        /// pre or post.
        phase: Sym [None, Kind],
        /// Callbacks that returned or failed.
        count: i64 [Count, Count],
        /// Callbacks that failed the operation.
        failures: i64 [Count, Count],
        /// Distinct files.
        files: i64 [Count, Count],
        /// Time of all callbacks with a known duration.
        total_ns: i64 [Ns, Duration],
        /// Part of it without the callbacks that ran inside them, of whatever driver; null in extracts and stores of before it was known.
        exclusive_ns: Option<i64> [Ns, Duration],
        /// Mean.
        avg_ns: Option<i64> [Ns, Duration],
        /// Median.
        p50_ns: Option<i64> [Ns, Duration],
        /// 95 % ran no longer.
        p95_ns: Option<i64> [Ns, Duration],
        /// 99 % ran no longer.
        p99_ns: Option<i64> [Ns, Duration],
        /// Longest.
        max_ns: Option<i64> [Ns, Duration],
        /// Longest without the callbacks inside it; null as `exclusive_ns`.
        max_exclusive_ns: Option<i64> [Ns, Duration],
    }
}

#[derive(Default)]
struct Cost {
    count: i64,
    failures: i64,
    durations: Histogram,
    exclusive_ns: i64,
    max_exclusive_ns: i64,
    files: HashSet<SameFile>,
    /// Opens that the file system had not seen at the callback: their path comes shortly after.
    waiting: Vec<FileRef>,
}

/// Opens that wait for their path.
const MOST_WAITING: usize = 1024;

impl Cost {
    /// Counts the files of opens whose path has come. Of the others only the youngest go on waiting: the rest
    /// were refused, and have none.
    fn settle(&mut self, files: &FileNames) {
        let young = self.waiting.len().saturating_sub(MOST_WAITING / 4);
        let mut at = 0;
        self.waiting.retain(|file| {
            let same = files.same(*file);
            at += 1;
            let unknown = same == SameFile::Path(None);
            if !unknown {
                self.files.insert(same);
            }
            unknown && at > young
        });
    }
}

/// Sums so far.
pub(super) struct Costs {
    /// By routine, major function and phase.
    sums: HashMap<(PlaceId, u32, bool), Cost>,
    rows: TableBuilder<MinifilterCostRow>,
}

impl Costs {
    pub(super) fn new(memory: &Memory) -> Costs {
        Costs { sums: HashMap::default(), rows: TableBuilder::new(memory) }
    }

    /// Counts a callback; of its time the whole and what is left without the callbacks inside it.
    pub(super) fn add(
        &mut self,
        key: (PlaceId, u32, bool),
        times: Option<(i64, i64)>,
        failed: bool,
        file: Option<FileRef>,
        files: &FileNames,
    ) {
        let cost = self.sums.entry(key).or_default();
        cost.count += 1;
        cost.failures += i64::from(failed);
        if let Some((ns, exclusive)) = times {
            cost.durations.add(ns);
            cost.exclusive_ns = cost.exclusive_ns.saturating_add(exclusive);
            cost.max_exclusive_ns = cost.max_exclusive_ns.max(exclusive);
        }
        let Some(file) = file else { return };
        match files.same(file) {
            SameFile::Path(None) => {
                cost.waiting.push(file);
                if cost.waiting.len() >= MOST_WAITING {
                    cost.settle(files);
                }
            }
            same => {
                cost.files.insert(same);
            }
        }
    }

    /// The table.
    pub(super) fn finish(mut self, end: &mut Finish<'_>) -> Filled {
        let mut all: Vec<_> = std::mem::take(&mut self.sums).into_iter().collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        let mut sums: BTreeMap<(Option<Sym>, u32, bool), Cost> = BTreeMap::new();
        for ((place, major, post), mut cost) in all {
            cost.settle(&end.model.files);
            let module = end.resolved.frame_of_place(place).map(|(_, frame)| frame.module);
            let sum = sums.entry((module, major, post)).or_default();
            sum.count += cost.count;
            sum.failures += cost.failures;
            sum.durations.merge(&cost.durations);
            sum.exclusive_ns = sum.exclusive_ns.saturating_add(cost.exclusive_ns);
            sum.max_exclusive_ns = sum.max_exclusive_ns.max(cost.max_exclusive_ns);
            sum.files.extend(cost.files);
        }
        let mut rows: Vec<_> = sums.into_iter().collect();
        rows.sort_by_key(|(_, cost)| std::cmp::Reverse(cost.exclusive_ns));
        for ((module, major, post), cost) in rows {
            let facts = module.map_or_else(Facts::default, |module| Facts::of(module, end.strings));
            let durations = &cost.durations;
            // The same file may have been met by path first and by key later.
            let files: HashSet<Option<Sym>> = cost
                .files
                .iter()
                .filter(|file| end.model.files.path_of_same(**file).is_some())
                .map(|file| end.model.files.path_of_same(*file))
                .collect();
            let nameless = cost.files.iter().filter(|f| end.model.files.path_of_same(**f).is_none()).count();
            self.rows.push(MinifilterCostRow {
                module,
                altitude: facts.altitude,
                vendor: facts.vendor,
                category: facts.category,
                major: major_name(major, end.strings),
                phase: end.strings.intern(phase(post)),
                count: cost.count,
                failures: cost.failures,
                files: (files.len() + nameless) as i64,
                total_ns: durations.total_ns,
                exclusive_ns: Some(cost.exclusive_ns),
                avg_ns: durations.mean(),
                p50_ns: durations.percentile(50),
                p95_ns: durations.percentile(95),
                p99_ns: durations.percentile(99),
                max_ns: durations.percentile(100).map(|_| durations.max_ns),
                max_exclusive_ns: durations.percentile(100).map(|_| cost.max_exclusive_ns),
            });
        }
        self.rows.into()
    }
}
