//! How often a window is evaluated: never more than half of one processor is used.

use std::time::{Duration, Instant};

/// Windows are not evaluated more often.
const LEAST: Duration = Duration::from_secs(1);
/// The machine that is looked at must not suffer.
const SHARE: u32 = 2;

/// Decides when the next evaluation begins.
#[derive(Debug)]
pub struct Pace {
    next: Option<Instant>,
}

impl Pace {
    /// The first one may begin at once.
    pub fn new() -> Pace {
        Pace { next: None }
    }

    /// How long to wait until the next evaluation; zero if it may begin.
    pub fn left(&self) -> Duration {
        self.next.map_or(Duration::ZERO, |next| next.saturating_duration_since(Instant::now()))
    }

    /// An evaluation that began at `begin` is over.
    pub fn done(&mut self, begin: Instant) {
        self.next = Some(begin + interval(begin.elapsed()));
    }
}

impl Default for Pace {
    fn default() -> Pace {
        Pace::new()
    }
}

/// From the begin of an evaluation to the next one.
fn interval(cost: Duration) -> Duration {
    LEAST.max(cost * SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_half_of_a_processor() {
        assert_eq!(interval(Duration::from_millis(20)), LEAST);
        assert_eq!(interval(Duration::from_secs(4)), Duration::from_secs(8));
    }
}
