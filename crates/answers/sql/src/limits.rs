//! What a query may use up: steps, time, memory.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Limits of one query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Instructions of SQLite's machine, rounded up to 1000; a row of a table costs about ten. The same query over the same tables takes the
    /// same number on every machine.
    pub steps: Option<u64>,
    /// Time.
    pub time: Option<Duration>,
    /// Bytes of one value or row: functions that make long texts out of nothing, and those whose time grows with the square of the
    /// length, end there.
    pub value_bytes: i32,
    /// Bytes of a pattern of `LIKE` or `GLOB`: comparing takes as many steps as pattern and text have bytes, multiplied, and nothing ends it.
    pub pattern_bytes: i32,
    /// Bytes of all values of the result.
    pub result_bytes: Option<usize>,
}

impl Limits {
    /// Somebody who waits at his own terminal and can end it.
    pub const OWNER: Limits =
        Limits { steps: None, time: None, value_bytes: 256 << 20, pattern_bytes: 50_000, result_bytes: None };

    /// A finding or a view, which may have been written by others. A table of 100 million rows may be read twenty times.
    pub const FINDING: Limits = Limits {
        steps: Some(20_000_000_000),
        time: Some(Duration::from_secs(300)),
        value_bytes: 1 << 20,
        pattern_bytes: 256,
        result_bytes: Some(64 << 20),
    };

    /// A question of a page.
    pub const PAGE: Limits = Limits {
        steps: None,
        time: Some(Duration::from_secs(120)),
        value_bytes: 1 << 20,
        pattern_bytes: 256,
        result_bytes: Some(64 << 20),
    };

    /// A file that a page asks for.
    pub const FILE: Limits =
        Limits { result_bytes: Some(512 << 20), time: Some(Duration::from_secs(600)), ..Limits::PAGE };
}

/// Most memory that SQLite takes in this process.
pub const HEAP_BYTES: i64 = 2 << 30;

/// What functions of ours keep in this process: SQLite does not know of it.
pub static HELD: Held = Held::at_most(HEAP_BYTES as usize);

/// Bytes that are kept, at most so many.
#[derive(Debug)]
pub struct Held {
    used: AtomicUsize,
    most: usize,
}

impl Held {
    /// So many.
    pub const fn at_most(most: usize) -> Held {
        Held { used: AtomicUsize::new(0), most }
    }

    /// The part of somebody who keeps nothing yet.
    pub fn nothing(&self) -> Share<'_> {
        Share { of: self, bytes: 0 }
    }
}

/// A part of what is kept; it is given back when it goes.
#[derive(Debug)]
pub struct Share<'h> {
    of: &'h Held,
    bytes: usize,
}

impl Share<'_> {
    /// Keeps more.
    ///
    /// # Errors
    /// In words, if all together keep more than they may.
    pub fn more(&mut self, bytes: usize) -> Result<(), String> {
        let before = self.of.used.fetch_add(bytes, Ordering::Relaxed);
        self.bytes = self.bytes.saturating_add(bytes);
        let most = self.of.most;
        if before.saturating_add(bytes) > most {
            return Err(format!(
                "the query keeps more than {most} bytes of values in memory; ask for a shorter time or for fewer groups"
            ));
        }
        Ok(())
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.of.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Steps between two looks at the budget.
pub const STRIDE: i32 = 1000;

/// What is left of the limits while a query runs.
#[derive(Clone, Debug, Default)]
pub struct Budget(Arc<State>);

#[derive(Debug, Default)]
struct State {
    used: AtomicU64,
    /// Somebody no longer waits.
    interrupted: AtomicBool,
    now: Mutex<Now>,
}

#[derive(Debug, Default)]
struct Now {
    limits: Option<Limits>,
    ends: Option<Instant>,
    exceeded: Option<String>,
}

impl Budget {
    fn now(&self) -> std::sync::MutexGuard<'_, Now> {
        self.0.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a query.
    pub fn begin(&self, limits: &Limits) {
        self.0.used.store(0, Ordering::Relaxed);
        self.0.interrupted.store(false, Ordering::Relaxed);
        let ends = limits.time.and_then(|time| Instant::now().checked_add(time));
        *self.now() = Now { limits: Some(*limits), ends, exceeded: None };
    }

    /// Ends the query that runs.
    pub fn interrupt(&self) {
        self.0.interrupted.store(true, Ordering::Relaxed);
    }

    /// Called every [`STRIDE`] steps of SQLite, and for each batch by the kernel; true ends the query.
    pub fn spent(&self, steps: u64) -> bool {
        let used = self.0.used.fetch_add(steps, Ordering::Relaxed);
        if self.0.interrupted.load(Ordering::Relaxed) {
            return true;
        }
        let mut now = self.now();
        let Some(limits) = now.limits else { return false };
        let exceeded = match (limits.steps, now.ends) {
            (Some(most), _) if used >= most => Some(format!("it took more than {most} steps")),
            (_, Some(ends)) if Instant::now() >= ends => {
                let seconds = limits.time.unwrap_or_default().as_secs();
                Some(format!("it took more than {seconds} s"))
            }
            _ => None,
        };
        let over = exceeded.is_some();
        if over {
            now.exceeded = exceeded;
        }
        over
    }

    /// Which limit ended the query, if one did.
    pub fn exceeded(&self) -> Option<String> {
        self.now().exceeded.take()
    }
}

#[cfg(test)]
mod tests {
    use super::Held;

    #[test]
    fn what_all_keep_together_is_limited_and_given_back() {
        let held = Held::at_most(100);
        let (mut one, mut other) = (held.nothing(), held.nothing());
        assert!(one.more(60).is_ok() && other.more(40).is_ok());
        assert!(one.more(1).unwrap_err().contains("100 bytes"));
        drop(one);
        assert!(other.more(60).is_ok() && other.more(1).is_err());
    }
}
