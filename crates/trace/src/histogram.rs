//! Durations by size, for percentiles in little memory.
//!
//! Each power of two is divided into 32 parts, so that a percentile is wrong by 3 % at most; counts, totals and
//! maxima are exact.

/// Parts of a power of two, as a power of two.
const PARTS: u32 = 5;

/// A histogram of durations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    /// Count per part, from the smallest; as long as needed.
    parts: Vec<u32>,
    pub(crate) count: u64,
    pub(crate) total_ns: i64,
    pub(crate) max_ns: i64,
}

impl Histogram {
    /// Adds a duration; negative ones count as 0.
    pub(crate) fn add(&mut self, ns: i64) {
        let ns = ns.max(0);
        self.count += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
        let part = part_of(ns as u64);
        if self.parts.len() <= part {
            self.parts.resize(part + 1, 0);
        }
        if let Some(count) = self.parts.get_mut(part) {
            *count = count.saturating_add(1);
        }
    }

    /// Adds all of another.
    pub(crate) fn merge(&mut self, other: &Histogram) {
        self.count += other.count;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        if self.parts.len() < other.parts.len() {
            self.parts.resize(other.parts.len(), 0);
        }
        for (count, more) in self.parts.iter_mut().zip(&other.parts) {
            *count = count.saturating_add(*more);
        }
    }

    /// The smallest duration that at least `percent` of all do not exceed, by nearest rank; `None` without any.
    pub(crate) fn percentile(&self, percent: u64) -> Option<i64> {
        if self.count == 0 {
            return None;
        }
        let rank = (self.count * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let part = self.parts.iter().position(|&count| {
            seen += u64::from(count);
            seen >= rank
        })?;
        // The middle of the part stands for all in it.
        let (from, to) = (start_of(part), start_of(part + 1));
        Some((from.midpoint(to.saturating_sub(1)) as i64).min(self.max_ns))
    }

    /// Arithmetic mean; `None` without any.
    pub(crate) fn mean(&self) -> Option<i64> {
        let count = i64::try_from(self.count).ok().filter(|&count| count > 0)?;
        Some(self.total_ns / count)
    }
}

/// Values below 2^PARTS have a part of their own each.
fn part_of(ns: u64) -> usize {
    let bits = 64 - ns.leading_zeros();
    let shift = bits.saturating_sub(PARTS + 1);
    (u64::from(shift << PARTS) + (ns >> shift)) as usize
}

fn start_of(part: usize) -> u64 {
    let part = part as u64;
    let shift = (part >> PARTS).saturating_sub(1);
    (part - (shift << PARTS)) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other() {
        for ns in [0u64, 1, 31, 32, 33, 63, 64, 65, 100, 1000, 12345, 1 << 40, i64::MAX as u64] {
            let part = part_of(ns);
            assert!(start_of(part) <= ns, "{ns}");
            assert!(ns < start_of(part + 1) || ns == i64::MAX as u64, "{ns}");
        }
        assert!((1..600).all(|part| start_of(part) > start_of(part - 1)));
    }

    #[test]
    fn percentiles_are_within_three_per_cent() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(50), None);
        (1..=1000).for_each(|n| histogram.add(n * 1000));
        assert_eq!((histogram.count, histogram.max_ns), (1000, 1_000_000));
        assert_eq!(histogram.mean(), Some(500_500));
        for (percent, want) in [(50, 500_000.0), (95, 950_000.0), (99, 990_000.0), (100, 1_000_000.0)] {
            let found = histogram.percentile(percent).unwrap() as f64;
            assert!((found / want - 1.0).abs() < 0.03, "{percent}: {found}");
        }
        let mut small = Histogram::default();
        small.add(7);
        assert_eq!(small.percentile(99), Some(7));
        let mut sum = small.clone();
        sum.merge(&histogram);
        assert_eq!((sum.count, sum.percentile(0)), (1001, Some(7)));
    }
}
