//! CPU samples: what calls without a duration of their own cost, and which function the growth is in.

use super::bins::{Bin, Bins};
use crate::finish::Finish;
use crate::resolve::FrameKind;
use etwhy_table::Sym;
use foldhash::{HashMap, HashSet};

/// No series.
const NONE: u32 = u32::MAX;

/// A sample of a thread that was neither idle nor interrupted.
#[derive(Clone, Copy)]
pub(super) struct Sample {
    pub(super) ns: i64,
    pub(super) utid: u32,
    ticket: i32,
    pub(super) weight_ns: u32,
    /// The series of the next call of its process, if that is of a kind whose cost samples tell.
    series: u32,
}

/// All samples.
#[derive(Default)]
pub(super) struct Samples {
    pub(super) list: Vec<Sample>,
    /// Of processes with such calls, the samples since the last one.
    waiting: HashMap<u32, Vec<u32>>,
}

impl Samples {
    pub(super) fn add(&mut self, ns: i64, utid: u32, upid: Option<u32>, ticket: i32, weight_ns: i64) {
        if let Some(waiting) = upid.and_then(|upid| self.waiting.get_mut(&upid)) {
            waiting.push(self.list.len() as u32);
        }
        let weight_ns = u32::try_from(weight_ns).unwrap_or(u32::MAX);
        self.list.push(Sample { ns, utid, ticket, weight_ns, series: NONE });
    }

    /// A call of `series` in the process ended: the samples since the one before may be its.
    pub(super) fn call(&mut self, upid: u32, series: u32) {
        for number in self.waiting.entry(upid).or_default().drain(..) {
            if let Some(sample) = self.list.get_mut(number as usize) {
                sample.series = series;
            }
        }
    }
}

/// How samples tell whether they lie within a call.
pub(super) struct Within {
    /// Functions that are on the stack of every call.
    pub(super) functions: &'static [&'static str],
    /// Without function names any kernel code between two calls is taken for theirs.
    pub(super) or_kernel: bool,
}

/// Costs by samples of the calls of one series.
pub(super) struct Sampled {
    pub(super) bins: Bins,
    /// By names of functions, or else by kernel code.
    pub(super) by_name: bool,
    /// Samples in the calls.
    pub(super) count: u32,
}

/// Samples that a bin should have: a cost by fewer is off by more than a third too often (Poisson).
const LEAST_SAMPLES: u32 = 9;
/// Samples that it must have. The comparison of laws takes the scatter into account, but a bin of one to three samples is too
/// often off by a factor of two for a law to be told from a constant (the test counts how often that goes wrong).
const FEWEST_SAMPLES: u32 = 4;
/// Bins that few samples are spread over: a verdict needs twenty, and a range of n that the first bin of fewer would not leave.
const FEW_BINS: u32 = 24;

/// What samples tell of all series that `within` knows how to look at.
pub(super) fn costs<'s>(
    samples: &Samples,
    end: &Finish<'_>,
    series: impl Fn(u32) -> Option<(&'s Bins, Within)>,
) -> HashMap<u32, Sampled> {
    // Weights by bin, of samples in named calls and in kernel code.
    let mut sums: HashMap<u32, Vec<[(f64, u32); 2]>> = HashMap::default();
    let mut named: HashSet<u32> = HashSet::default();
    let mut known: HashMap<(i32, usize), [bool; 3]> = HashMap::default();
    for sample in samples.list.iter().filter(|s| s.series != NONE) {
        let Some((bins, within)) = series(sample.series) else { continue };
        let key =
            (end.resolved.stack_of_ticket(sample.ticket).unwrap_or(-1), within.functions.as_ptr() as usize);
        let [in_call, in_kernel, has_names] = *known.entry(key).or_insert_with(|| look(end, key.0, &within));
        if has_names {
            named.insert(sample.series);
        }
        let at = bins.list.partition_point(|bin| bin.to_ns < sample.ns);
        let list = sums.entry(sample.series).or_insert_with(|| vec![[(0.0, 0); 2]; bins.list.len()]);
        let Some(sum) = list.get_mut(at) else { continue };
        for (sum, counts) in sum.iter_mut().zip([in_call, in_kernel]) {
            if counts {
                *sum = (sum.0 + f64::from(sample.weight_ns), sum.1.saturating_add(1));
            }
        }
    }
    let mut found = HashMap::default();
    for (number, sums) in sums {
        let Some((bins, within)) = series(number) else { continue };
        let by_name = named.contains(&number);
        if !by_name && !within.or_kernel {
            continue;
        }
        let sums: Vec<(f64, u32)> =
            sums.into_iter().map(|[call, kernel]| if by_name { call } else { kernel }).collect();
        let count = sums.iter().fold(0, |all: u32, (_, count)| all.saturating_add(*count));
        found.insert(number, Sampled { bins: costing(bins, &sums), by_name, count });
    }
    found
}

