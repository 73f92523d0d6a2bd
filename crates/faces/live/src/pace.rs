//! How often a window is looked at: never more than half of one processor is used.

use crate::watch::Range;
use std::time::{Duration, Instant};

/// Ranges are not looked at more often.
const LEAST: Duration = Duration::from_secs(1);
/// The last seconds, and the window while it is no longer than they are.
const LEAST_LAST: Duration = Duration::from_millis(500);
/// The machine that is looked at must not suffer: half of a processor at most, of which looks at the last seconds take half.
const MOST: f64 = 0.5;
const MOST_LAST: f64 = 0.25;

/// Decides when a range is looked at next.
#[derive(Debug, Default)]
pub struct Pace {
    last: Turn,
    whole: Turn,
}

/// When a range was looked at, and what that cost.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    next: Option<Instant>,
    /// Share of a processor that looks take.
    share: f64,
}

impl Pace {
    /// The first looks may begin at once.
    pub fn new() -> Pace {
        Pace::default()
    }

    /// How long to wait until the next look at a range; zero if it may begin.
    pub fn left(&self, range: Range) -> Duration {
        let turn = if range == Range::Last { &self.last } else { &self.whole };
        turn.next.map_or(Duration::ZERO, |next| next.saturating_duration_since(Instant::now()))
    }

    /// A look that began at `begin` cost so much.
    pub fn done(&mut self, range: Range, begin: Instant, cost: Duration) {
        let turn = match range {
            Range::Last => Turn::after(begin, cost, LEAST_LAST, MOST_LAST),
            Range::Whole => {
                let least = if self.last.next.is_some() { LEAST } else { LEAST_LAST };
                Turn::after(begin, cost, least, MOST - self.last.share)
            }
        };
        *(if range == Range::Last { &mut self.last } else { &mut self.whole }) = turn;
    }
}

impl Turn {
    fn after(begin: Instant, cost: Duration, least: Duration, most: f64) -> Turn {
        let every = interval(cost, least, most);
        Turn { next: Some(begin + every), share: cost.as_secs_f64() / every.as_secs_f64() }
    }
}

/// From the begin of a look to that of the next one.
fn interval(cost: Duration, least: Duration, most: f64) -> Duration {
    least.max(cost.div_f64(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_half_of_a_processor() {
        for (last, whole) in [(20, 50), (150, 3_500), (600, 20_000)] {
            let (mut pace, begin) = (Pace::new(), Instant::now());
            pace.done(Range::Last, begin, Duration::from_millis(last));
            pace.done(Range::Whole, begin, Duration::from_millis(whole));
            assert!(pace.last.share <= MOST_LAST + 1e-9, "{pace:?}");
            assert!(pace.last.share + pace.whole.share <= MOST + 1e-9, "{pace:?}");
        }
        assert_eq!(interval(Duration::from_millis(20), LEAST, MOST), LEAST);
        assert_eq!(interval(Duration::from_secs(4), LEAST, MOST), Duration::from_secs(8));
    }
}
