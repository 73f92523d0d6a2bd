//! Everything that was seen.

use super::fanotify::{Listeners, Target};
use super::inside::Inside;
use super::processes::{self, Snapshot};
use super::tracers::Tracers;
use super::waits::Waits;
use crate::who::timeline::Timeline;
use std::time::Duration;

/// Processes whose CPU time is followed.
const MOST_FOLLOWED: usize = 16;

/// Everything that was seen.
#[derive(Debug, Default)]
pub(super) struct Watched {
    pub(super) took: Duration,
    /// CPU time of watching.
    pub(super) cost_ns: Option<u64>,
    pub(super) waits: Waits,
    pub(super) listeners: Listeners,
    pub(super) tracers: Tracers,
    pub(super) before: Snapshot,
    pub(super) after: Snapshot,
    pub(super) target: Target,
    /// Time that the probe's thread was ready and had no processor.
    pub(super) queue_ns: Option<u64>,
    pub(super) inside: Inside,
    pub(super) timeline: Timeline,
}

impl Watched {
    /// Whose CPU time is to be followed: those that must answer, those that trace, and products.
    pub(super) fn candidates(&self, products: &[(u32, String)]) -> Vec<(u32, String)> {
        let listeners = self.listeners.found.iter().map(|((pid, _), one)| (*pid, one.name.clone()));
        let tracers = self.tracers.ptrace.iter().map(|(pid, name)| (*pid, name.clone()));
        let mut all: Vec<(u32, String)> = listeners.chain(tracers).chain(products.iter().cloned()).collect();
        all.sort_unstable();
        all.dedup_by_key(|(pid, _)| *pid);
        all.truncate(MOST_FOLLOWED);
        all
    }

    pub(super) fn follow(&mut self, all: &[(u32, String)], at: Duration) {
        let at = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
        for (pid, name) in all {
            if let Some(cpu) = processes::cpu_ns(*pid) {
                // What it did until it was found.
                if let Some(then) = self.before.0.get(pid).filter(|_| !self.timeline.follows(*pid)) {
                    self.timeline.add(*pid, name, 0, then.cpu_ns);
                }
                self.timeline.add(*pid, name, at, cpu);
            }
        }
    }
}
