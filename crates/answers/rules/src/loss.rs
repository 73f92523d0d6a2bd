//! What sums of sampled CPU time would be if nothing of the processors' time were missing.
//!
//! Buffers that a busy machine did not write leave ranges without samples. A sum over samples is then a lower bound. How much is missing of
//! it nobody knows, unless the missing ranges are as good as drawn at random: many, short against the trace, and on all processors
//! alike. Then each range holds the culprit's share of a processor on average, and the sum of all of them strays from that by no more than a
//! coin with this share as its chance would. Losses in bursts or on single processors are not like that: what overwhelms the tracing may be
//! the very thing that is looked for.

use etwhy_analysis::derived::machine::MachineRow;
use etwhy_base::units::{digits, duration_ns};
use etwhy_table::Database;
use etwhy_trace::catalog::unobserved::UnobservedRow;
use std::collections::BTreeMap;

/// Less than this is within the error of sampling.
const LEAST_SHARE: f64 = 0.01;
/// Ranges of a processor, on average, from which they are many.
const LEAST_RANGES: f64 = 5.0;
/// Longest range that is short, as part of the trace.
const LONGEST: f64 = 0.1;
/// Part of the processors that must have ranges.
const LEAST_PROCESSORS: f64 = 0.75;
/// Most that one processor may miss, in multiples of the mean.
const MOST_ON_ONE: f64 = 3.0;
/// Standard deviations. Two would hold 95 % of what chance does if nothing else were uncertain.
const DEVIATIONS: f64 = 2.5;

/// What is missing of the samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    /// Time of processors that samples observed, ns.
    observed: f64,
    /// Time that they did not observe, ns.
    missing: f64,
    /// Length of a range in which a moment that is missing lies, on average; none if the ranges are not as good as drawn at random.
    range: Option<f64>,
}

impl Loss {
    /// What the tables say; none if next to nothing is missing, or nothing tells.
    pub fn read(db: &Database) -> Option<Loss> {
        let machine = db.read_or_empty::<MachineRow>();
        let machine = machine.first()?;
        // Without idle samples nobody can tell what is missing from what was idle.
        machine.idle_ns()?;
        let observed = machine.sampled_capacity_ns()? as f64;
        let missing = machine.elapsed_cpu_ns() as f64 - observed;
        let ranges: Vec<(i64, f64)> =
            db.read_or_empty::<UnobservedRow>().iter().map(|row| (row.cpu(), row.dur_ns() as f64)).collect();
        if ranges.is_empty() || observed <= 0.0 || missing < LEAST_SHARE * (observed + missing) {
            return None;
        }
        let (cpus, duration) = (machine.cpus().max(1) as f64, machine.duration_ns().max(1) as f64);
        Some(Loss { observed, missing, range: even(&ranges, cpus, duration) })
    }

    /// From and to what a sum would be, ns, with the missing ranges like the rest; none if they may not be.
    pub fn range_of(&self, cost_ns: i64) -> Option<(i64, i64)> {
        let cost = cost_ns as f64;
        let chance = (cost / self.observed).clamp(0.0, 1.0);
        let more = chance * self.missing;
        // The share itself is known from the observed part only.
        let unsure = (self.observed + self.missing) / self.observed;
        let stray = DEVIATIONS * (chance * (1.0 - chance) * self.missing * self.range? * unsure).sqrt();
        let (low, high) = ((more - stray).max(0.0), (more + stray).min(self.missing));
        Some(((cost + low) as i64, (cost + high) as i64))
    }

    /// What to say beside such a sum.
    pub fn says(&self, cost_ns: i64) -> String {
        let share = digits(100.0 * self.missing / (self.observed + self.missing));
        let cost = duration_ns(cost_ns);
        let start =
            format!("Samples are missing for {share} % of the processors' time, so this is at least {cost}");
        match self.range_of(cost_ns) {
            Some((low, high)) => {
                format!(
                    "{start}; {} to {} if the missing times were like the rest.",
                    duration_ns(low),
                    duration_ns(high)
                )
            }
            None => format!(
                "{start}. How much more cannot be determined: what is missing is not spread over the trace and its processors."
            ),
        }
    }
}

