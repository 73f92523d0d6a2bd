//! Profiles: stacks, threads and what happened to them over time, in the formats of other programs.
//!
//! A [`ProfileFormat`] is one file in `profiles/`. It gets a [`Profile`]: the tables, what to leave out of them, and the
//! weights that stacks carry. Weights come from outside, because what can be added up along stacks is not for this crate
//! to say.

mod column;
mod events;
mod format;
mod people;
mod stacks;
#[cfg(test)]
pub(crate) mod test_profile;
mod weights;

pub(crate) use column::row;
pub(crate) use events::{EVENTS, Event, EventKind, Events, Shown};
pub use format::{ProfileFormat, ProfilePart, profile_formats, write_profile};
pub(crate) use people::People;
#[cfg(test)]
pub(crate) use people::{Process, Thread};
pub(crate) use stacks::{Frame, Stacks};
pub use weights::{At, EachWeight, INTERRUPTS, Weight, Weights};
pub(crate) use weights::{Key, Sum, sums};

use etwhy_table::Database;
use etwhy_trace::catalog::trace::TraceRow;
use std::cell::Cell;
use std::collections::BTreeSet;

/// What to leave out.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// First moment, nanoseconds since the start of the trace.
    pub from_ns: Option<i64>,
    /// End.
    pub to_ns: Option<i64>,
    /// Whether each process (`upid`) is wanted; `None`: all are.
    pub processes: Option<Vec<bool>>,
    /// Whether each thread (`utid`) is wanted; `None`: all are.
    pub threads: Option<Vec<bool>>,
    /// Whether the idle threads are wanted.
    pub idle: bool,
}

/// What a format writes.
pub struct Profile<'a> {
    /// The tables.
    pub db: &'a Database,
    /// What to leave out of them.
    pub scope: Scope,
    /// What stacks weigh, for formats that are made of that.
    pub weights: Vec<Weights<'a>>,
    /// Parts that are not wanted, by name.
    pub without: BTreeSet<String>,
    /// Weights without a time that were left out, because a stretch of time was asked for.
    pub untimed: Cell<u64>,
}

impl<'a> Profile<'a> {
    /// All of `db`.
    pub fn new(db: &'a Database) -> Profile<'a> {
        let (scope, weights) = (Scope::default(), Vec::new());
        Profile { db, scope, weights, without: BTreeSet::new(), untimed: Cell::new(0) }
    }

    /// Whether a part is wanted.
    pub(crate) fn has(&self, part: &str) -> bool {
        !self.without.contains(part)
    }

    /// Whether a moment lies in the stretch that is wanted.
    pub(crate) fn is_in_time(&self, ts_ns: i64) -> bool {
        let Scope { from_ns, to_ns, .. } = &self.scope;
        from_ns.is_none_or(|from| ts_ns >= from) && to_ns.is_none_or(|to| ts_ns < to)
    }

    /// Whether something of this process and thread is asked for. What belongs to nobody is, unless somebody was chosen.
    pub(crate) fn is_asked(&self, upid: Option<u32>, utid: Option<u32>) -> bool {
        let on = |list: &Option<Vec<bool>>, id: Option<u32>| match list {
            None => true,
            Some(wanted) => id.and_then(|id| wanted.get(id as usize)).copied().unwrap_or(false),
        };
        on(&self.scope.processes, upid) && on(&self.scope.threads, utid)
    }

    /// Whether time of this process and thread is wanted: as [`Profile::is_asked`], but for idle threads.
    pub(crate) fn is_of(&self, people: &People, upid: Option<u32>, utid: Option<u32>) -> bool {
        self.is_asked(upid, utid) && (self.scope.idle || !people.is_idle(upid))
    }

    /// Hands over the weights of one kind that are wanted.
    pub(crate) fn each_weight(&self, weights: &Weights<'_>, people: &People, give: &mut dyn FnMut(Weight)) {
        let any_time = self.scope.from_ns.is_none() && self.scope.to_ns.is_none();
        (weights.each)(&mut |weight: Weight| {
            let in_time = any_time
                || weight.ts_ns.map_or_else(
                    || {
                        self.untimed.set(self.untimed.get().saturating_add(1));
                        false
                    },
                    |ts| self.is_in_time(ts),
                );
            if in_time && self.is_of(people, weight.upid, weight.utid) {
                give(weight);
            }
        });
    }

    /// First and last moment of the trace, or of the stretch that is wanted.
    pub(crate) fn range(&self) -> (i64, i64) {
        let trace = self.db.read_or_empty::<TraceRow>();
        let from = trace.iter().map(|row| row.first_ns()).min().unwrap_or(0).min(0);
        let to = trace.iter().map(|row| row.last_ns()).max().unwrap_or(0);
        let Scope { from_ns, to_ns, .. } = &self.scope;
        (from_ns.unwrap_or(from).max(from), to_ns.unwrap_or(to).min(to).max(from))
    }

    /// Start of the trace, nanoseconds since 1970 UTC.
    pub(crate) fn start_unix_ns(&self) -> i64 {
        self.db.read_or_empty::<TraceRow>().iter().map(|row| row.start_unix_ns()).min().unwrap_or(0)
    }

    /// Interval of CPU samples, 1 ms where it is not known.
    pub(crate) fn sample_interval_ns(&self) -> i64 {
        let trace = self.db.read_or_empty::<TraceRow>();
        let interval = trace.iter().find_map(|row| row.sample_interval_ns());
        interval.filter(|ns| *ns > 0).unwrap_or(1_000_000)
    }
}
