//! Buckets of time.

use super::Extent;

/// Buckets of equal length that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Start of the first bucket.
    pub start_ns: i64,
    /// Length of a bucket.
    pub bucket_ns: i64,
    /// How many.
    pub count: usize,
    /// Nothing counts from here on: the end of the last bucket, or of the trace in it.
    pub end_ns: i64,
}

/// The next length of a bucket: 1, 2, 3, 4, 6, 8, 12, 16, …
fn longer(ns: i64) -> i64 {
    match ns {
        1 => 2,
        ns if ns.count_ones() == 1 => ns.saturating_add(ns / 2),
        ns => ns.saturating_add(ns / 3),
    }
}

impl Grid {
    /// At most `most` buckets that cover a range. They begin at multiples of their length behind the trace's start.
    pub fn covering([from, to]: [i64; 2], extent: Extent, most: usize) -> Grid {
        let from = from.clamp(extent.first_ns, extent.end_ns.saturating_sub(1));
        let to = to.clamp(from.saturating_add(1), extent.end_ns.max(from.saturating_add(1)));
        let most = i64::try_from(most.clamp(1, 1 << 20)).unwrap_or(1);
        let mut bucket = 1i64;
        loop {
            let skipped = from.saturating_sub(extent.first_ns) / bucket;
            let start_ns = extent.first_ns.saturating_add(skipped.saturating_mul(bucket));
            let covered = to.saturating_sub(start_ns);
            let count = covered / bucket + i64::from(covered % bucket > 0);
            // Where the range begins must not decide: panning would change the buckets.
            let needed = to.saturating_sub(from) / bucket;
            // Spans of damaged traces do not fit into 64 bits; then `needed` says less than there is to cover.
            let fits = needed < most.saturating_sub(1) && count <= most;
            if fits || count <= 1 || bucket == i64::MAX {
                let count = usize::try_from(count.max(1)).unwrap_or(1);
                let grid = Grid::plain(start_ns, bucket, count);
                return Grid { end_ns: grid.end_ns.min(extent.end_ns), ..grid };
            }
            bucket = longer(bucket);
        }
    }

    /// Buckets wherever they are.
    pub fn plain(start_ns: i64, bucket_ns: i64, count: usize) -> Grid {
        let grid = Grid { start_ns, bucket_ns, count, end_ns: 0 };
        Grid { end_ns: grid.at(count), ..grid }
    }

    /// Start of a bucket.
    pub fn at(&self, bucket: usize) -> i64 {
        let bucket = i64::try_from(bucket).unwrap_or(i64::MAX);
        self.start_ns.saturating_add(bucket.saturating_mul(self.bucket_ns))
    }

    /// The bucket of a moment.
    pub fn bucket(&self, ns: i64) -> Option<usize> {
        let behind = ns.checked_sub(self.start_ns).filter(|behind| *behind >= 0 && ns < self.end_ns)?;
        let bucket = usize::try_from(behind / self.bucket_ns.max(1)).ok()?;
        (bucket < self.count).then_some(bucket)
    }

    /// The parts of `[from, to)` in each bucket.
    pub fn cut(&self, from: i64, to: i64, mut each: impl FnMut(usize, i64)) {
        let (from, to) = (from.max(self.start_ns), to.min(self.end_ns));
        if from >= to {
            return;
        }
        let Some(mut bucket) = self.bucket(from) else { return };
        let mut at = from;
        while at < to && bucket < self.count {
            let end = self.at(bucket + 1).min(to);
            each(bucket, end - at);
            at = end;
            bucket += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXTENT: Extent = Extent { first_ns: 100, end_ns: 1_100 };

    #[test]
    fn buckets_stand_still_when_one_pans() {
        let all = Grid::covering([100, 1_100], EXTENT, 10);
        assert_eq!(all, Grid { start_ns: 100, bucket_ns: 128, count: 8, end_ns: 1_100 });
        // 300 ns in at most 10 buckets: 32 ns would need 11 at some places, since they begin at multiples.
        let part = Grid::covering([250, 550], EXTENT, 10);
        assert_eq!((part.bucket_ns, part.start_ns), (48, 244));
        let panned = Grid::covering([260, 560], EXTENT, 10);
        assert_eq!((panned.bucket_ns, panned.start_ns), (48, 244));
        assert_eq!(Grid::covering([5, 5], EXTENT, 10).count, 1);
        assert_eq!(Grid::covering([i64::MIN, i64::MAX], EXTENT, 1).bucket_ns, 1_024);
    }

    #[test]
    fn spans_are_cut_at_borders() {
        let grid = Grid::plain(100, 10, 3);
        let mut parts = Vec::new();
        grid.cut(95, 115, |bucket, ns| parts.push((bucket, ns)));
        grid.cut(128, 200, |bucket, ns| parts.push((bucket, ns)));
        grid.cut(130, 131, |bucket, ns| parts.push((bucket, ns)));
        assert_eq!(parts, [(0, 10), (1, 5), (2, 2)]);
        assert_eq!(
            (grid.bucket(99), grid.bucket(100), grid.bucket(129), grid.bucket(130)),
            (None, Some(0), Some(2), None)
        );
    }
}
