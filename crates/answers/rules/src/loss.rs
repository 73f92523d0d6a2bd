//! What sums of sampled CPU time would be if nothing of the processors' time were missing.
//!
//! Buffers that a busy machine did not write leave ranges without samples. A sum over samples is then a lower bound. Where the missing
//! ranges are as good as drawn at random (`Gaps::even`), each holds the culprit's share of a processor on average, and the sum of all of them
//! strays from that by no more than a coin with this share as its chance would.

use etwhy_analysis::derived::machine::{MachineRow, running_cpu_ns, unrecorded_ns};
use etwhy_analysis::gaps::Gaps;
use etwhy_base::units::{digits, duration_ns};
use etwhy_table::Database;

/// Less than this is within the error of sampling.
const LEAST_SHARE: f64 = 0.01;
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
        // What a circular recording has overwritten, or what lies outside of the kernel's session, was not lost.
        let unrecorded = unrecorded_ns(db).saturating_mul(machine.cpus());
        let missing = running_cpu_ns(machine).saturating_sub(unrecorded) as f64 - observed;
        let gaps = Gaps::read(db);
        if gaps.is_empty() || observed <= 0.0 || missing < LEAST_SHARE * (observed + missing) {
            return None;
        }
        let (cpus, duration) = (machine.cpus().max(1) as f64, machine.duration_ns().max(1) as f64);
        Some(Loss { observed, missing, range: gaps.even(cpus, duration) })
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

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_base::rng::Xoshiro;

    const MS: f64 = 1e6;

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
            let range = Gaps::new(ranges).even(cpus as f64, steps as f64 * MS);
            let loss = Loss { observed: all - missing, missing, range };
            let Some((low, high)) = loss.range_of(seen as i64) else { continue };
            scaled += 1;
            inside += usize::from((low as f64..=high as f64 + 1.0).contains(&truth));
        }
        assert!(scaled >= 380, "{scaled}");
        assert!(inside * 100 >= scaled * 95, "{inside} of {scaled}");
    }
}
