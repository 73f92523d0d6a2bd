//! What samples, stacks, file operations and disk transfers say of a thread's time.

use crate::fold::{Facts, Stack, Stacks, Whose, whose_work};
use crate::operators::add;
use etwhy_table::Database;
use etwhy_trace::catalog::{
    disk_io::DiskIoRow, file::FileRow, file_io::SlowFileIoRow, hard_fault::HardFaultRow, sample::SampleRow,
};
use foldhash::HashMap;
use std::collections::BTreeMap;

/// What [`Evidence::look`] reads.
pub(super) type EvidenceRows = (SampleRow, SlowFileIoRow, HardFaultRow, DiskIoRow, FileRow);

/// What was seen of a thread's time.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Function of its own code.
    pub function: Option<String>,
    /// Function that this one had called.
    pub callee: Option<String>,
    /// File that it waited for.
    pub path: Option<String>,
    /// Whose work it was, if it was done in the System process.
    pub whose: Option<Whose>,
    /// Driver that Windows asked about a call of the program, a filter or hook, in which most of it went, and its part, 0 to 1.
    pub asked: Option<(u32, f64)>,
}

/// Samples that tell in which driver a thread ran.
const LEAST_SAMPLES: i64 = 10;

/// A function of the program's own, and what it had called.
type OwnAndCallee = (Option<String>, Option<String>);

/// Time ranges of threads, each with the number of the request that asks for it.
#[derive(Default)]
struct Ranges {
    by_thread: HashMap<i64, Vec<(i64, i64, usize)>>,
    /// Latest end of the ranges up to each.
    reach: HashMap<i64, Vec<i64>>,
}

impl Ranges {
    fn add(&mut self, utid: i64, times: Vec<(i64, i64)>, request: usize) {
        let ranges = self.by_thread.entry(utid).or_default();
        ranges.extend(times.into_iter().map(|(from, to)| (from, to, request)));
    }

    fn sort(&mut self) {
        for (utid, ranges) in &mut self.by_thread {
            ranges.sort_unstable();
            let mut latest = i64::MIN;
            let ends = ranges.iter().map(|(_, to, _)| {
                latest = latest.max(*to);
                latest
            });
            self.reach.insert(*utid, ends.collect());
        }
    }

    /// Calls back with each request that has time in `[from, to)`, and how much.
    fn overlaps(&self, utid: i64, from: i64, to: i64, mut found: impl FnMut(usize, i64)) {
        let (Some(ranges), Some(reach)) = (self.by_thread.get(&utid), self.reach.get(&utid)) else { return };
        let end = ranges.partition_point(|(start, _, _)| *start < to);
        for (range, reach) in ranges.iter().zip(reach).take(end).rev() {
            if *reach <= from {
                break;
            }
            let shared = range.1.min(to).saturating_sub(range.0.max(from));
            if shared > 0 {
                found(range.2, shared);
            }
        }
    }
}

/// The driver with most time of those that were asked, and its part of all time.
fn most_asked(sums: &BTreeMap<Option<u32>, (i64, i64)>) -> Option<(u32, f64)> {
    let all = sums.values().fold(0i64, |all, (ns, _)| all.saturating_add(*ns));
    let asked = sums.iter().filter_map(|(module, sums)| module.map(|module| (module, *sums)));
    let (module, (ns, samples)) = asked.max_by_key(|(module, (ns, _))| (*ns, std::cmp::Reverse(*module)))?;
    (samples >= LEAST_SAMPLES && all > 0).then(|| (module, ns as f64 / all as f64))
}

pub(super) struct Evidence<'e> {
    facts: &'e Facts,
    stacks: &'e Stacks,
    seen: Vec<Seen>,
    /// Length of each request's time.
    lengths: Vec<i64>,
    runs: Ranges,
    waits: Ranges,
}