/// Neighbouring bins come together until each has enough samples. Where samples are few, fewer are enough, and bins with more are split
/// as if samples came at a steady pace within: a bin that waits for the fifth sample would often get the eighth with it, and calls
/// that grow leave most of their samples to the last few bins.
fn costing(bins: &Bins, sums: &[(f64, u32)]) -> Bins {
    let all = sums.iter().fold(0, |all: u32, (_, count)| all.saturating_add(*count));
    let enough = (all / FEW_BINS).clamp(FEWEST_SAMPLES, LEAST_SAMPLES);
    let few = all < 2 * FEW_BINS * LEAST_SAMPLES;
    let mut list = Vec::new();
    let mut open: Option<(Bin, f64, u32)> = None;
    for (bin, &(weight, count)) in bins.list.iter().zip(sums) {
        let (mut bin, mut weight, mut count) = (*bin, weight, count);
        while let Some((calls, wanted)) =
            cut(&bin, count, enough, open.map_or(0, |(.., had)| had)).filter(|_| few)
        {
            let part = f64::from(wanted) / f64::from(count.max(1));
            let (first, rest) = bin.split(calls);
            let (before, w) = open.take().map_or((first, 0.0), |(before, w, _)| (before.join(first), w));
            list.push(before.costing(w + weight * part));
            (bin, weight, count) = (rest, weight * (1.0 - part), count.saturating_sub(wanted));
        }
        let (bin, weight, count) = match open.take() {
            Some((before, w, c)) => (before.join(bin), w + weight, c.saturating_add(count)),
            None => (bin, weight, count),
        };
        if count >= enough {
            list.push(bin.costing(weight));
        } else {
            open = Some((bin, weight, count));
        }
    }
    Bins::complete(list)
}

/// How many calls of a bin with `count` samples make up the samples that lack after `had`, and how many those are; `None` if it has no
/// more than these.
fn cut(bin: &Bin, count: u32, enough: u32, had: u32) -> Option<(u32, u32)> {
    let wanted = enough.saturating_sub(had);
    let calls = (f64::from(bin.calls) * f64::from(wanted) / f64::from(count.max(1))) as u32;
    let splits = wanted > 0 && count > wanted && (1..bin.calls).contains(&calls);
    splits.then_some((calls, wanted))
}

/// Whether a stack lies in a call, whether it is in the kernel, whether its kernel functions have names.
fn look(end: &Finish<'_>, stack: i32, within: &Within) -> [bool; 3] {
    let Ok(stack) = u32::try_from(stack) else { return [false; 3] };
    let frames = end.resolved.frames_of(stack).iter().filter_map(|&f| end.resolved.frames.get(f as usize));
    let (mut in_call, mut named) = (false, false);
    for frame in frames.filter(|f| f.kind == FrameKind::Kernel) {
        let Some(function) = frame.function else { continue };
        named = true;
        in_call |= within.functions.contains(&end.strings.get(function));
    }
    [in_call, end.resolved.kernel_depth(stack) > 0, named]
}

