//! Percentiles of many durations in little memory.

use std::collections::BTreeMap;

/// Steps per doubling: a value is told from another that is 0.8 % larger.
const STEPS_LOG2: u32 = 7;

/// Counts of values on a logarithmic scale. Count, sum, minimum and maximum are exact; percentiles are those of the nearest
/// rank, at most 0.4 % off.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    counts: BTreeMap<u16, u64>,
    count: u64,
    sum: i64,
    max: i64,
}

impl Histogram {
    /// Adds a value; negative ones count as 0.
    #[inline]
    pub fn add(&mut self, value: i64) {
        let value = value.max(0);
        *self.counts.entry(step(value as u64)).or_default() += 1;
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.max = self.max.max(value);
    }

    /// Adds all values of another one.
    pub fn merge(&mut self, other: &Histogram) {
        for (&step, &n) in &other.counts {
            *self.counts.entry(step).or_default() += n;
        }
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }

    /// Number of values.
    pub fn count(&self) -> i64 {
        i64::try_from(self.count).unwrap_or(i64::MAX)
    }

    /// Sum of the values.
    pub fn sum(&self) -> i64 {
        self.sum
    }

    /// Mean, rounded down; 0 without values.
    pub fn mean(&self) -> i64 {
        self.sum.checked_div(self.count()).unwrap_or(0)
    }

    /// Largest value; 0 without values.
    pub fn max(&self) -> i64 {
        self.max
    }

    /// The value that `percent` of the values do not exceed; 0 without values.
    pub fn percentile(&self, percent: u32) -> i64 {
        let rank = (self.count.saturating_mul(u64::from(percent))).div_ceil(100).max(1);
        let mut seen = 0;
        for (&step, &n) in &self.counts {
            seen += n;
            if seen >= rank {
                return middle(step).min(self.max);
            }
        }
        0
    }
}

/// Values below 256 have a step each; above, every doubling has 128.
fn step(value: u64) -> u16 {
    let bits = 64 - value.leading_zeros();
    let shift = bits.saturating_sub(STEPS_LOG2 + 1);
    (u64::from(shift << STEPS_LOG2) + (value >> shift)) as u16
}

fn middle(step: u16) -> i64 {
    let step = u64::from(step);
    let octave = (step >> STEPS_LOG2).saturating_sub(1);
    let base = step - (octave << STEPS_LOG2);
    let low = base << octave;
    let width = 1u64 << octave;
    i64::try_from(low + (width - 1) / 2).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_values_are_exact() {
        let mut h = Histogram::default();
        (1..=100).for_each(|v| h.add(v));
        assert_eq!((h.count(), h.sum(), h.max(), h.mean()), (100, 5050, 100, 50));
        assert_eq!((h.percentile(50), h.percentile(99), h.percentile(100)), (50, 99, 100));
    }

    #[test]
    fn large_values_are_near() {
        for value in [256, 257, 1000, 12_345, 36_800_000, 7_000_000_000, i64::MAX / 3] {
            let mut h = Histogram::default();
            h.add(value);
            h.add(i64::MAX / 2);
            let off = (h.percentile(50) - value).abs() as f64 / value as f64;
            assert!(off <= 0.004, "{value}: {off}");
        }
    }

    #[test]
    fn steps_rise() {
        let mut last = 0;
        for value in (0..100_000u64).chain([1 << 40, u64::MAX >> 1]) {
            assert!(step(value) >= last);
            last = step(value);
        }
    }

    #[test]
    fn nothing_has_no_percentiles() {
        assert_eq!(Histogram::default().percentile(95), 0);
    }
}
