//! Time of callbacks without the callbacks that run inside them.

use foldhash::HashMap;

/// A callback that returned, with all that lie inside it.
#[derive(Clone, Copy, Debug)]
struct Span {
    start_ns: i64,
    ns: i64,
}

/// Callbacks that returned and may lie inside one that has not, by thread and in order of their beginning.
#[derive(Debug, Default)]
pub(super) struct Nested {
    threads: HashMap<u32, Vec<Span>>,
}

/// Callbacks remembered of a thread. The begin of a callback need not be recorded, so nobody knows whether one is under way
/// that all of them lie in.
const MOST: usize = 1024;

impl Nested {
    /// The time of a callback that returns now, without those of its thread that began after it: a thread returns from the inner
    /// ones first.
    pub(super) fn exclusive_ns(&mut self, utid: u32, start_ns: i64, ns: i64) -> i64 {
        let spans = self.threads.entry(utid).or_default();
        let outside = spans.partition_point(|span| span.start_ns < start_ns);
        let inside = spans.drain(outside..).fold(0i64, |sum, span| sum.saturating_add(span.ns));
        if spans.len() >= MOST {
            // The older half in pairs: a callback that begins within a pair keeps the time of the pair's second one.
            let young = spans.split_off(MOST / 2);
            let pairs = spans.chunks(2).filter_map(|pair| {
                let ns = pair.iter().fold(0i64, |sum, span| sum.saturating_add(span.ns));
                pair.first().map(|first| Span { start_ns: first.start_ns, ns })
            });
            let merged: Vec<Span> = pairs.chain(young).collect();
            *spans = merged;
        }
        spans.push(Span { start_ns, ns });
        ns.saturating_sub(inside).max(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_callbacks_are_taken_off_once() {
        let mut nested = Nested::default();
        // Of another thread, at the same time.
        assert_eq!(nested.exclusive_ns(2, 20, 30), 30);
        // Before the outer one, then two inside it, one of which has one inside.
        assert_eq!(nested.exclusive_ns(1, 0, 10), 10);
        assert_eq!(nested.exclusive_ns(1, 20, 5), 5);
        assert_eq!(nested.exclusive_ns(1, 32, 4), 4);
        assert_eq!(nested.exclusive_ns(1, 30, 10), 6);
        assert_eq!(nested.exclusive_ns(1, 10, 50), 35);
        // The next one begins where it ended.
        assert_eq!(nested.exclusive_ns(1, 60, 7), 7);
        assert_eq!(nested.exclusive_ns(1, 0, 100), 33);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut nested = Nested::default();
        let count = 100 * MOST as i64;
        for n in 0..count {
            assert_eq!(nested.exclusive_ns(1, 10 + 10 * n, 4), 4);
        }
        assert!(nested.threads.values().all(|spans| spans.len() <= MOST));
        assert_eq!(nested.exclusive_ns(1, 10, 10 * count), 6 * count);
    }
}
