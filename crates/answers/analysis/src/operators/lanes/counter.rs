//! Levels: counters that are read now and then, settings that change.
//!
//! A bucket's level is the last one that was told before the bucket's end; before the first one there is none.

use super::Grid;

/// A level over time.
#[derive(Clone, Debug, Default)]
pub struct Counter {
    points: Vec<(i64, f64)>,
}

impl Counter {
    /// From moments and levels.
    pub fn new(mut points: Vec<(i64, f64)>) -> Counter {
        points.sort_by_key(|(ts, _)| *ts);
        Counter { points }
    }

    /// The level in each bucket.
    pub fn draw(&self, grid: &Grid) -> Vec<(u32, f64)> {
        let mut at = self.points.partition_point(|(ts, _)| *ts < grid.start_ns);
        let mut level = at.checked_sub(1).and_then(|before| self.points.get(before)).map(|(_, value)| *value);
        let mut out = Vec::new();
        for bucket in 0..grid.count {
            let end = grid.at(bucket + 1);
            while let Some((ts, value)) = self.points.get(at)
                && *ts < end
            {
                level = Some(*value);
                at += 1;
            }
            if let Some(level) = level {
                out.push((u32::try_from(bucket).unwrap_or(u32::MAX), level));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_level_holds() {
        let counter = Counter::new(vec![(25, 3.0), (12, 1.0), (21, 2.0)]);
        let grid = Grid::plain(0, 10, 5);
        assert_eq!(counter.draw(&grid), [(1, 1.0), (2, 3.0), (3, 3.0), (4, 3.0)]);
        let late = Grid::plain(30, 10, 1);
        assert_eq!(counter.draw(&late), [(0, 3.0)]);
    }
}
