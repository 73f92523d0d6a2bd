//! Costs of calls in the order of the calls, in at most 64 bins of equally many calls: when there are no bins left, neighbours become
//! one. Costs by size, in bins of a quarter of a power of two.

use etwhy_stats::growth::Point;

/// Most bins of a series.
pub(super) const MOST_BINS: usize = 64;

/// Calls that follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Bin {
    /// Number of its first call in the series, from 1.
    pub(super) first: u64,
    /// Calls.
    pub(super) calls: u32,
    /// Calls of which the cost is known.
    pub(super) known: u32,
    /// When the first and the last one ended, ns.
    pub(super) from_ns: i64,
    pub(super) to_ns: i64,
    /// Their cost, ns.
    pub(super) sum: f64,
    /// Sum of the logarithms of their costs.
    logs: f64,
    /// Sum of the sizes that they had.
    pub(super) sizes: f64,
}

impl Bin {
    /// Typical cost of a call: the geometric mean, which a few slow calls do not move.
    pub(super) fn typical(&self) -> f64 {
        if self.known == 0 { 0.0 } else { (self.logs / f64::from(self.known)).exp() }
    }

    /// Mean cost of a call.
    pub(super) fn mean(&self) -> f64 {
        self.sum / f64::from(self.known.max(1))
    }

    /// Number of the last call.
    pub(super) fn last(&self) -> u64 {
        self.first.saturating_add(u64::from(self.calls)).saturating_sub(1)
    }

    /// Number of the call in the middle.
    pub(super) fn middle(&self) -> f64 {
        (self.first as f64 + self.last() as f64) / 2.0
    }

    fn add(&mut self, ns: i64, cost: Option<i64>, size: u64) {
        self.calls = self.calls.saturating_add(1);
        self.to_ns = ns;
        self.sizes += size as f64;
        if let Some(cost) = cost {
            // Shorter than a tick of the clock.
            let cost = cost.max(1) as f64;
            self.known = self.known.saturating_add(1);
            self.sum += cost;
            self.logs += cost.ln();
        }
    }

    /// With the bin behind it.
    pub(super) fn join(self, next: Bin) -> Bin {
        Bin {
            first: self.first,
            calls: self.calls.saturating_add(next.calls),
            known: self.known.saturating_add(next.known),
            from_ns: self.from_ns,
            to_ns: next.to_ns,
            sum: self.sum + next.sum,
            logs: self.logs + next.logs,
            sizes: self.sizes + next.sizes,
        }
    }

    /// With all calls of the same cost.
    pub(super) fn costing(self, total: f64) -> Bin {
        let mean = total / f64::from(self.calls.max(1));
        Bin { known: self.calls, sum: total, logs: mean.max(1e-9).ln() * f64::from(self.calls), ..self }
    }
}

/// A series of calls.
#[derive(Clone, Debug)]
pub(super) struct Bins {
    pub(super) list: Vec<Bin>,
    /// Calls of a full bin.
    width: u32,
    pub(super) calls: u64,
}

impl Default for Bins {
    fn default() -> Bins {
        Bins { list: Vec::new(), width: 1, calls: 0 }
    }
}

impl Bins {
    /// Bins that are complete.
    pub(super) fn complete(list: Vec<Bin>) -> Bins {
        let calls = list.iter().map(|bin| u64::from(bin.calls)).sum();
        Bins { list, calls, ..Bins::default() }
    }

    /// The next call ended at `ns`; `None` where its cost is not known.
    #[inline]
    pub(super) fn add(&mut self, ns: i64, cost: Option<i64>, size: u64) {
        let width = self.width;
        self.calls = self.calls.saturating_add(1);
        if let Some(bin) = self.list.last_mut().filter(|bin| bin.calls < width) {
            return bin.add(ns, cost, size);
        }
        if self.list.len() >= MOST_BINS {
            self.list =
                self.list.chunks(2).filter_map(|pair| pair.iter().copied().reduce(Bin::join)).collect();
            self.width = self.width.saturating_mul(2);
        }
        let mut bin = Bin { first: self.calls, from_ns: ns, ..Bin::default() };
        bin.add(ns, cost, size);
        self.list.push(bin);
    }

    /// Cost of all calls, ns.
    pub(super) fn total(&self) -> f64 {
        self.list.iter().map(|bin| bin.sum).sum()
    }

