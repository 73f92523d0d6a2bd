//! How long findings may take, all of them together: a query that is slow on some trace must not keep the others from being asked.

use etwhy_sql::Limits;
use etwhy_table::Database;
use std::time::{Duration, Instant};

/// All findings together, on a small trace.
const AT_LEAST: Duration = Duration::from_secs(60);
/// And this for so many rows of tables.
const FOR_ROWS: (u64, Duration) = (500_000, Duration::from_secs(1));
/// What each finding has even when nothing is left: most take a few milliseconds.
const LEAST_TURN: Duration = Duration::from_millis(250);

/// The time of all findings, and what is left of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    all: Duration,
    left: Duration,
}

/// The time of one finding, with all its queries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    begin: Instant,
    time: Duration,
    all: Duration,
}

impl Patience {
    /// For findings over these tables.
    pub fn with(db: &Database) -> Patience {
        let rows: u64 = db.tables().map(|table| table.rows() as u64).fold(0, u64::saturating_add);
        let (each, time) = FOR_ROWS;
        let seconds = time.as_secs().saturating_mul(rows / each);
        let all = AT_LEAST.saturating_add(Duration::from_secs(seconds));
        Patience { all, left: all }
    }

    /// The next finding has half of what is left, so that something is left for those behind it.
    pub fn turn(&self) -> Turn {
        Turn { begin: Instant::now(), time: (self.left / 2).max(LEAST_TURN), all: self.all }
    }

    /// A finding has been asked.
    pub fn is_spent_by(&mut self, turn: &Turn) {
        self.left = self.left.saturating_sub(turn.begin.elapsed());
    }
}

impl Turn {
    /// Of a finding that is asked alone.
    pub fn alone() -> Turn {
        let time = Limits::FINDING.time.unwrap_or(AT_LEAST);
        Turn { begin: Instant::now(), time, all: time }
    }

    /// For its next query.
    pub fn limits(&self) -> Limits {
        let left = self.time.saturating_sub(self.begin.elapsed());
        Limits { time: Some(Limits::FINDING.time.map_or(left, |most| most.min(left))), ..Limits::FINDING }
    }

    /// Why its query has no answer, if that is its time.
    pub fn is_over(&self) -> Option<String> {
        (self.begin.elapsed() >= self.time).then(|| {
            let seconds = |time: Duration| time.as_millis().div_ceil(1000);
            format!(
                "its query took too long: more than the {} s that it has of the {} s of all findings",
                seconds(self.time),
                seconds(self.all)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_findings_behind_a_slow_one_have_time_left() {
        let mut patience = Patience::with(&Database::new());
        assert_eq!(patience.turn().time, Duration::from_secs(30));
        let Some(begin) = Instant::now().checked_sub(Duration::from_secs(30)) else { return };
        let slow = Turn { begin, ..patience.turn() };
        assert!(slow.is_over().is_some_and(|why| why.contains("30 s that it has of the 60 s")));
        assert!(slow.limits().time == Some(Duration::ZERO) && patience.turn().is_over().is_none());
        patience.is_spent_by(&slow);
        assert!(patience.turn().time <= Duration::from_secs(15));
        patience.is_spent_by(&slow);
        assert_eq!(patience.turn().time, LEAST_TURN);
        assert_eq!(Turn::alone().time, Duration::from_secs(300));
    }
}