/// Where the growth is.
#[derive(Clone, Copy, Default)]
pub(super) struct Culprit {
    /// Innermost function that holds most of it, and its module.
    pub(super) function: Option<Sym>,
    pub(super) module: Option<Sym>,
    /// The innermost function outside Windows's own layers that calls it.
    pub(super) caller: Option<Sym>,
    /// The stack that grew most.
    pub(super) stack_id: Option<i32>,
    /// CPU time for each call in the last third less that in the first, in `function`.
    pub(super) growth_ns: f64,
}

/// A series whose culprit is wanted.
pub(super) struct CulpritSearch {
    /// Only samples that wait for a call of this series.
    pub(super) series: Option<u32>,
    pub(super) first: Bin,
    pub(super) last: Bin,
}

/// Share of the growth that the function must hold: of several that do, the innermost is named.
const MOST_OF_IT: f64 = 0.8;
/// Samples in the last third below which nothing is said.
const LEAST_FOR_CULPRIT: u32 = 20;

/// Weights by stack of one series: in the first and in the last third.
#[derive(Default)]
pub(super) struct ByStack(HashMap<i32, [f64; 2]>, u32);

impl ByStack {
    /// Counts a sample that lies in the first (0) or last (1) third.
    pub(super) fn add(&mut self, third: usize, stack: i32, weight: u32) {
        if let Some(sum) = self.0.entry(stack).or_default().get_mut(third) {
            *sum += f64::from(weight);
        }
        self.1 = self.1.saturating_add(third as u32);
    }

    /// The culprit, given the calls in both thirds.
    pub(super) fn culprit(&self, calls: [u32; 2], end: &Finish<'_>) -> Culprit {
        if self.1 < LEAST_FOR_CULPRIT {
            return Culprit::default();
        }
        let [early, late] = calls.map(|calls| f64::from(calls.max(1)));
        let mut stacks: Vec<(i32, f64)> =
            self.0.iter().map(|(stack, [first, last])| (*stack, last / late - first / early)).collect();
        stacks.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let growth: f64 = stacks.iter().map(|s| s.1).sum();
        if growth <= 0.0 {
            return Culprit::default();
        }
        // By function: growth, and where it stands in the stacks (innermost 0), by weight.
        let mut functions: HashMap<Sym, (f64, f64, f64, Sym)> = HashMap::default();
        let mut seen: HashSet<Sym> = HashSet::default();
        for &(stack, grown) in &stacks {
            seen.clear();
            for (depth, frame) in frames(end, stack).enumerate() {
                if seen.insert(frame.label) {
                    let sum = functions.entry(frame.label).or_insert((0.0, 0.0, 0.0, frame.module));
                    *sum = (sum.0 + grown, sum.1 + grown.abs() * depth as f64, sum.2 + grown.abs(), sum.3);
                }
            }
        }
        let best = functions
            .into_iter()
            .filter(|(_, f)| f.0 >= MOST_OF_IT * growth)
            .min_by(|(a, x), (b, y)| (x.1 / x.2).total_cmp(&(y.1 / y.2)).then(a.cmp(b)));
        let top = stacks.first().map(|s| s.0);
        let caller = top.and_then(|stack| frames(end, stack).find(|f| !is_layer(end.strings.get(f.module))));
        Culprit {
            function: best.map(|(label, _)| label),
            module: best.map(|(_, f)| f.3),
            caller: caller.map(|f| f.label),
            stack_id: top.filter(|&stack| stack >= 0),
            growth_ns: best.map_or(0.0, |(_, f)| f.0),
        }
    }
}

fn frames<'f>(end: &'f Finish<'_>, stack: i32) -> impl Iterator<Item = &'f crate::resolve::Frame> {
    let frames = u32::try_from(stack).map_or(&[][..], |stack| end.resolved.frames_of(stack));
    frames.iter().filter_map(|&f| end.resolved.frames.get(f as usize))
}

