//! What is measured: rows of `probe_run`.

use serde::{Deserialize, Serialize};

/// What a sample is a sample of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// What was done: `open`, `read 4 KB`, `create`.
    pub measure: String,
    /// Under which conditions: `first run`, `second run`, `10 watchers`; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub variant: String,
    /// Size, where the probe has one: files in the folder, calls before this one, threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<f64>,
}

impl Case {
    /// A case without conditions.
    pub fn new(measure: impl Into<String>) -> Case {
        Case { measure: measure.into(), ..Case::default() }
    }

    /// Under these conditions.
    pub fn when(mut self, variant: impl Into<String>) -> Case {
        self.variant = variant.into();
        self
    }

    /// Of this size.
    pub fn at(mut self, n: f64) -> Case {
        self.n = Some(n);
        self
    }
}

/// One measurement: some operations of one kind, done one after the other.
///
/// Times are of the threads that did the work, added up. What the system does not tell is absent, never 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Of what.
    #[serde(flatten)]
    pub case: Case,
    /// Round: samples of one round were taken close to each other; 0 is the first. A later round repeats everything.
    pub round: u32,
    /// When it began, since the probe's start, nanoseconds.
    pub start_ns: u64,
    /// Operations.
    pub operations: u64,
    /// Operations that failed as they may (a file that is denied); they are part of `operations`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: u64,
    /// The figure that is compared: what one operation took, in `unit`, unless the probe says otherwise.
    pub value: f64,
    /// Unit of `value`: `ns` or what the probe's manual says.
    pub unit: String,
    /// True if more is better (operations per second); otherwise less is.
    #[serde(default, skip_serializing_if = "is_false")]
    pub more_is_better: bool,
    /// Time on the clock.
    pub wall_ns: u64,
    /// CPU time, user and kernel.
    pub cpu_ns: Option<u64>,
    /// Time that threads were ready and had no processor.
    pub queue_ns: Option<u64>,
    /// Time that threads waited for something else: wall − CPU − queue, of one thread.
    pub blocked_ns: Option<u64>,
    /// Times that a thread gave up its processor to wait.
    pub waits: Option<u64>,
    /// CPU time that others took meanwhile who are proven or likely to work for these operations (the suspects of the result); absent
    /// where it was not measured by operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_cpu_ns: Option<u64>,
    /// From its beginning to the moment when it was kept, with what the probe did between operations.
    #[serde(skip)]
    pub span_ns: u64,
    /// Half of the operations took at most this; absent where single operations were not timed.
    pub p50_ns: Option<u64>,
    /// 95 % took at most this.
    pub p95_ns: Option<u64>,
    /// 99 %.
    pub p99_ns: Option<u64>,
    /// The slowest.
    pub max_ns: Option<u64>,
    /// True if the percentiles are of another quantity than `value`, such as time on the clock beside CPU time: then the typical value
    /// is `value` alone.
    #[serde(default, skip_serializing_if = "is_false")]
    pub percentiles_apart: bool,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde hands it over so
fn is_false(value: &bool) -> bool {
    !*value
}

/// How long single operations took.
#[derive(Clone, Debug)]
pub struct Laps {
    /// Of each `every` operations the first.
    ns: Vec<u64>,
    every: u64,
    count: u64,
    sum: u64,
    max: Option<u64>,
}

impl Default for Laps {
    fn default() -> Laps {
        Laps { ns: Vec::new(), every: 1, count: 0, sum: 0, max: None }
    }
}

/// Times that are kept one by one. If there are more operations, then percentiles are of every second, fourth, … of them, so that the end
/// of a sample counts as much as its beginning. Count, sum and the slowest are of all.
const MOST_LAPS: usize = 1 << 20;

impl Laps {
    /// One operation.
    pub fn push(&mut self, ns: u64) {
        if self.count.is_multiple_of(self.every) {
            if self.ns.len() >= MOST_LAPS {
                self.thin();
            }
            // The first that is left out of a full list is the first of the wider ones.
            self.ns.push(ns);
        }
        self.count = self.count.saturating_add(1);
        self.sum = self.sum.saturating_add(ns);
        self.max = self.max.max(Some(ns));
    }

    /// Adds those of another thread. Of both the same share is kept.
    pub fn join(&mut self, mut other: Laps) {
        while self.every < other.every {
            self.thin();
        }
        while other.every < self.every {
            other.thin();
        }
        self.ns.append(&mut other.ns);
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
        while self.ns.len() > MOST_LAPS {
            self.thin();
        }
    }

    /// Drops every second time.
    fn thin(&mut self) {
        let mut at = 0_usize;
        self.ns.retain(|_| {
            at += 1;
            at % 2 == 1
        });
        self.every = self.every.saturating_mul(2);
    }

    /// How many operations there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// What all of them took together.
    pub fn sum_ns(&self) -> u64 {
        self.sum
    }

    /// Nearest-rank percentiles, for shares from 0 to 1, where 1 is the slowest of all; absent if there are no laps.
    pub fn percentiles<const N: usize>(&self, shares: [f64; N]) -> [Option<u64>; N] {
        let mut sorted = self.ns.clone();
        sorted.sort_unstable();
        shares.map(|share| {
            if share >= 1.0 {
                return self.max;
            }
            let rank = (share * sorted.len() as f64).ceil() as usize;
            sorted.get(rank.saturating_sub(1)).copied()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_rank() {
        let mut laps = Laps::default();
        assert_eq!(laps.percentiles([0.5]), [None]);
        for ns in [15, 20, 35, 40, 50] {
            laps.push(ns);
        }
        // The worked example of the nearest-rank method: 30 % of five is the second, 40 % too, 50 % the third.
        assert_eq!(
            laps.percentiles([0.3, 0.4, 0.5, 0.95, 1.0]),
            [Some(20), Some(20), Some(35), Some(50), Some(50)]
        );
    }

    #[test]
    fn of_more_than_are_kept_the_last_count_as_well() {
        let mut laps = Laps::default();
        // The first half takes 1 ns, the second 3 ns, the last of all 9 ns.
        let half = MOST_LAPS as u64 * 3 / 2;
        (0..half).for_each(|_| laps.push(1));
        (1..half).for_each(|_| laps.push(3));
        laps.push(9);
        assert_eq!((laps.count(), laps.sum_ns()), (2 * half, 4 * half + 6));
        assert!(laps.ns.len() <= MOST_LAPS);
        assert_eq!(laps.percentiles([0.49, 0.51, 1.0]), [Some(1), Some(3), Some(9)]);
    }

    #[test]
    fn threads_count_by_their_operations() {
        let of = |operations: usize, ns: u64| {
            let mut laps = Laps::default();
            (0..operations).for_each(|_| laps.push(ns));
            laps
        };
        // Ten threads: four quick ones come first and fill the list on their own.
        let mut all = Laps::default();
        (0..4).for_each(|_| all.join(of(MOST_LAPS, 1)));
        (0..4).for_each(|_| all.join(of(MOST_LAPS, 2)));
        all.join(of(2 * MOST_LAPS, 7));
        assert_eq!(all.count(), 10 * MOST_LAPS as u64);
        assert!(all.ns.len() <= MOST_LAPS);
        assert_eq!(all.percentiles([0.39, 0.41, 0.79, 0.81, 1.0]), [1, 2, 2, 7, 7].map(Some));
    }
}
