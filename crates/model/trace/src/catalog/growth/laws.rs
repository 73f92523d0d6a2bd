//! What growth laws are made of, as the pass sees it: calls with their costs, and samples. They are added up on a thread of their own.

use super::samples::Samples;
use super::series::{AllSeries, Operation};
use crate::owner::Owner;
use etwhy_base::aside::Work;

/// What the laws are made of.
pub(super) enum Seen {
    /// A call with what it cost: its duration, or its time on a processor and, where that is its own work, its duration.
    Timed { of: (Operation, Owner), ns: i64, cost: Option<i64>, wall: Option<i64>, size: u64 },
    /// A call that has no duration.
    Call { operation: Operation, upid: u32, ns: i64 },
    /// A sample of a thread that was neither idle nor interrupted.
    Sample { ns: i64, utid: u32, upid: Option<u32>, ticket: i32, weight_ns: i64 },
}

#[derive(Default)]
pub(super) struct Laws {
    pub(super) series: AllSeries,
    pub(super) samples: Samples,
}

impl Work for Laws {
    type Batch = Vec<Seen>;

    fn work(&mut self, batch: &mut Vec<Seen>) {
        batch.drain(..).for_each(|seen| self.see(seen));
    }
}

impl Laws {
    pub(super) fn see(&mut self, seen: Seen) {
        match seen {
            Seen::Timed { of: (operation, owner), ns, cost, wall, size } => {
                let Some((_, series)) = self.series.get_or_add(operation, owner) else { return };
                series.bins.add(ns, cost, size);
                if let Some(sizes) = &mut series.sizes {
                    sizes.add(ns, cost, size);
                }
                if wall.is_some() {
                    series.walls.get_or_insert_default().add(ns, wall, 0);
                }
            }
            Seen::Call { operation, upid, ns } => {
                let Some((number, series)) = self.series.get_or_add(operation, Owner::Process(upid)) else {
                    return;
                };
                let since = series.last_ns.replace(ns).map(|last| ns.saturating_sub(last));
                series.bins.add(ns, since, 0);
                self.samples.call(upid, number);
            }
            Seen::Sample { ns, utid, upid, ticket, weight_ns } => {
                self.samples.add(ns, utid, upid, ticket, weight_ns);
            }
        }
    }
}
