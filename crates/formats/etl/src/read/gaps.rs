//! Where buffers of a file are missing, as far as sequence numbers tell.

use super::file::EtlFile;
use super::index::BufferEntry;
use super::past::{Gap, LastBuffers, PastBuffer, Ranges};
use super::tokens::Tokenizer;
use crate::Ledger;
use crate::abi::buffer::{FLAG_BUFFER_LOST, FLAG_EVENTS_LOST, LEN, TYPE_HEADER};
use std::collections::BTreeMap;

/// The buffer before one: one that is still there, or what is kept of one that is past.
#[derive(Clone, Copy)]
enum Before<'b> {
    Here(&'b BufferEntry),
    Past(PastBuffer),
}

impl Before<'_> {
    fn sequence(&self) -> i64 {
        match self {
            Before::Here(entry) => entry.sequence,
            Before::Past(past) => past.sequence,
        }
    }

    fn flags(&self) -> u16 {
        match self {
            Before::Here(entry) => entry.flags,
            Before::Past(past) => past.flags,
        }
    }

    fn last_ticks(&self, file: &EtlFile) -> i64 {
        match self {
            Before::Here(entry) => file.last_ticks(entry),
            Before::Past(past) => past.last_ticks,
        }
    }
}

/// Numbers behind which some are missing, in their order.
struct Missing(Vec<i64>);

impl Missing {
    fn of(sequences: &Ranges) -> Missing {
        let all = sequences.all();
        Missing(all.iter().take(all.len().saturating_sub(1)).map(|range| range.1).collect())
    }

    /// A number is missing somewhere behind `a` and before `b`.
    fn between(&self, a: i64, b: i64) -> bool {
        let first = self.0.partition_point(|&m| m < a);
        self.0.get(first).is_some_and(|&m| m < b)
    }
}

impl EtlFile {
    /// Stretches in which records of a processor may be missing.
    ///
    /// Sequence numbers are given out over all processors, so that a missing number may have been any
    /// processor's whose neighbouring buffers enclose it: each of them gets a gap. Buffers that are marked as
    /// having lost events, or as following a lost buffer, make one too. What a circular file has
    /// overwritten before the first number that is left makes no gap.
    pub fn gaps(&self) -> Vec<Gap> {
        let mut gaps = self.past().gaps().to_vec();
        for segment in 0..self.segments().len() {
            let missing = Missing::of(&self.sequences(segment));
            let mut last = self.last_past(segment);
            for buffer in self.in_order(segment) {
                let before = last.insert(buffer.cpu, Before::Here(buffer));
                gaps.extend(self.gap_before(before, buffer, &missing));
            }
            for (cpu, buffer) in last {
                let lost =
                    missing.between(buffer.sequence(), i64::MAX) || buffer.flags() & FLAG_EVENTS_LOST != 0;
                if lost {
                    let from_ticks = buffer.last_ticks(self);
                    gaps.push(Gap { cpu, from_ticks, to_ticks: i64::MAX });
                }
            }
        }
        gaps
    }

    /// The buffers of a session that hold records, in the order in which they were written.
    fn in_order(&self, segment: usize) -> Vec<&BufferEntry> {
        let of_session = |b: &&BufferEntry| usize::from(b.segment) == segment && b.kind != TYPE_HEADER;
        let mut buffers: Vec<&BufferEntry> =
            self.buffers().iter().filter(of_session).filter(|b| b.first_ticks.is_some()).collect();
        buffers.sort_by_key(|b| (b.sequence, b.offset));
        buffers
    }

    fn last_past(&self, segment: usize) -> BTreeMap<u16, Before<'_>> {
        let of_session = self.past().last.iter().filter(|((of, _), _)| usize::from(*of) == segment);
        of_session.map(|((_, cpu), past)| (*cpu, Before::Past(*past))).collect()
    }

    fn gap_before(&self, before: Option<Before<'_>>, buffer: &BufferEntry, missing: &Missing) -> Option<Gap> {
        let first = buffer.first_ticks?;
        let lost = match &before {
            Some(before) => {
                missing.between(before.sequence(), buffer.sequence)
                    || before.flags() & FLAG_EVENTS_LOST != 0
                    || buffer.flags & FLAG_BUFFER_LOST != 0
            }
            None => missing.between(i64::MIN, buffer.sequence),
        };
        let from_ticks = || before.map_or(i64::MIN, |b| b.last_ticks(self).min(first));
        lost.then(|| Gap { cpu: buffer.cpu, from_ticks: from_ticks(), to_ticks: first })
    }

    /// What is known of the last buffers of each processor, and the gaps before them, once those that `is_past` holds for are
    /// forgotten.
    pub(super) fn past_chains(&self, is_past: impl Fn(&BufferEntry) -> bool) -> (Vec<Gap>, LastBuffers) {
        let (mut gaps, mut ends) = (Vec::new(), BTreeMap::new());
        for segment in 0..self.segments().len() {
            let missing = Missing::of(&self.sequences(segment));
            let mut last = self.last_past(segment);
            for buffer in self.in_order(segment).into_iter().filter(|b| is_past(b)) {
                let before = last.insert(buffer.cpu, Before::Here(buffer));
                gaps.extend(self.gap_before(before, buffer, &missing));
                ends.insert((buffer.segment, buffer.cpu), buffer);
            }
        }
        let past = |entry: &BufferEntry| PastBuffer {
            sequence: entry.sequence,
            flags: entry.flags,
            last_ticks: self.last_ticks(entry),
        };
        (gaps, ends.into_iter().map(|(of, entry)| (of, past(entry))).collect())
    }

    /// Timestamp of the last record of a buffer; of one that lost records while it was filled, of the first.
    pub(super) fn last_ticks(&self, entry: &BufferEntry) -> i64 {
        let mut last = entry.first_ticks.unwrap_or(i64::MIN);
        if entry.flags & FLAG_EVENTS_LOST != 0 {
            return last;
        }
        let (mut owned, mut packed) = (Vec::new(), Vec::new());
        let bytes = match self.mapped_buffer(entry) {
            Some(bytes) => bytes,
            None => {
                // What is wrong with the buffer is counted when its records are read.
                self.load_buffer(entry, &mut owned, &mut packed, &mut Ledger::new());
                owned.as_slice()
            }
        };
        let mut tokens = Vec::new();
        Tokenizer::new(LEN).block(bytes, usize::MAX, &mut tokens);
        for token in &tokens {
            last = last.max(token.key);
        }
        last
    }
}
