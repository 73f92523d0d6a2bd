//! What samples, stacks, file operations and disk transfers say of a thread's time.

use super::{Cause, Piece, largest};
use crate::derived::interrupt_path::is_kernel;
use crate::fold::{Facts, Stack, Stacks, Whose, whose_work};
use crate::operators::add;
use etwhy_table::Database;
use etwhy_trace::catalog::{
    disk_io::DiskIoRow, file::FileRow, file_io::SlowFileIoRow, hard_fault::HardFaultRow, sample::SampleRow,
};
use foldhash::{HashMap, HashSet};
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
    /// Drivers that Windows asked about calls of the program, filters and hooks, and for how long it was in each, ns.
    pub asked: Vec<(u32, i64)>,
    /// Drivers in which it was sampled without a stack, or names, that tell whether Windows had asked them, and for how long, ns.
    pub unasked: Vec<(u32, i64)>,
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

/// The drivers that were asked, and their parts of a run of this length: no more than their samples show. What else ran, with or without a stack,
/// is `None`.
fn parts(sums: &BTreeMap<Option<u32>, (i64, i64)>, length: i64) -> Vec<(u32, i64)> {
    let all = sums.values().fold(0i64, |all, (ns, _)| all.saturating_add(*ns)).max(1);
    let asked = || sums.iter().filter_map(|(module, sums)| module.map(|module| (module, *sums)));
    if asked().fold(0i64, |all, (_, (_, samples))| all.saturating_add(samples)) < LEAST_SAMPLES {
        return Vec::new();
    }
    let part = |ns: i64| ns.min((length as f64 * (ns as f64 / all as f64)) as i64);
    asked().map(|(module, (ns, _))| (module, part(ns))).collect()
}

pub(super) struct Evidence<'e> {
    facts: &'e Facts,
    stacks: &'e Stacks,
    seen: Vec<Seen>,
    /// Length of each request's time.
    lengths: Vec<i64>,
    /// Requests that ask in whose code threads were.
    calls: HashSet<usize>,
    runs: Ranges,
    waits: Ranges,
}

