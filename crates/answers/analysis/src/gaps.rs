//! What is missing of a trace's time, and whether it may be scaled up.
//!
//! How much of something lies in ranges that were not observed nobody knows, unless these ranges are as good as drawn at random: many, short
//! against the trace, and on all processors alike. Losses in bursts or on single processors are not like that: what overwhelms the
//! tracing may be the very thing that is looked for.

use etwhy_table::Database;
use etwhy_trace::catalog::unobserved::UnobservedRow;
use std::collections::BTreeMap;

/// Ranges of a processor, on average, from which they are many.
const LEAST_RANGES: f64 = 5.0;
/// Longest range that is short, as part of the trace.
const LONGEST: f64 = 0.1;
/// Part of the processors that must have ranges.
const LEAST_PROCESSORS: f64 = 0.75;
/// Most that one processor may miss, in multiples of the mean.
const MOST_ON_ONE: f64 = 3.0;

/// Time ranges of processors that were not observed.
#[derive(Clone, Debug, Default)]
pub struct Gaps {
    /// Processor, and length in ns.
    ranges: Vec<(i64, f64)>,
}

impl Gaps {
    /// Reads table `unobserved`.
    pub fn read(db: &Database) -> Gaps {
        let rows = db.read_or_empty::<UnobservedRow>();
        Gaps::new(rows.iter().map(|row| (row.cpu(), row.dur_ns() as f64)).collect())
    }

    /// Ranges with their processor and length in ns.
    pub fn new(ranges: Vec<(i64, f64)>) -> Gaps {
        Gaps { ranges }
    }

    /// Nothing is missing.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Time of processors in them, ns.
    pub fn total(&self) -> f64 {
        self.ranges.iter().map(|(_, ns)| *ns).sum()
    }

    /// Length of a range in which a moment that is missing lies, on average, ns; none if the ranges are not as good as drawn at random.
    pub fn even(&self, cpus: f64, duration: f64) -> Option<f64> {
        let mut of_cpu: BTreeMap<i64, f64> = BTreeMap::new();
        self.ranges.iter().for_each(|(cpu, ns)| *of_cpu.entry(*cpu).or_default() += ns);
        let all = self.total();
        let affected = of_cpu.len() as f64;
        let longest = self.ranges.iter().map(|(_, ns)| *ns).fold(0.0, f64::max);
        let most = of_cpu.values().copied().fold(0.0, f64::max);
        let even = !self.ranges.is_empty()
            && self.ranges.len() as f64 >= LEAST_RANGES * affected
            && longest <= LONGEST * duration
            && affected >= LEAST_PROCESSORS * cpus
            && most <= MOST_ON_ONE * all / cpus;
        even.then(|| self.ranges.iter().map(|(_, ns)| ns * ns).sum::<f64>() / all.max(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: f64 = 1e6;

    #[test]
    fn only_even_losses_are_scaled() {
        let even = |ranges: &[(i64, f64)]| Gaps::new(ranges.to_vec()).even(4.0, 4000.0 * MS);
        let short: Vec<(i64, f64)> = (0..40).map(|n| (n % 4, 10.0 * MS)).collect();
        assert_eq!(even(&short), Some(10.0 * MS));
        // None, few, long, or on one processor.
        assert_eq!(even(&[]), None);
        assert_eq!(even(&short[..12]), None);
        let mut burst = short.clone();
        burst.push((1, 500.0 * MS));
        assert_eq!(even(&burst), None);
        let one: Vec<(i64, f64)> = (0..40).map(|_| (2, 10.0 * MS)).collect();
        assert_eq!(even(&one), None);
    }
}