/// The length-weighted mean of the ranges if they are many, short, and on all processors alike.
fn even(ranges: &[(i64, f64)], cpus: f64, duration: f64) -> Option<f64> {
    let mut of_cpu: BTreeMap<i64, f64> = BTreeMap::new();
    ranges.iter().for_each(|(cpu, ns)| *of_cpu.entry(*cpu).or_default() += ns);
    let all: f64 = of_cpu.values().sum();
    let affected = of_cpu.len() as f64;
    let longest = ranges.iter().map(|(_, ns)| *ns).fold(0.0, f64::max);
    let most = of_cpu.values().copied().fold(0.0, f64::max);
    let even = ranges.len() as f64 >= LEAST_RANGES * affected
        && longest <= LONGEST * duration
        && affected >= LEAST_PROCESSORS * cpus
        && most <= MOST_ON_ONE * all / cpus;
    even.then(|| ranges.iter().map(|(_, ns)| ns * ns).sum::<f64>() / all.max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_base::rng::Xoshiro;

    const MS: f64 = 1e6;

    #[test]
    fn only_even_losses_are_scaled() {
        let short: Vec<(i64, f64)> = (0..40).map(|n| (n % 4, 10.0 * MS)).collect();
        assert_eq!(even(&short, 4.0, 4000.0 * MS), Some(10.0 * MS));
        // Few, long, or on one processor.
        assert_eq!(even(&short[..12], 4.0, 4000.0 * MS), None);
        let mut burst = short.clone();
        burst.push((1, 500.0 * MS));
        assert_eq!(even(&burst, 4.0, 4000.0 * MS), None);
        let one: Vec<(i64, f64)> = (0..40).map(|_| (2, 10.0 * MS)).collect();
        assert_eq!(even(&one, 4.0, 4000.0 * MS), None);
    }

    #[test]
    fn words_say_what_is_known() {
        let even = Loss { observed: 9e9, missing: 1e9, range: Some(10.0 * MS) };
        assert_eq!(
            even.says(4_500_000_000),
            "Samples are missing for 10 % of the processors' time, so this is at least 4.5 s; 4.87 s to 5.13 s if the missing times were \
             like the rest."
        );
        let burst = Loss { range: None, ..even };
        assert!(burst.says(4_500_000_000).contains("at least 4.5 s. How much more cannot be determined"));
        assert_eq!(burst.range_of(4_500_000_000), None);
    }

    /// A culprit that has a processor for a while and then not, the same machine with ranges missing at random: the true sum lies inside.
    #[test]
    fn the_truth_lies_in_the_interval() {
        let (steps, cpus, range) = (4000usize, 4usize, 20usize);
        let (mut inside, mut scaled, seeds) = (0, 0, 400);
        for seed in 0..seeds {
            let mut rng = Xoshiro::seeded(seed);
            // Phases of random length, on each processor of its own.
            let busy: Vec<Vec<bool>> = (0..cpus)
                .map(|_| {
                    let (mut on, mut left) = (rng.below(2) == 0, 0);
                    (0..steps)
                        .map(|_| {
                            if left == 0 {
                                (on, left) = (!on, 1 + rng.below(300));
                            }
                            left -= 1;
                            on
                        })
                        .collect()
                })
                .collect();
            let truth = busy.iter().flatten().filter(|on| **on).count() as f64 * MS;
            let (mut seen, mut missing, mut ranges) = (0.0, 0.0, Vec::new());
            for (cpu, line) in busy.iter().enumerate() {
                for part in line.chunks(range) {
                    if rng.below(10) == 0 {
                        missing += part.len() as f64 * MS;
                        ranges.push((cpu as i64, part.len() as f64 * MS));
                    } else {
                        seen += part.iter().filter(|on| **on).count() as f64 * MS;
                    }
                }
            }
            let all = (steps * cpus) as f64 * MS;
            let range = even(&ranges, cpus as f64, steps as f64 * MS);
            let loss = Loss { observed: all - missing, missing, range };
            let Some((low, high)) = loss.range_of(seen as i64) else { continue };
            scaled += 1;
            inside += usize::from((low as f64..=high as f64 + 1.0).contains(&truth));
        }
        assert!(scaled >= 380, "{scaled}");
        assert!(inside * 100 >= scaled * 95, "{inside} of {scaled}");
    }
}
