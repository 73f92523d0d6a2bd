//! Where buffers of a file are missing, as far as sequence numbers tell.

use super::file::EtlFile;
use super::index::BufferEntry;
use super::tokens::Tokenizer;
use crate::Ledger;
use crate::abi::buffer::{FLAG_BUFFER_LOST, FLAG_EVENTS_LOST, LEN, TYPE_HEADER};
use std::collections::BTreeMap;

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

impl EtlFile {
    /// Stretches in which records of a processor may be missing.
    ///
    /// Sequence numbers are given out over all processors, so that a missing number may have been any
    /// processor's whose neighbouring buffers enclose it: each of them gets a gap. Buffers that are marked as
    /// having lost events, or as following a lost buffer, make one too. Files that were circular lose their
    /// beginning, which makes no gap.
    pub fn gaps(&self) -> Vec<Gap> {
        let mut gaps = Vec::new();
        for segment in 0..self.segments().len() {
            let mut buffers: Vec<&BufferEntry> = self
                .buffers()
                .iter()
                .filter(|b| usize::from(b.segment) == segment && b.kind != TYPE_HEADER)
                .collect();
            buffers.sort_by_key(|b| (b.sequence, b.offset));
            let missing: Vec<i64> = buffers
                .windows(2)
                .filter_map(|pair| match pair {
                    [a, b] if b.sequence > a.sequence.saturating_add(1) => Some(a.sequence),
                    _ => None,
                })
                .collect();
            // A number is missing somewhere behind `a` and before `b`.
            let between = |a: i64, b: i64| {
                let first = missing.partition_point(|&m| m < a);
                missing.get(first).is_some_and(|&m| m < b)
            };
            let mut last: BTreeMap<u16, &BufferEntry> = BTreeMap::new();
            for &buffer in &buffers {
                let Some(first) = buffer.first_ticks else { continue };
                let before = last.insert(buffer.cpu, buffer);
                let lost = match before {
                    Some(before) => {
                        between(before.sequence, buffer.sequence)
                            || before.flags & FLAG_EVENTS_LOST != 0
                            || buffer.flags & FLAG_BUFFER_LOST != 0
                    }
                    None => between(i64::MIN, buffer.sequence),
                };
                if lost {
                    let from_ticks = before.map_or(i64::MIN, |b| self.last_ticks(b).min(first));
                    gaps.push(Gap { cpu: buffer.cpu, from_ticks, to_ticks: first });
                }
            }
            for buffer in last.into_values() {
                let lost = between(buffer.sequence, i64::MAX) || buffer.flags & FLAG_EVENTS_LOST != 0;
                if lost {
                    let from_ticks = self.last_ticks(buffer);
                    gaps.push(Gap { cpu: buffer.cpu, from_ticks, to_ticks: i64::MAX });
                }
            }
        }
        gaps
    }

    /// Timestamp of the last record of a buffer; of one that lost records while it was filled, of the first.
    fn last_ticks(&self, entry: &BufferEntry) -> i64 {
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
