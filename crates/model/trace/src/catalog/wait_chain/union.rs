//! Length of a union of intervals that come nearly in the order of their ends.

/// Intervals, joined where they touch.
#[derive(Debug, Default)]
pub(super) struct Union {
    /// Apart from each other, in order.
    parts: Vec<(i64, i64)>,
    /// Those that came too late to be joined at once.
    late: Vec<(i64, i64)>,
}

impl Union {
    /// Adds an interval.
    pub fn add(&mut self, mut from: i64, to: i64) {
        if to <= from {
            return;
        }
        let mut end = to;
        while let Some(&(last_from, last_to)) = self.parts.last() {
            if from > last_to {
                break;
            }
            if end < last_from {
                // It belongs further back.
                self.late.push((from, end));
                return;
            }
            (from, end) = (from.min(last_from), end.max(last_to));
            self.parts.pop();
        }
        self.parts.push((from, end));
    }

    /// Adds all of another.
    pub fn merge(&mut self, other: Union) {
        if self.parts.is_empty() && self.late.is_empty() {
            *self = other;
            return;
        }
        self.late.extend(other.parts);
        self.late.extend(other.late);
    }

    /// The time that at least one interval covers.
    pub fn length(mut self) -> i64 {
        if !self.late.is_empty() {
            self.parts.append(&mut self.late);
            self.parts.sort_unstable();
        }
        let (mut sum, mut until) = (0i64, i64::MIN);
        for (from, to) in self.parts {
            sum = sum.saturating_add(to.saturating_sub(from.max(until)).max(0));
            until = until.max(to);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(intervals: &[(i64, i64)]) -> Union {
        let mut union = Union::default();
        intervals.iter().for_each(|&(from, to)| union.add(from, to));
        union
    }

    #[test]
    fn each_moment_counts_once() {
        assert_eq!(of(&[(0, 10), (5, 15), (20, 21), (6, 7)]).length(), 16);
        // A long wait that ends last swallows the short ones.
        let long = of(&[(10, 11), (12, 13), (14, 15), (0, 20)]);
        assert_eq!((long.parts.len(), long.length()), (1, 20));
        // Late ones count too.
        assert_eq!(of(&[(10, 20), (0, 5), (4, 9), (30, 31)]).length(), 20);
        assert_eq!(of(&[(5, 5), (7, 3)]).length(), 0);
        assert_eq!(Union::default().length(), 0);
    }

    #[test]
    fn unions_of_unions() {
        let mut all = of(&[(0, 10), (30, 40)]);
        all.merge(of(&[(5, 15)]));
        all.merge(of(&[(100, 101)]));
        assert_eq!(all.length(), 26);
        let mut empty = Union::default();
        empty.merge(of(&[(1, 2)]));
        assert_eq!(empty.length(), 1);
    }
}
