//! Durations by size, for percentiles in little memory.
//!
//! Each power of two is divided into 128 parts, and the middle of a part stands for all in it, so that a percentile
//! is wrong by 0.4 % at most; counts, totals, minima and maxima are exact.

/// Parts of a power of two, as a power of two.
const PARTS: u32 = 7;

/// A histogram of durations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    /// Parts that hold any, with their counts, from the smallest. A list of all parts would make a single
    /// duration cost kilobytes.
    parts: Vec<(u16, u32)>,
    pub(crate) count: u64,
    pub(crate) total_ns: i64,
    min_ns: i64,
    pub(crate) max_ns: i64,
}

impl Histogram {
    /// Adds a duration; negative ones count as 0.
    pub(crate) fn add(&mut self, ns: i64) {
        let ns = ns.max(0);
        self.min_ns = if self.count == 0 { ns } else { self.min_ns.min(ns) };
        self.count += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
        self.add_part(part_of(ns as u64), 1);
    }

    fn add_part(&mut self, part: u16, more: u32) {
        match self.parts.binary_search_by_key(&part, |(part, _)| *part) {
            Ok(at) => {
                if let Some((_, count)) = self.parts.get_mut(at) {
                    *count = count.saturating_add(more);
                }
            }
            Err(at) => self.parts.insert(at, (part, more)),
        }
    }

    /// Adds all of another.
    pub(crate) fn merge(&mut self, other: &Histogram) {
        if other.count == 0 {
            return;
        }
        self.min_ns = if self.count == 0 { other.min_ns } else { self.min_ns.min(other.min_ns) };
        self.count += other.count;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        for (part, count) in &other.parts {
            self.add_part(*part, *count);
        }
    }

    /// The smallest duration that at least `percent` of all do not exceed, by nearest rank; `None` without any.
    pub(crate) fn percentile(&self, percent: u64) -> Option<i64> {
        if self.count == 0 {
            return None;
        }
        let rank = u128::from(self.count) * u128::from(percent.min(100));
        let rank = rank.div_ceil(100).max(1);
        let mut seen = 0u128;
        let (part, _) = self.parts.iter().find(|(_, count)| {
            seen += u128::from(*count);
            seen >= rank
        })?;
        let middle = start_of(*part).midpoint(start_of(part + 1).saturating_sub(1));
        let middle = i64::try_from(middle).unwrap_or(i64::MAX);
        Some(middle.clamp(self.min_ns, self.max_ns.max(self.min_ns)))
    }

    /// Arithmetic mean; `None` without any.
    pub(crate) fn mean(&self) -> Option<i64> {
        let count = i64::try_from(self.count).ok().filter(|&count| count > 0)?;
        Some(self.total_ns / count)
    }
}

/// Values below 2^(PARTS+1) have a part of their own each.
fn part_of(ns: u64) -> u16 {
    let bits = 64 - ns.leading_zeros();
    let shift = bits.saturating_sub(PARTS + 1);
    (u64::from(shift << PARTS) + (ns >> shift)) as u16
}

fn start_of(part: u16) -> u64 {
    let part = u64::from(part);
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
        assert!((1..7000).all(|part| start_of(part) > start_of(part - 1)));
    }

    #[test]
    fn percentiles_are_close() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(50), None);
        (1..=1000).for_each(|n| histogram.add(n * 1000));
        assert_eq!((histogram.count, histogram.max_ns), (1000, 1_000_000));
        assert_eq!(histogram.mean(), Some(500_500));
        for (percent, want) in [(50, 500_000.0), (95, 950_000.0), (99, 990_000.0), (100, 1_000_000.0)] {
            let found = histogram.percentile(percent).unwrap() as f64;
            assert!((found / want - 1.0).abs() < 0.004, "{percent}: {found}");
        }
        let mut small = Histogram::default();
        small.add(7);
        assert_eq!(small.percentile(99), Some(7));
        let mut equal = Histogram::default();
        (0..9).for_each(|_| equal.add(200_000));
        assert_eq!(equal.percentile(50), Some(200_000));
        let mut sum = small.clone();
        sum.merge(&histogram);
        assert_eq!((sum.count, sum.percentile(0)), (1001, Some(7)));
    }
}
