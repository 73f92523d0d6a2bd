//! How far a trace is complete while it is written.
//!
//! Each processor fills its own buffer, and nobody knows what stands in those that were not written yet. What every processor has
//! written past is complete; a processor that has nothing to say holds that up, so what is older than `slack` counts as complete too:
//! sessions that are followed flush their buffers once a second.

use etwhy_etl::read::{EtlFile, Timeline};
use std::collections::HashMap;

/// What has arrived.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// Order key of the last record of each processor of a file.
    last: HashMap<(u16, u16), i64>,
    /// The latest of them.
    newest: Option<i64>,
    /// Buffers that began before what was complete already.
    pub(crate) late: u64,
    /// How long before that the worst of them began, in nanoseconds.
    pub(crate) latest_ns: i64,
    /// Buffers that began before the window.
    pub(crate) too_late: u64,
}

impl Arrivals {
    /// Takes note of the last `count` buffers of a file.
    pub(crate) fn came(
        &mut self,
        file: (u16, &EtlFile),
        count: usize,
        timeline: &Timeline,
        marks: (i64, i64),
    ) {
        let (number, file) = file;
        let (complete, window) = marks;
        let from = file.buffers().len().saturating_sub(count);
        for entry in file.buffers().iter().skip(from) {
            let Some(first) = entry.first_ticks else { continue };
            let first = timeline.ticks_to_key(number, first);
            let last = timeline.ticks_to_key(number, file.last_of(entry)).max(first);
            let own = self.last.entry((number, entry.cpu)).or_insert(last);
            *own = last.max(*own);
            self.newest = self.newest.max(Some(last));
            if first < complete {
                self.late += 1;
                let by = timeline.key_to_ns(complete).saturating_sub(timeline.key_to_ns(first));
                self.latest_ns = self.latest_ns.max(by);
            }
            self.too_late += u64::from(first < window);
        }
    }

    /// The latest record, as an order key.
    pub(crate) fn newest(&self) -> Option<i64> {
        self.newest
    }

    /// Everything before this order key has arrived, as far as one can know.
    pub(crate) fn complete(&self, processors: usize, timeline: &Timeline, slack_ns: i64) -> Option<i64> {
        let newest = self.newest?;
        let patience = timeline.ns_to_key(timeline.key_to_ns(newest).saturating_sub(slack_ns));
        Some(self.passed_by_all(processors).map_or(patience, |all| all.max(patience)))
    }
}

impl Arrivals {
    /// Every processor has written past this order key; `None` if some have written nothing yet.
    pub(crate) fn passed_by_all(&self, processors: usize) -> Option<i64> {
        if self.last.len() < processors { None } else { self.last.values().min().copied() }
    }

    /// Nothing has come, but what was late stays counted.
    pub(crate) fn begin_again(&mut self) {
        self.last.clear();
        self.newest = None;
    }

    /// Order key of the last record of a file.
    pub(crate) fn end_of(&self, number: u16) -> Option<i64> {
        self.last.iter().filter(|((file, _), _)| *file == number).map(|(_, key)| *key).max()
    }

    /// Only these files are left, and are numbered anew in this order.
    pub(crate) fn renumber(&mut self, kept: &[u16]) {
        let new = |file: u16| kept.iter().position(|&old| old == file).and_then(|at| u16::try_from(at).ok());
        let last = std::mem::take(&mut self.last).into_iter();
        self.last = last.filter_map(|((file, cpu), key)| Some(((new(file)?, cpu), key))).collect();
    }
}
