//! CPU time of processes over time, so that it can be told what they did while an operation was measured.

use super::suspect::{LIKELY, PROVEN, Suspect};
use crate::sample::Sample;
use std::collections::BTreeMap;
use std::time::Instant;

/// Part of the CPU time of suspects that must have been followed, for figures of single operations to be worth anything.
const MOST_OF_IT: f64 = 0.9;

/// What the clock of processes may leave out at both ends: a tick of 10 ms each (`USER_HZ`).
const TICKS_NS: u64 = 20_000_000;

/// One process: its CPU time at some moments.
#[derive(Clone, Debug, Default, PartialEq)]
struct Line {
    name: String,
    /// Time since the start, CPU time.
    points: Vec<(u64, u64)>,
}

impl Line {
    fn add(&mut self, at_ns: u64, cpu_ns: u64) {
        // Of a time without work its two ends are enough.
        if let [.., (_, before), last] = self.points.as_mut_slice()
            && *before == cpu_ns
            && last.1 == cpu_ns
        {
            last.0 = at_ns;
            return;
        }
        self.points.push((at_ns, cpu_ns));
    }

    /// CPU time until then; between two looks it is taken to have run evenly.
    fn until(&self, at_ns: u64) -> f64 {
        let next = self.points.partition_point(|(at, _)| *at < at_ns);
        let before = next.checked_sub(1).and_then(|at| self.points.get(at));
        match (before, self.points.get(next)) {
            (Some((from, low)), Some((to, high))) if to > from => {
                let part = at_ns.saturating_sub(*from) as f64 / (to - from) as f64;
                *low as f64 + part * high.saturating_sub(*low) as f64
            }
            (Some((_, cpu)), _) | (None, Some((_, cpu))) => *cpu as f64,
            (None, None) => 0.0,
        }
    }

    fn within(&self, from_ns: u64, to_ns: u64) -> f64 {
        (self.until(to_ns) - self.until(from_ns)).max(0.0)
    }
}

/// CPU time of the processes that may work for a probe.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    start: Option<Instant>,
    lines: BTreeMap<u32, Line>,
}

impl Timeline {
    /// Begins; times of [`Timeline::add`] count from here.
    pub fn starting(start: Instant) -> Timeline {
        Timeline { start: Some(start), lines: BTreeMap::new() }
    }

    /// Whether something is known of a process.
    pub fn follows(&self, process: u32) -> bool {
        self.lines.contains_key(&process)
    }

    /// The CPU time of a process at a moment.
    pub fn add(&mut self, process: u32, name: &str, at_ns: u64, cpu_ns: u64) {
        let line = self.lines.entry(process).or_default();
        if line.name.is_empty() {
            name.clone_into(&mut line.name);
        }
        line.add(at_ns, cpu_ns);
    }

    /// Says of each sample what the accused among `suspects` did meanwhile. If they were not followed, nothing is said. `start`: from where
    /// samples count.
    pub fn fill(&self, samples: &mut [Sample], start: Instant, suspects: &[Suspect]) {
        let accused: Vec<&Suspect> = suspects
            .iter()
            .filter(|one| one.confidence == PROVEN || one.confidence == LIKELY)
            .filter(|one| one.cpu_ns.unwrap_or(0) > 0)
            .collect();
        let all = accused.iter().filter_map(|one| one.cpu_ns).fold(0, u64::saturating_add);
        let Some(ours) = self.start else { return };
        if all == 0 {
            samples.iter_mut().for_each(|sample| sample.others_cpu_ns = Some(0));
            return;
        }
        let lines: Vec<&Line> = self
            .lines
            .iter()
            .filter(|(process, line)| {
                accused.iter().any(|one| one.process == Some(**process) || one.name == line.name)
            })
            .map(|(_, line)| line)
            .collect();
        let followed: f64 = lines.iter().map(|line| line.within(0, u64::MAX)).sum();
        if followed + (TICKS_NS as f64) < MOST_OF_IT * all as f64 {
            return;
        }
        let ahead = u64::try_from(start.saturating_duration_since(ours).as_nanos()).unwrap_or(u64::MAX);
        for sample in samples {
            let from = ahead.saturating_add(sample.start_ns);
            let to = from.saturating_add(sample.span_ns);
            let sum: f64 = lines.iter().map(|line| line.within(from, to)).sum();
            sample.others_cpu_ns = Some(sum.round() as u64);
        }
    }
}

/// Who was seen, and what the user should know of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// The likeliest first.
    pub suspects: Vec<Suspect>,
    /// Where the probe's threads waited, and what could not be looked at: notes of a result.
    pub notes: Vec<String>,
    /// What those who may work for the probe did, over time.
    pub timeline: Timeline,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Case;

    const MS: u64 = 1_000_000;

    #[test]
    fn work_is_told_by_operation_and_not_divided() {
        let start = Instant::now();
        let mut timeline = Timeline::starting(start);
        // The scanner works from 100 to 200 ms, in which files are made, and from 300 to 340 ms, in which they are opened.
        for at in (0..=500_u64).step_by(20) {
            let cpu = at.clamp(100, 200) - 100 + (at.clamp(300, 340) - 300);
            timeline.add(7, "scannerd", at * MS, 5_000 * MS + cpu * MS);
            timeline.add(8, "innocent", at * MS, at * MS);
        }
        let sample = |measure: &str, from: u64, to: u64| Sample {
            case: Case::new(measure),
            start_ns: from * MS,
            span_ns: (to - from) * MS,
            ..Sample::default()
        };
        let mut samples = [sample("create", 100, 220), sample("open", 300, 400), sample("list", 410, 420)];
        let mut suspect = Suspect {
            name: "scannerd".into(),
            process: Some(7),
            kind: "process".into(),
            evidence: Vec::new(),
            cpu_ns: Some(140 * MS),
            blocked_ns: None,
            confidence: PROVEN.into(),
        };
        timeline.fill(&mut samples, start, std::slice::from_ref(&suspect));
        let seen: Vec<Option<u64>> = samples.iter().map(|one| one.others_cpu_ns).collect();
        assert_eq!(seen, [Some(100 * MS), Some(40 * MS), Some(0)]);
        // Most of its time was not followed: nothing is said.
        samples.iter_mut().for_each(|one| one.others_cpu_ns = None);
        suspect.cpu_ns = Some(5_000 * MS);
        timeline.fill(&mut samples, start, std::slice::from_ref(&suspect));
        assert!(samples.iter().all(|one| one.others_cpu_ns.is_none()));
        assert!(timeline.lines.values().all(|line| line.points.len() < 30));
    }
}
