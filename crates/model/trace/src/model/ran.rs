//! The latest runs of each processor: who had it while a thread was ready.

use super::switch::Switch;
use std::collections::VecDeque;

/// Runs of a processor that are remembered: seconds, also of short ones.
const MAX_RUNS: usize = 1024;

/// A run that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    /// Thread that ran.
    pub utid: u32,
    /// It is the idle thread.
    pub idle: bool,
    /// When it began, ns.
    pub from: i64,
    /// When it ended, ns.
    pub to: i64,
    /// What DPCs and ISRs took of it, ns.
    pub interrupted: i64,
    /// Routine that took most of that.
    pub routine: Option<u64>,
}

impl Ran {
    /// The run that a context switch ends, if its begin is known.
    pub fn ended_by(switch: &Switch, ns: i64) -> Option<Ran> {
        let run = switch.old_run?;
        Some(Ran {
            utid: switch.old_utid,
            idle: switch.old_tid == 0,
            from: run.since_ns,
            to: ns,
            interrupted: run.interrupted_ns,
            routine: run.routine,
        })
    }

    /// The part of a time range that the run had: its own time, and that of interrupts (as much of all as of the run).
    fn shared(&self, from: i64, to: i64) -> (i64, i64) {
        let part = self.to.min(to).saturating_sub(self.from.max(from)).max(0);
        let whole = self.to.saturating_sub(self.from).max(1);
        let interrupted = i128::from(self.interrupted) * i128::from(part) / i128::from(whole);
        let interrupted = i64::try_from(interrupted).unwrap_or(0).clamp(0, part);
        (part - interrupted, interrupted)
    }
}

/// Latest runs of each processor, in time order.
#[derive(Default)]
pub(crate) struct LatestRuns(Vec<VecDeque<Ran>>);

impl LatestRuns {
    /// Takes over the run that a context switch has ended.
    pub fn switch(&mut self, cpu: u16, ns: i64, switch: &Switch) {
        if let Some(run) = Ran::ended_by(switch, ns) {
            self.push(cpu, run);
        }
    }

    /// Takes over a run that has ended.
    pub fn push(&mut self, cpu: u16, run: Ran) {
        let cpu = usize::from(cpu);
        if self.0.len() <= cpu {
            self.0.resize_with(cpu + 1, VecDeque::new);
        }
        let Some(ran) = self.0.get_mut(cpu) else { return };
        if ran.len() >= MAX_RUNS {
            ran.pop_front();
        }
        ran.push_back(run);
    }

    /// The runs that had a processor in a time range that ends now, latest first: each with its own time in the range and that of interrupts.
    pub fn during(&self, cpu: u16, from: i64, to: i64) -> impl Iterator<Item = (Ran, i64, i64)> {
        let ran = self.0.get(usize::from(cpu)).into_iter().flat_map(|ran| ran.iter().rev());
        ran.take_while(move |run| run.to > from).map(move |run| {
            let (own, interrupted) = run.shared(from, to);
            (*run, own, interrupted)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::switch::Run;

    #[test]
    fn a_run_has_what_it_shares_with_the_time_in_the_queue() {
        let run = Ran { utid: 1, idle: false, from: 100, to: 200, interrupted: 40, routine: Some(7) };
        assert_eq!(run.shared(0, 1_000), (60, 40));
        assert_eq!(run.shared(150, 1_000), (30, 20));
        assert_eq!(run.shared(200, 1_000), (0, 0));
        let wrong = Ran { interrupted: i64::MAX, ..run };
        assert_eq!(wrong.shared(100, 150), (0, 50));
    }

    #[test]
    fn runs_are_those_of_the_range_latest_first() {
        let mut runs = LatestRuns::default();
        for n in 0..3_000 {
            let run = Run { since_ns: n * 10, run_ns: 10, interrupted_ns: 0, routine: None };
            let switch = Switch { old_utid: n as u32, old_tid: 5, old_run: Some(run), ..Switch::default() };
            runs.switch(3, n * 10 + 10, &switch);
        }
        let during: Vec<_> = runs.during(3, 29_975, 30_000).map(|(run, own, _)| (run.utid, own)).collect();
        assert_eq!(during, [(2_999, 10), (2_998, 10), (2_997, 5)]);
        assert_eq!(runs.during(3, 0, 30_000).count(), MAX_RUNS);
        assert_eq!(runs.during(4, 0, 30_000).count(), 0);
    }
}
