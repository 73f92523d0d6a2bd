//! What is kept of buffers that are no longer looked at, while a file is followed.

use super::index::BufferEntry;
use crate::abi::buffer::TYPE_HEADER;
use std::collections::{BTreeMap, BTreeSet};

/// A stretch of a processor in which records may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// System-wide processor index.
    pub cpu: u16,
    /// Last timestamp of the buffer before, in ticks; `i64::MIN` if there is none.
    pub from_ticks: i64,
    /// First timestamp of the buffer behind, in ticks; `i64::MAX` if there is none.
    pub to_ticks: i64,
}

/// Gaps that are remembered; of more than these the oldest are forgotten.
const MOST_GAPS: usize = 1 << 14;

/// Whole numbers as ranges, both ends included.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges(Vec<(i64, i64)>);

impl Ranges {
    /// Adds a number. Numbers that come nearly in order cost nothing.
    pub(crate) fn add(&mut self, number: i64) {
        let at = self.0.partition_point(|range| range.1 < number.saturating_sub(1));
        match self.0.get_mut(at) {
            Some(range) if range.0 <= number.saturating_add(1) => {
                range.0 = range.0.min(number);
                range.1 = range.1.max(number);
                let (end, next) = (range.1, self.0.get(at + 1).copied());
                if let Some(next) = next.filter(|next| next.0 <= end.saturating_add(1)) {
                    self.0.remove(at + 1);
                    if let Some(range) = self.0.get_mut(at) {
                        range.1 = range.1.max(next.1);
                    }
                }
            }
            _ => self.0.insert(at, (number, number)),
        }
    }

    /// Adds all numbers from the first to the last.
    pub(crate) fn fill(&mut self, first: i64, last: i64) {
        if first > last {
            return;
        }
        let apart =
            |range: &(i64, i64)| range.1 < first.saturating_sub(1) || range.0 > last.saturating_add(1);
        let joined = self.0.iter().filter(|range| !apart(range));
        let all = joined.fold((first, last), |all, range| (all.0.min(range.0), all.1.max(range.1)));
        self.0.retain(apart);
        let at = self.0.partition_point(|range| range.1 < all.0);
        self.0.insert(at, all);
    }

    /// The ranges in their order.
    pub(crate) fn all(&self) -> &[(i64, i64)] {
        &self.0
    }

    /// How many numbers there are.
    pub(crate) fn count(&self) -> i64 {
        let sizes = self.0.iter().map(|range| range.1.saturating_sub(range.0).saturating_add(1));
        sizes.fold(0, i64::saturating_add)
    }
}

/// The last forgotten buffer of each segment and processor.
pub(super) type LastBuffers = BTreeMap<(u16, u16), PastBuffer>;

/// The last buffer of a processor that is past.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PastBuffer {
    pub(crate) sequence: i64,
    pub(crate) flags: u16,
    pub(crate) last_ticks: i64,
}

/// What was learnt of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Past {
    /// How many.
    pub(crate) buffers: u64,
    /// How many of them were compressed.
    pub(crate) compressed: u64,
    /// Processors that wrote them.
    pub(crate) cpus: BTreeSet<u16>,
    /// Sequence numbers by session.
    pub(crate) sequences: BTreeMap<u16, Ranges>,
    /// The last one by session and processor.
    pub(crate) last: LastBuffers,
    /// Where records are missing between them.
    gaps: Vec<Gap>,
}

impl Past {
    /// Takes note of a buffer; buffers of a processor come in the order of their numbers.
    pub(crate) fn add(&mut self, entry: &BufferEntry) {
        self.buffers += 1;
        self.compressed += u64::from(entry.is_compressed());
        self.cpus.insert(entry.cpu);
        if entry.kind != TYPE_HEADER {
            self.sequences.entry(entry.segment).or_default().add(entry.sequence);
        }
    }

    /// Remembers a gap.
    pub(crate) fn add_gap(&mut self, gap: Gap) {
        if self.gaps.len() >= MOST_GAPS {
            self.gaps.drain(..MOST_GAPS / 2);
        }
        self.gaps.push(gap);
    }

    /// The gaps that are remembered.
    pub(crate) fn gaps(&self) -> &[Gap] {
        &self.gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_any_order_become_ranges() {
        let mut ranges = Ranges::default();
        for number in [5, 1, 2, 9, 4, 3, 3, 8, -1, i64::MAX, i64::MIN] {
            ranges.add(number);
        }
        assert_eq!(ranges.all(), [(i64::MIN, i64::MIN), (-1, -1), (1, 5), (8, 9), (i64::MAX, i64::MAX)]);
        assert_eq!(ranges.count(), 10);
        ranges.fill(4, 7);
        ranges.fill(3, 2);
        assert_eq!(ranges.all(), [(i64::MIN, i64::MIN), (-1, -1), (1, 9), (i64::MAX, i64::MAX)]);
    }
}