impl<'e> Evidence<'e> {
    pub fn new(facts: &'e Facts, stacks: &'e Stacks) -> Evidence<'e> {
        let (runs, waits) = (Ranges::default(), Ranges::default());
        let (seen, lengths, calls) = (Vec::new(), Vec::new(), HashSet::default());
        Evidence { facts, stacks, seen, lengths, calls, runs, waits }
    }

    fn request(&mut self, seen: Seen, times: &[(i64, i64)]) -> usize {
        self.seen.push(seen);
        self.lengths
            .push(times.iter().map(|(from, to)| to.saturating_sub(*from)).fold(0, i64::saturating_add));
        self.seen.len() - 1
    }

    /// Asks what a thread did in these pieces of one cause.
    pub fn of(&mut self, cause: Cause<'_>, utid: i64, pieces: &[&Piece<'_>]) -> usize {
        let times = pieces.iter().map(|piece| (piece.from, piece.to)).collect();
        match cause {
            Cause::Wait(_) => {
                let stacks = pieces.iter().map(|piece| (piece.stack, piece.length()));
                self.wait(utid, largest(stacks).map_or(-1, |(stack, _)| stack), times)
            }
            // Its transfers tell which file it had the disk for.
            Cause::Disk => self.wait(utid, -1, times),
            Cause::Interrupt(_) => self.request(Seen::default(), &[]),
            // A thread that had the processor ran, on whatever stack.
            _ => self.run(utid, times),
        }
    }

    /// Asks what a thread did while it ran.
    fn run(&mut self, utid: i64, times: Vec<(i64, i64)>) -> usize {
        let request = self.request(Seen::default(), &times);
        self.runs.add(utid, times, request);
        request
    }

    /// Asks in whose code threads were while they ran, each in a time of its own.
    pub fn calls(&mut self, times: impl Iterator<Item = (i64, i64, i64)>) -> usize {
        let times: Vec<(i64, i64, i64)> = times.collect();
        let lengths: Vec<(i64, i64)> = times.iter().map(|(_, from, to)| (*from, *to)).collect();
        let request = self.request(Seen::default(), &lengths);
        self.calls.insert(request);
        times.into_iter().for_each(|(utid, from, to)| self.runs.add(utid, vec![(from, to)], request));
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

    /// The driver in which a thread was, itself or with what it had called of the kernel, where no stack or no name tells whether Windows had asked it:
    /// the program's own work, or that of a filter. Drivers of graphics cards are called for no one else.
    pub fn unasked(&self, stack: i64) -> Option<u32> {
        let part = self.stacks.get(stack);
        let module_of = |frame: &u32| self.facts.module_of(*frame);
        let at = part.kernel.iter().position(|frame| self.facts.is_driver(module_of(frame)))?;
        let driver = module_of(part.kernel.get(at)?);
        let named = |module: u32| self.facts.module(module).map_or("", |module| module.name.as_str());
        let graphics = self.facts.module(driver).is_some_and(|module| module.category == "GPU");
        let own = part.kernel.iter().take(at).all(|frame| is_kernel(named(module_of(frame))));
        let mut outer = part.kernel.iter().skip(at).filter(|frame| !self.facts.is_driver(module_of(frame)));
        let untold = self.stacks.is_leaf_only(stack)
            || outer.next().is_some_and(|frame| self.facts.is_nameless(*frame));
        (own && untold && !graphics).then_some(driver)
    }

    /// Nothing was recorded of this stack.
    pub fn is_unseen(&self, stack: i64) -> bool {
        self.stacks.get(stack).frames().next().is_none()
    }

    /// Asks what a thread waited for that came back with this stack.
    fn wait(&mut self, utid: i64, stack: i64, times: Vec<(i64, i64)>) -> usize {
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
            asked: Vec::new(),
            unasked: Vec::new(),
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
        let mut sums: HashMap<(usize, i64), i64> = HashMap::default();
        /// Time and samples by module.
        type ByModule = BTreeMap<Option<u32>, (i64, i64)>;
        let mut asked: BTreeMap<usize, [ByModule; 2]> = BTreeMap::new();
        for row in &db.read_or_empty::<SampleRow>() {
            // What DPCs and ISRs did is not the thread's.
            if row.in_dpc() || row.in_isr() {
                continue;
            }
            let (stack, ts) = (row.stack_id(), row.ts_ns());
            self.runs.overlaps(row.utid(), ts, ts.saturating_add(1), |request, _| {
                if self.calls.contains(&request) {
                    let modules = [
                        stack.and_then(|stack| self.asked(stack)),
                        stack.and_then(|stack| self.unasked(stack)),
                    ];
                    for (of, module) in asked.entry(request).or_default().iter_mut().zip(modules) {
                        let (ns, samples) = of.entry(module).or_default();
                        add(ns, row.weight_ns());
                        add(samples, 1);
                    }
                } else if let Some(stack) = stack {
                    add(sums.entry((request, stack)).or_default(), row.weight_ns());
                }
            });
        }
        for (request, sums) in asked {
            let length = self.lengths.get(request).copied().unwrap_or(0);
            if let Some(seen) = self.seen.get_mut(request) {
                let [asked, unasked] = &sums;
                (seen.asked, seen.unasked) = (parts(asked, length), parts(unasked, length));
            }
        }
        // By own function and callee: the same function has many stacks.
        let mut functions: BTreeMap<usize, BTreeMap<OwnAndCallee, i64>> = BTreeMap::new();
        let mut owners: BTreeMap<usize, BTreeMap<Option<Whose>, i64>> = BTreeMap::new();
        for ((request, stack), ns) in sums {
            let seen = self.functions(stack);
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

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn a_filter_has_no_more_of_a_run_than_its_samples_show() {
        let of = |sums: &[(Option<u32>, i64)], length: i64| {
            let sums = sums.iter().map(|(module, samples)| (*module, (samples * MS, *samples))).collect();
            let parts = parts(&sums, length * MS).into_iter();
            parts.map(|(module, ns)| format!("{module}:{}", ns / MS)).collect::<Vec<_>>().join(" ")
        };
        // It runs all the time, or several share it.
        assert_eq!(of(&[(Some(3), 2000)], 2000), "3:2000");
        assert_eq!(of(&[(None, 30), (Some(3), 40), (Some(4), 30)], 100), "3:40 4:30");
        // Most samples have no stack, or none were taken for most of the run.
        assert_eq!(of(&[(None, 1988), (Some(3), 12)], 2000), "3:12");
        assert_eq!(of(&[(Some(3), 12)], 2000), "3:12");
        // Samples at double rate stand for no more than the run.
        assert_eq!(of(&[(None, 140), (Some(3), 60)], 100), "3:30");
        // Nine samples tell nothing.
        assert_eq!(of(&[(Some(3), 9)], 9), "");
    }
}