impl<'e> Evidence<'e> {
    pub fn new(facts: &'e Facts, stacks: &'e Stacks) -> Evidence<'e> {
        let (runs, waits) = (Ranges::default(), Ranges::default());
        Evidence { facts, stacks, seen: Vec::new(), lengths: Vec::new(), runs, waits }
    }

    fn request(&mut self, seen: Seen, times: &[(i64, i64)]) -> usize {
        self.seen.push(seen);
        self.lengths
            .push(times.iter().map(|(from, to)| to.saturating_sub(*from)).fold(0, i64::saturating_add));
        self.seen.len() - 1
    }

    /// Asks nothing.
    pub fn nothing(&mut self) -> usize {
        self.request(Seen::default(), &[])
    }

    /// Asks what a thread did while it ran.
    pub fn run(&mut self, utid: i64, times: Vec<(i64, i64)>) -> usize {
        let request = self.request(Seen::default(), &times);
        self.runs.add(utid, times, request);
        request
    }

    /// Asks in whose code threads were while they ran, each in a time of its own.
    pub fn calls(&mut self, times: impl Iterator<Item = (i64, i64, i64)>) -> usize {
        let request = self.request(Seen::default(), &[]);
        times.for_each(|(utid, from, to)| self.runs.add(utid, vec![(from, to)], request));
        request
    }

    /// The driver that had been asked where a thread waited with this stack.
    pub fn asked(&self, stack: i64) -> Option<u32> {
        self.asked_of(&self.stacks.get(stack))
    }

    fn asked_of(&self, part: &Stack<'_>) -> Option<u32> {
        let (frame, outer) = self.facts.charged(part)?;
        outer.is_some_and(|outer| self.facts.asks(outer)).then(|| self.facts.module_of(frame))
    }

    /// Asks what a thread waited for that came back with this stack.
    pub fn wait(&mut self, utid: i64, stack: i64, times: Vec<(i64, i64)>) -> usize {
        let seen = self.functions(stack);
        let request = self.request(seen, &times);
        self.waits.add(utid, times, request);
        request
    }

    /// The answer, once the tables were looked at.
    pub fn seen_at(&self, request: usize) -> Seen {
        self.seen.get(request).cloned().unwrap_or_default()
    }

    /// The function of a stack that is the program's own, and what it had called.
    fn functions(&self, stack: i64) -> Seen {
        let part = self.stacks.get(stack);
        let frames: Vec<u32> = part.frames().collect();
        let kernel = part.kernel.len();
        let label = |at: usize| {
            let function = self.facts.function_of(*frames.get(at)?);
            self.facts.functions.get(function as usize).map(|(label, _)| label.clone())
        };
        let own_user = |at: &usize| {
            frames.get(*at).is_some_and(|&frame| {
                !self.facts.is_system_library(frame) && !self.facts.is_thread_start(frame)
            })
        };
        let driver = |at: &usize| {
            frames.get(*at).is_some_and(|&frame| self.facts.is_driver(self.facts.module_of(frame)))
        };
        let own = (kernel..frames.len()).find(own_user).or_else(|| (0..kernel).find(driver));
        let callee = match own {
            Some(own) => own.checked_sub(1),
            None => frames.len().checked_sub(1),
        };
        Seen {
            function: own.and_then(label),
            callee: callee.and_then(label),
            path: None,
            whose: Some(whose_work(self.facts, &part).0),
            asked: self.asked_of(&part).map(|module| (module, 1.0)),
        }
    }

    /// Looks at the tables.
    pub fn look(&mut self, db: &Database) {
        self.runs.sort();
        self.waits.sort();
        self.samples(db);
        self.files(db);
    }

    /// Running is explained by the stack that most of its samples have.
    fn samples(&mut self, db: &Database) {
        if self.runs.by_thread.is_empty() {
            return;
        }
        let mut sums: HashMap<(usize, i64), (i64, i64)> = HashMap::default();
        for row in &db.read_or_empty::<SampleRow>() {
            // What DPCs and ISRs did is not the thread's.
            let Some(stack) = row.stack_id().filter(|_| !row.in_dpc() && !row.in_isr()) else { continue };
            let utid = row.utid();
            let ts = row.ts_ns();
            self.runs.overlaps(utid, ts, ts.saturating_add(1), |request, _| {
                let (ns, samples) = sums.entry((request, stack)).or_default();
                add(ns, row.weight_ns());
                add(samples, 1);
            });
        }
        // By own function and callee: the same function has many stacks.
        let mut functions: BTreeMap<usize, BTreeMap<OwnAndCallee, i64>> = BTreeMap::new();
        let mut owners: BTreeMap<usize, BTreeMap<Option<Whose>, i64>> = BTreeMap::new();
        let mut asked: BTreeMap<usize, BTreeMap<Option<u32>, (i64, i64)>> = BTreeMap::new();
        for ((request, stack), (ns, samples)) in sums {
            let seen = self.functions(stack);
            let of =
                asked.entry(request).or_default().entry(seen.asked.map(|(module, _)| module)).or_default();
            add(&mut of.0, ns);
            add(&mut of.1, samples);
            add(owners.entry(request).or_default().entry(seen.whose).or_default(), ns);
            add(functions.entry(request).or_default().entry((seen.function, seen.callee)).or_default(), ns);
        }
        for (request, sums) in functions {
            let mut by_function: BTreeMap<Option<String>, i64> = BTreeMap::new();
            for ((function, _), ns) in &sums {
                add(by_function.entry(function.clone()).or_default(), *ns);
            }
            let function =
                by_function.into_iter().max_by_key(|(_, ns)| *ns).and_then(|(function, _)| function);
            let callee = sums.iter().filter(|((f, _), _)| *f == function).max_by_key(|(_, ns)| **ns);
            let callee = callee.and_then(|((_, callee), _)| callee.clone());
            if let Some(seen) = self.seen.get_mut(request) {
                // What the program's own code calls while it runs says little, unless there is no own code.
                seen.callee = callee.filter(|_| function.is_none());
                seen.function = function;
                let whose =
                    owners.remove(&request).and_then(|sums| sums.into_iter().max_by_key(|(_, ns)| *ns));
                seen.whose = whose.and_then(|(whose, _)| whose);
                seen.asked = asked.remove(&request).and_then(|sums| most_asked(&sums));
            }
        }
    }

    /// A wait is explained by the file operations, hard faults and disk transfers of its thread that cover most of it.
    fn files(&mut self, db: &Database) {
        if self.waits.by_thread.is_empty() {
            return;
        }
        let mut sums: HashMap<usize, BTreeMap<String, i64>> = HashMap::default();
        let waits = &self.waits;
        let mut note = |utid: i64, from: i64, to: i64, path: &str| {
            waits.overlaps(utid, from, to, |request, ns| {
                let paths = sums.entry(request).or_default();
                match paths.get_mut(path) {
                    Some(sum) => add(sum, ns),
                    None => _ = paths.insert(path.to_owned(), ns),
                }
            });
        };
        for row in &db.read_or_empty::<SlowFileIoRow>() {
            if let (Some(utid), Some(path)) = (row.utid(), row.path()) {
                note(utid, row.start_ns(), row.start_ns().saturating_add(row.dur_ns()), path);
            }
        }
        let files = db.read_or_empty::<FileRow>();
        let path_of = |file: Option<i64>| files.get(file?)?.path();
        for row in &db.read_or_empty::<HardFaultRow>() {
            if let Some(path) = path_of(row.file_id()) {
                note(row.utid(), row.start_ns(), row.ts_ns(), path);
            }
        }
        for row in &db.read_or_empty::<DiskIoRow>() {
            if let (Some(utid), Some(path)) = (row.utid(), path_of(row.file_id())) {
                note(utid, row.start_ns(), row.ts_ns(), path);
            }
        }
        for (request, paths) in sums {
            let Some((path, ns)) = paths.into_iter().max_by_key(|(_, ns)| *ns) else { continue };
            let length = self.lengths.get(request).copied().unwrap_or(0);
            if let Some(seen) = self.seen.get_mut(request).filter(|_| ns.saturating_mul(2) >= length) {
                seen.path = Some(path);
            }
        }
    }
}