    /// Calls of which the cost is known.
    pub(super) fn known(&self) -> u64 {
        self.list.iter().map(|bin| u64::from(bin.known)).sum()
    }

    /// First and last thirds of the bins, each as one.
    pub(super) fn thirds(&self) -> Option<(Bin, Bin)> {
        let third = self.list.len() / 3;
        let first = self.list.get(..third)?.iter().copied().reduce(Bin::join)?;
        let last = self.list.get(self.list.len() - third..)?.iter().copied().reduce(Bin::join)?;
        Some((first, last))
    }

    /// The points that laws are fitted to.
    pub(super) fn points(&self) -> Vec<Point> {
        let known = self.list.iter().filter(|bin| bin.known > 0);
        known
            .map(|bin| Point {
                n: bin.middle(),
                cost: bin.typical(),
                weight: f64::from(bin.known),
                time: Some((bin.from_ns as f64 + bin.to_ns as f64) / 2e9),
            })
            .collect()
    }
}

/// Costs by size.
#[derive(Clone, Debug, Default)]
pub(super) struct Sizes(Vec<(u8, Bin)>);

impl Sizes {
    /// A call of that size.
    #[inline]
    pub(super) fn add(&mut self, ns: i64, cost: Option<i64>, size: u64) {
        if size == 0 || cost.is_none() {
            return;
        }
        let class = ((size as f64).log2() * 4.0) as u8;
        let at = match self.0.binary_search_by_key(&class, |(class, _)| *class) {
            Ok(at) => at,
            Err(at) => {
                self.0.insert(at, (class, Bin { first: 1, from_ns: ns, ..Bin::default() }));
                at
            }
        };
        if let Some((_, bin)) = self.0.get_mut(at) {
            bin.add(ns, cost, size);
        }
    }

    /// The bins, by size.
    pub(super) fn bins(&self) -> impl Iterator<Item = &Bin> {
        self.0.iter().map(|(_, bin)| bin)
    }

    /// The points that laws are fitted to: mean size and typical cost.
    pub(super) fn points(&self) -> Vec<Point> {
        self.bins()
            .map(|bin| Point {
                n: bin.sizes / f64::from(bin.calls.max(1)),
                cost: bin.typical(),
                weight: f64::from(bin.known),
                time: None,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_hold_equally_many_calls_and_lose_none() {
        let mut bins = Bins::default();
        for n in 1..=1000_i64 {
            bins.add(n, Some(n * 10), 1);
        }
        assert_eq!((bins.calls, bins.known()), (1000, 1000));
        assert!((33..=64).contains(&bins.list.len()), "{}", bins.list.len());
        assert_eq!(bins.total(), 10.0 * 500_500.0);
        let width = bins.list[0].calls;
        assert!(bins.list.iter().rev().skip(1).all(|bin| bin.calls == width));
        for pair in bins.list.windows(2) {
            assert_eq!(pair[0].last() + 1, pair[1].first);
        }
        let last = bins.list.last().unwrap();
        assert_eq!((last.last(), last.to_ns), (1000, 1000));
        // The middle call's cost is the mean of its bin, and nearly the typical one.
        let some = bins.list[20];
        assert!(
            (some.mean() - some.middle() * 10.0).abs() < 1e-6
                && (some.typical() / some.mean() - 1.0).abs() < 1e-3
        );
    }

    #[test]
    fn calls_without_a_cost_are_counted() {
        let mut bins = Bins::default();
        bins.add(5, None, 0);
        bins.add(6, Some(0), 0);
        assert_eq!((bins.calls, bins.known(), bins.points().len()), (2, 1, 1));
        assert_eq!(bins.points()[0].n, 2.0);
        assert!(bins.thirds().is_none());
    }

    #[test]
    fn sizes_of_a_kind_come_together() {
        let mut sizes = Sizes::default();
        for size in [4096, 4096, 65536, 0, u64::MAX] {
            sizes.add(1, Some(size.min(1 << 40) as i64), size);
        }
        let points = sizes.points();
        assert_eq!(points.iter().map(|p| p.weight).collect::<Vec<_>>(), [2.0, 1.0, 1.0]);
        assert!((points[0].cost - 4096.0).abs() < 1e-6 && points[1].n == 65536.0);
    }
}
