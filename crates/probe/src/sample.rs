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
    pub fn of(measure: impl Into<String>) -> Case {
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
    /// Half of the operations took at most this; absent where single operations were not timed.
    pub p50_ns: Option<u64>,
    /// 95 % took at most this.
    pub p95_ns: Option<u64>,
    /// 99 %.
    pub p99_ns: Option<u64>,
    /// The slowest.
    pub max_ns: Option<u64>,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde hands it over so
fn is_false(value: &bool) -> bool {
    !*value
}

/// How long single operations took.
#[derive(Clone, Debug, Default)]
pub struct Laps {
    ns: Vec<u64>,
}

/// Operations of one sample whose times are kept one by one; later ones are left out of the percentiles.
const MOST_LAPS: usize = 1_000_000;

impl Laps {
    /// One operation.
    pub fn push(&mut self, ns: u64) {
        if self.ns.len() < MOST_LAPS {
            self.ns.push(ns);
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ns.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.ns.is_empty()
    }

    /// The times as they were, in order.
    pub fn all(&self) -> &[u64] {
        &self.ns
    }

    /// Nearest-rank percentiles, for shares from 0 to 1; absent if there are no laps.
    pub fn percentiles<const N: usize>(&self, shares: [f64; N]) -> [Option<u64>; N] {
        let mut sorted = self.ns.clone();
        sorted.sort_unstable();
        shares.map(|share| {
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
}