/// Layers that every program goes through: whoever calls them is more telling.
fn is_layer(module: &str) -> bool {
    const LAYERS: [&str; 16] = [
        "ntoskrnl.exe",
        "hal.dll",
        "win32k.sys",
        "win32kbase.sys",
        "win32kfull.sys",
        "fltmgr.sys",
        "ntfs.sys",
        "ntdll.dll",
        "kernelbase.dll",
        "kernel32.dll",
        "user32.dll",
        "win32u.dll",
        "wow64.dll",
        "wow64cpu.dll",
        "wow64win.dll",
        "[unknown]",
    ];
    LAYERS.iter().any(|layer| module.eq_ignore_ascii_case(layer))
}

/// The stack of a sample at the end of the pass; -1 for none.
pub(super) fn stack_of(sample: &Sample, end: &Finish<'_>) -> i32 {
    end.resolved.stack_of_ticket(sample.ticket).unwrap_or(-1)
}

impl Sample {
    /// In which third of a series it lies.
    pub(super) fn third(&self, wanted: &CulpritSearch) -> Option<usize> {
        if wanted.series.is_some_and(|series| series != self.series) {
            return None;
        }
        let within = |bin: &Bin| bin.from_ns <= self.ns && self.ns <= bin.to_ns;
        [&wanted.first, &wanted.last].into_iter().position(within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_base::rng::Rng;
    use etwhy_stats::growth::{Form, Verdict, fit};

    /// The verdict about 3,000 calls with this many samples, of which the n-th call gets a share in proportion to n to the `power`; half
    /// of them fall into the 2 % of the calls before `stall` (a part of all), if it is given.
    fn verdict(samples: u32, power: f64, stall: Option<f64>, seed: u64) -> Verdict {
        let mut bins = Bins::default();
        (0..3000).for_each(|n| bins.add(n * 1000, Some(1), 0));
        let mut sums = vec![(0.0, 0); bins.list.len()];
        let mut rng = Rng::new(seed);
        for sample in 0..samples {
            let uniform = rng.uniform();
            let call = match stall.filter(|_| sample.is_multiple_of(2)) {
                Some(end) => 3000.0 * (end - 0.02 * uniform),
                None => 3000.0 * uniform.powf(1.0 / (power + 1.0)),
            };
            let at = bins.list.partition_point(|bin| (bin.last() as f64) < call).min(sums.len() - 1);
            sums[at] = (sums[at].0 + 1e6, sums[at].1 + 1);
        }
        // Time is not what is tested here.
        let points: Vec<_> = costing(&bins, &sums).points();
        let points: Vec<_> = points
            .into_iter()
            .map(|mut p| {
                p.time = None;
                p
            })
            .collect();
        fit(&points, Form::PerCall).verdict
    }

    #[test]
    fn one_stall_is_no_growth() {
        for samples in [90, 138, 200, 300, 431] {
            for stall in [0.1, 0.5, 0.9, 1.0] {
                let grows = |&seed: &u64| verdict(samples, 0.0, Some(stall), seed) == Verdict::SuperLinear;
                let wrong = (0..500).filter(grows).count();
                println!("{samples} samples, stall at {stall}: {wrong} of 500");
                assert!(wrong <= 3, "{samples} samples, stall at {stall}: {wrong} of 500");
            }
        }
    }

    #[test]
    fn few_samples_tell_a_line_from_a_constant() {
        for (samples, least) in
            [(90, 60), (100, 60), (138, 70), (175, 70), (225, 90), (300, 95), (400, 95), (450, 95)]
        {
            let told =
                (0..100).filter(|&seed| verdict(samples, 1.0, None, seed) == Verdict::SuperLinear).count();
            let wrong =
                (0..1000).filter(|&seed| verdict(samples, 0.0, None, seed) == Verdict::SuperLinear).count();
            println!("{samples}: {told} of 100 lines, {wrong} of 1000 constants");
            assert!(told >= least && wrong <= 5, "{samples}: {told} of 100 lines, {wrong} of 1000 constants");
        }
    }

    #[test]
    fn fewer_samples_than_make_twenty_bins_tell_nothing() {
        assert!((0..20).all(|seed| verdict(70, 1.0, None, seed) == Verdict::CannotTell));
    }
}
