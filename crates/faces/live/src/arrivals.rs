//! How far a trace is complete while it is written.
//!
//! Each processor fills its own buffer, and nobody knows what stands in those that were not written yet. What every processor has
//! written past is complete; a processor that has nothing to say holds that up, so what is older than `slack` counts as complete too:
//! sessions that are followed flush their buffers once a second.

use etwhy_etl::read::{EtlFile, Timeline};
use std::collections::HashMap;

/// A buffer that ends so much later than all that has come is believed when a second one does.
const LEAP_NS: i64 = 3_600_000_000_000;
/// The same at the end of files whose sessions did not close them, when no second one can come.
const LAST_LEAP_NS: i64 = 24 * LEAP_NS;

/// The latest time that is believed. One record with a wrong time would move the window to where nothing is, for good; a machine that slept
/// writes more than one buffer when it is awake.
#[derive(Debug, Default)]
struct Newest {
    at: Option<i64>,
    /// A time far behind it that one buffer alone has.
    leap: Option<i64>,
}

impl Newest {
    /// Takes note of the last time of a buffer.
    fn take(&mut self, last: i64, is_far: &impl Fn(i64, i64) -> bool) {
        let Some(at) = self.at else {
            self.at = Some(last);
            return;
        };
        if !is_far(at, last) {
            self.at = Some(at.max(last));
            return;
        }
        let Some(other) = self.leap.replace(last) else { return };
        let (earlier, later) = (other.min(last), other.max(last));
        let at = at.max(earlier);
        (self.at, self.leap) =
            if is_far(at, later) { (Some(at), Some(later)) } else { (Some(at.max(later)), None) };
    }

    /// The latest time up to a limit, also of one buffer alone.
    fn up_to(&self, limit: i64) -> Option<i64> {
        let leap = self.leap.filter(|leap| *leap <= limit);
        self.at.max(leap)
    }
}

/// What has arrived.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// Order key of the last record of each processor of a file.
    last: HashMap<(u16, u16), i64>,
    /// The latest of them.
    newest: Newest,
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
            self.newest.take(last, &|at, last| is_far(timeline, at, last));
            // What is not believed yet is not complete either.
            let last = self.newest.at.map_or(last, |newest| last.min(newest));
            let own = self.last.entry((number, entry.cpu)).or_insert(last);
            *own = last.max(*own);
            if first < complete {
                self.late += 1;
                let by = timeline.key_to_ns(complete).saturating_sub(timeline.key_to_ns(first));
                self.latest_ns = self.latest_ns.max(by);
            }
            self.too_late += u64::from(first < window);
        }
    }

    /// The latest record when no more will come. `closed_ns`: when the sessions ended, if they said so, since the start of the trace.
    pub(crate) fn newest_of_all(&self, closed_ns: Option<i64>, timeline: &Timeline) -> Option<i64> {
        let at_ns = timeline.key_to_ns(self.newest.at?);
        let limit = closed_ns.map_or(at_ns.saturating_add(LAST_LEAP_NS), |ns| ns.saturating_add(LEAP_NS));
        self.newest.up_to(timeline.ns_to_key(limit))
    }

    /// A buffer holds a time behind this order key, which nobody believes.
    pub(crate) fn leaps_behind(&self, key: i64) -> bool {
        self.newest.leap.is_some_and(|leap| leap > key)
    }

    /// Everything before this order key has arrived, as far as one can know.
    pub(crate) fn complete(&self, processors: usize, timeline: &Timeline, slack_ns: i64) -> Option<i64> {
        let newest = self.newest.at?;
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
        self.newest = Newest::default();
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

fn is_far(timeline: &Timeline, at: i64, last: i64) -> bool {
    timeline.key_to_ns(last).saturating_sub(timeline.key_to_ns(at)) > LEAP_NS
}

#[cfg(test)]
mod tests {
    use super::Newest;

    fn after(times: &[i64]) -> Newest {
        let mut newest = Newest::default();
        times.iter().for_each(|time| newest.take(*time, &|at, last| last.saturating_sub(at) > 100));
        newest
    }

    #[test]
    fn one_buffer_with_a_wrong_time_moves_nothing() {
        for wrong in [i64::MAX, 1 << 62, 500] {
            let newest = after(&[10, 20, wrong, 30, 25, 40]);
            assert_eq!((newest.at, newest.leap), (Some(40), Some(wrong)));
            // Its session may have ended then, or long before.
            assert_eq!((newest.up_to(i64::MAX), newest.up_to(60)), (Some(wrong), Some(40)));
        }
        assert_eq!(after(&[]).up_to(i64::MAX), None);
    }

    #[test]
    fn a_machine_that_slept_is_believed_with_its_second_buffer() {
        assert_eq!(after(&[10, 20, 5_000]).at, Some(20));
        let awake = after(&[10, 20, 5_000, 5_010]);
        assert_eq!((awake.at, awake.leap), (Some(5_010), None));
        // A wrong time before it is still one.
        let both = after(&[10, i64::MAX, 5_000, 5_010]);
        assert_eq!((both.at, both.leap), (Some(5_010), Some(i64::MAX)));
        // One that the others have reached meanwhile takes nothing back.
        assert_eq!(after(&[10, 150, 90, 140, 200, 400]).at, Some(200));
    }
}
