//! How far a trace is complete while it is written.
//!
//! Each processor fills its own buffer, and nobody knows what stands in those that were not written yet. What every processor has
//! written past is complete; a processor that has nothing to say holds that up, so what is older than `slack` counts as complete too:
//! sessions that are followed flush their buffers once a second.

use etwhy_base::time::unix_ns;
use etwhy_etl::read::{EtlFile, Timeline};
use std::collections::{BTreeSet, HashMap, VecDeque};

/// A buffer that ends so much later than all that has come is doubted.
const LEAP_NS: i64 = 3_600_000_000_000;
/// The same at the end of files whose sessions did not close them, when no others can come.
const LAST_LEAP_NS: i64 = 24 * LEAP_NS;
/// Of the last `RECENT` buffers, `AGREE` must agree before a leap is believed.
const RECENT: usize = 8;
const AGREE: usize = 5;
/// Doubtful times that are remembered.
const MOST_DOUBTED: usize = 64;

/// The latest time that is believed. Records with wrong times would move the window to where nothing is, for good: damage may give
/// several buffers the same wrong time. Of a machine that slept, all that comes has later times once it is awake, from more than one
/// of its processors.
#[derive(Debug, Default)]
struct Newest {
    at: Option<i64>,
    /// Times far behind it that few buffers have, in order.
    doubted: Vec<i64>,
    /// The buffers that came since the first of those: their processor, and their time if it is far behind.
    recent: VecDeque<(u16, Option<i64>)>,
}

impl Newest {
    /// Takes note of the last time of a buffer of a processor; nothing later than `limit` is believed, as its session was over then.
    fn take(
        &mut self,
        (cpu, last): (u16, i64),
        processors: usize,
        limit: i64,
        is_far: &impl Fn(i64, i64) -> bool,
    ) {
        if last > limit {
            self.doubt(last);
            return;
        }
        let Some(at) = self.at else {
            self.at = Some(last);
            return;
        };
        let far = is_far(at, last);
        if far {
            self.doubt(last);
        } else {
            self.at = Some(at.max(last));
        }
        if far || !self.recent.is_empty() {
            self.recent.push_back((cpu, far.then_some(last)));
        }
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
        let Some(believed) = self.believed(processors, is_far) else { return };
        self.at = Some(believed);
        self.doubted.retain(|doubted| *doubted > believed);
        self.recent.clear();
    }

    /// The latest of the times that most buffers agree on.
    fn believed(&self, processors: usize, is_far: &impl Fn(i64, i64) -> bool) -> Option<i64> {
        let far = || self.recent.iter().filter_map(|(cpu, time)| Some((*cpu, (*time)?)));
        let agree = |(_, first): (u16, i64)| {
            let own = || far().filter(move |(_, time)| *time >= first && !is_far(first, *time));
            let cpus: BTreeSet<u16> = own().map(|(cpu, _)| cpu).collect();
            let is_most = own().count() >= AGREE && cpus.len() >= processors.min(2);
            own().map(|(_, time)| time).max().filter(|_| is_most)
        };
        // Or all of them are far behind, each where it may: buffers may come hours apart, and one processor may be the only busy one.
        let alone = || far().map(|(_, time)| time).min().filter(|_| far().count() == RECENT);
        far().filter_map(agree).min().or_else(alone)
    }

    fn doubt(&mut self, time: i64) {
        let at = self.doubted.partition_point(|doubted| *doubted < time);
        self.doubted.insert(at, time);
        // The latest are the least likely.
        self.doubted.truncate(MOST_DOUBTED);
    }

    /// The latest time up to a limit, also one that few buffers have.
    fn up_to(&self, limit: i64) -> Option<i64> {
        let doubted = self.doubted.iter().rfind(|doubted| **doubted <= limit);
        self.at.max(doubted.copied())
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
    /// Buffers that began before the last seconds, and not before the window.
    pub(crate) late_for_last: u64,
}

/// Order keys before which buffers come late.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks {
    /// Tables were given up to here.
    pub(crate) complete: i64,
    /// Trackers have seen everything before the window.
    pub(crate) window: i64,
    /// The same before the last seconds of it.
    pub(crate) last: i64,
}

