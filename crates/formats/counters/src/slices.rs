//! Counters over time, in slices that grow with the log.

/// The most slices.
pub const MOST: i64 = 128;

const SECOND: i64 = 1_000_000_000;

/// The slices of all counters: their length doubles whenever the log gets too long for [`MOST`] of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Grid {
    level: u32,
    range: Option<(i64, i64)>,
}

impl Grid {
    /// Length of a slice in nanoseconds.
    pub fn width(&self) -> i64 {
        SECOND << self.level
    }

    /// Makes room for a time, and gives the number of its slice.
    #[inline]
    pub fn slice(&mut self, utc_ns: i64) -> i64 {
        let mut slice = utc_ns.div_euclid(self.width());
        match &mut self.range {
            Some((first, last)) if (*first..=*last).contains(&slice) => {}
            _ => {
                let (mut first, mut last) = self.range.unwrap_or((slice, slice));
                (first, last) = (first.min(slice), last.max(slice));
                // Times are below 2^63 ns, so that slices of 2^28 seconds are enough.
                while last - first >= MOST && self.level < 33 {
                    self.level += 1;
                    (first, last, slice) = (first.div_euclid(2), last.div_euclid(2), slice.div_euclid(2));
                }
                self.range = Some((first, last));
            }
        }
        slice
    }
}

/// Sums over a slice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slice {
    /// Number of the slice: time divided by its length.
    pub number: i64,
    /// Values.
    pub count: u32,
    /// Their sum.
    pub sum: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Slice {
    fn join(&mut self, other: &Slice) {
        self.count = self.count.saturating_add(other.count);
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}

/// The slices of one counter, in ascending order.
#[derive(Clone, Debug, Default)]
pub struct Slices {
    level: u32,
    slices: Vec<Slice>,
}

impl Slices {
    /// Adds a value to a slice of the grid.
    #[inline]
    pub fn add(&mut self, grid: &Grid, number: i64, value: f64) {
        if self.level != grid.level {
            self.coarsen(grid);
        }
        let fresh = Slice { number, count: 1, sum: value, min: value, max: value };
        match self.slices.last_mut() {
            Some(last) if last.number == number => last.join(&fresh),
            Some(last) if last.number > number => {
                match self.slices.binary_search_by_key(&number, |s| s.number) {
                    Ok(at) => {
                        if let Some(slice) = self.slices.get_mut(at) {
                            slice.join(&fresh);
                        }
                    }
                    Err(at) => self.slices.insert(at, fresh),
                }
            }
            _ => self.slices.push(fresh),
        }
    }

    /// Joins slices until they are as long as the grid's.
    fn coarsen(&mut self, grid: &Grid) {
        let shift = grid.level.saturating_sub(self.level);
        self.level = grid.level;
        let mut joined: Vec<Slice> = Vec::with_capacity(self.slices.len() / 2 + 1);
        for slice in &self.slices {
            let slice = Slice { number: slice.number >> shift.min(62), ..*slice };
            match joined.last_mut() {
                Some(last) if last.number == slice.number => last.join(&slice),
                _ => joined.push(slice),
            }
        }
        self.slices = joined;
    }

    /// The slices, as long as the grid's.
    pub fn finish(&mut self, grid: &Grid) -> &[Slice] {
        if self.level != grid.level {
            self.coarsen(grid);
        }
        &self.slices
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(times_s: impl Iterator<Item = i64>) -> (Grid, Slices) {
        let (mut grid, mut slices) = (Grid::default(), Slices::default());
        for time in times_s {
            let number = grid.slice(time * SECOND);
            slices.add(&grid, number, time as f64);
        }
        slices.finish(&grid);
        (grid, slices)
    }

    #[test]
    fn short_logs_have_a_slice_for_each_second() {
        let (grid, slices) = filled(1000..1100);
        assert_eq!((grid.width(), slices.slices.len()), (SECOND, 100));
        assert_eq!(slices.slices[7], Slice { number: 1007, count: 1, sum: 1007.0, min: 1007.0, max: 1007.0 });
    }

    #[test]
    fn long_logs_have_longer_slices_and_lose_nothing() {
        let (grid, slices) = filled((0..86_400).map(|n| 1_000_000 + n));
        assert!(slices.slices.len() <= MOST as usize && slices.slices.len() >= MOST as usize / 2 - 1);
        assert_eq!(slices.slices.iter().map(|s| s.count).sum::<u32>(), 86_400);
        let wanted: f64 = (0..86_400).map(|n| f64::from(1_000_000 + n)).sum();
        assert_eq!(slices.slices.iter().map(|s| s.sum).sum::<f64>(), wanted);
        for slice in &slices.slices {
            let width = grid.width() / SECOND;
            assert!(
                slice.min >= (slice.number * width) as f64 && slice.max < ((slice.number + 1) * width) as f64
            );
        }
    }

    #[test]
    fn times_may_go_back_and_far() {
        let (_, slices) = filled([5, 3, 4, 3, 100_000, 2, -50_000].into_iter());
        assert!(slices.slices.is_sorted_by_key(|s| s.number));
        assert_eq!(slices.slices.iter().map(|s| s.count).sum::<u32>(), 7);
        let mut grid = Grid::default();
        for time in [0, i64::MAX, i64::MIN, 1] {
            grid.slice(time);
        }
    }
}