impl Arrivals {
    /// Takes note of the last `count` buffers of a file.
    pub(crate) fn came(&mut self, file: (u16, &EtlFile), count: usize, timeline: &Timeline, marks: Marks) {
        let (number, file) = file;
        let Marks { complete, window, last: before_last } = marks;
        let from = file.buffers().len().saturating_sub(count);
        let header = file.header();
        let limit = match header.end_time {
            0 => i64::MAX,
            end => {
                let end_ns = unix_ns(end).saturating_sub(timeline.start_unix_ns());
                timeline.ns_to_key(end_ns.saturating_add(LEAP_NS))
            }
        };
        for entry in file.buffers().iter().skip(from) {
            let Some(first) = entry.first_ticks else { continue };
            let first = timeline.ticks_to_key(number, first);
            let last = timeline.ticks_to_key(number, file.last_of(entry)).max(first);
            let processors = header.processors as usize;
            let is_far = |at, last| is_far(timeline, at, last);
            self.newest.take((entry.cpu, last), processors, limit, &is_far);
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
            self.late_for_last += u64::from(first >= window && first < before_last);
        }
    }

    /// The latest record when no more will come. `closed_ns`: when the sessions ended, if they said so, since the start of the trace.
    pub(crate) fn newest_of_all(&self, closed_ns: Option<i64>, timeline: &Timeline) -> Option<i64> {
        let at_ns = timeline.key_to_ns(self.newest.at?);
        let limit = closed_ns.map_or(at_ns.saturating_add(LAST_LEAP_NS), |ns| ns.saturating_add(LEAP_NS));
        self.newest.up_to(timeline.ns_to_key(limit))
    }

    /// How many buffers hold a time behind this order key, which nobody believes.
    pub(crate) fn leaps_behind(&self, key: i64) -> u64 {
        self.newest.doubted.iter().filter(|doubted| **doubted > key).count() as u64
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
    use super::{MOST_DOUBTED, Newest};

    /// After buffers with these times of a machine with some processors, which write in turn.
    fn after(times: &[i64], processors: u16, limit: i64) -> Newest {
        let mut newest = Newest::default();
        let is_far = |at: i64, last: i64| last.saturating_sub(at) > 100;
        for (number, time) in times.iter().enumerate() {
            let cpu = u16::try_from(number).unwrap() % processors;
            newest.take((cpu, *time), processors.into(), limit, &is_far);
        }
        newest
    }

    #[test]
    fn buffers_with_a_wrong_time_move_nothing() {
        for wrong in [i64::MAX, 1 << 62, 500] {
            // Two and more that confirm each other too, of one processor or of several, while others write what is right.
            for (count, processors) in [(1, 2), (2, 1), (2, 2), (4, 2), (4, 8)] {
                let mut times = vec![10, 20];
                times.extend(vec![wrong; count]);
                times.extend([30, 25, 40, 41, 42]);
                let newest = after(&times, processors, i64::MAX);
                assert_eq!((newest.at, newest.doubted.len()), (Some(42), count));
                // Its session may have ended then, or long before.
                assert_eq!((newest.up_to(i64::MAX), newest.up_to(60)), (Some(wrong), Some(42)));
            }
        }
        // Nothing was written after the end of the session.
        let newest = after(&[10, 20, 500, 501, 502, 503, 504, 505, 506, 30], 2, 300);
        assert_eq!((newest.at, newest.doubted.len()), (Some(30), 7));
        // Of one processor among several, however many.
        let one: Vec<i64> = (0..50).flat_map(|n| [20 + n, 500 + n]).collect();
        let newest = after(&one, 2, i64::MAX);
        assert_eq!((newest.at, newest.doubted.len()), (Some(69), 50));
        let many: Vec<i64> = (0..1_000).flat_map(|n| [20, 500 + n]).collect();
        assert_eq!(after(&many, 2, i64::MAX).doubted.len(), MOST_DOUBTED);
        assert_eq!(after(&[], 1, i64::MAX).up_to(i64::MAX), None);
    }

    #[test]
    fn a_machine_that_slept_is_believed_when_most_buffers_say_so() {
        let awake = [10, 20, 5_000, 5_010, 5_020, 5_030];
        for processors in [1, 2, 8] {
            assert_eq!(after(&awake, processors, i64::MAX).at, Some(20));
            let newest = after(&[&awake[..], &[5_040, 5_035]].concat(), processors, i64::MAX);
            assert_eq!((newest.at, newest.doubted.len()), (Some(5_040), 0));
        }
        // One processor alone, and buffers that come hours apart.
        let alone: Vec<i64> = (0..10).map(|n| 5_000 + 1_000 * n).collect();
        assert_eq!(after(&[&[10, 20], &alone[..]].concat(), 64, i64::MAX).at, Some(5_000));
        // Buffers from before may still come, and a wrong time among the others is still one.
        let both = after(&[10, i64::MAX, 20, 5_000, 5_010, 25, 5_020, 5_030, 5_040], 2, i64::MAX);
        assert_eq!((both.at, &both.doubted[..]), (Some(5_040), &[i64::MAX][..]));
        // One that the others have reached meanwhile takes nothing back.
        assert_eq!(after(&[10, 150, 90, 140, 200, 400], 2, i64::MAX).at, Some(200));
    }
}
