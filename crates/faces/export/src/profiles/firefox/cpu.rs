//! Samples, and what threads ran between them.

use super::timestamp;
use super::tracks::{CodeKind, Track, Tracks};
use crate::profile::{Profile, row};
use etwhy_trace::catalog::{cswitch::CSwitchRow, sample::SampleRow};
use foldhash::HashMap;
use fxprof_processed_profile as fx;

/// A run of a thread on a processor.
#[derive(Clone, Copy)]
struct Run {
    start_ns: i64,
    run_ns: i64,
    cpu_ns: i64,
    stack: Option<u32>,
}

/// A sample.
#[derive(Clone, Copy)]
struct Sample {
    ts_ns: i64,
    weight_ns: i64,
    stack: Option<u32>,
    place: CodeKind,
}

/// Adds all samples that are wanted, and CPU time by context switches.
pub(super) fn samples(profile: &Profile<'_>, tracks: &mut Tracks<'_>, made: &mut fx::Profile) {
    let mut by_track: HashMap<Track, Vec<Sample>> = HashMap::default();
    if profile.has("sample") {
        each_sample(profile, tracks, &mut |track, sample| by_track.entry(track).or_default().push(sample));
    }
    let mut runs = if profile.has("sched") { runs(profile, tracks) } else { HashMap::default() };
    let mut order: Vec<Track> = by_track.keys().copied().collect();
    order.extend(runs.keys().map(|utid| Track::Thread(*utid)).filter(|track| !by_track.contains_key(track)));
    order.sort_unstable_by_key(|track| match track {
        Track::Thread(utid) => (0, *utid),
        Track::Process(upid) => (1, *upid),
        Track::Interrupts(cpu) => (2, *cpu),
        Track::Machine => (3, 0),
    });
    for track in order {
        let samples = by_track.remove(&track).unwrap_or_default();
        let runs = if let Track::Thread(utid) = track { runs.remove(&utid) } else { None };
        let mut line =
            Line { thread: tracks.thread(track, made), stack: None, told_us: 0, cpu_ns: 0, tracks, made };
        match runs {
            Some(runs) => with_runs(&mut line, &samples, &runs, profile.sample_interval_ns()),
            None => {
                for sample in &samples {
                    line.cpu_ns = line.cpu_ns.saturating_add(sample.weight_ns);
                    line.sample(sample);
                }
            }
        }
    }
}

fn each_sample(profile: &Profile<'_>, tracks: &Tracks<'_>, give: &mut dyn FnMut(Track, Sample)) {
    // Interrupts are nobody's: asking for somebody leaves them out.
    let asked = profile.scope.processes.is_some() || profile.scope.threads.is_some();
    for sample in &profile.db.read_or_empty::<SampleRow>() {
        if !profile.is_in_time(sample.ts_ns()) {
            continue;
        }
        let utid = row(sample.utid());
        let place = match (sample.in_isr(), sample.in_dpc()) {
            (true, _) => CodeKind::Isr,
            (_, true) => CodeKind::Dpc,
            _ => CodeKind::Thread,
        };
        let track = match place {
            CodeKind::Thread if !profile.is_of(tracks.people, row(sample.upid()), utid) => continue,
            CodeKind::Thread => utid.map_or(Track::Machine, Track::Thread),
            _ if asked => continue,
            _ => Track::Interrupts(row(sample.cpu()).unwrap_or(0)),
        };
        let (weight_ns, stack) = (sample.weight_ns().max(0), row(sample.stack_id()));
        give(track, Sample { ts_ns: sample.ts_ns(), weight_ns, stack, place });
    }
}

/// Runs of all wanted threads, in order of time.
fn runs(profile: &Profile<'_>, tracks: &Tracks<'_>) -> HashMap<u32, Vec<Run>> {
    let mut found: HashMap<u32, Vec<Run>> = HashMap::default();
    for switch in &profile.db.read_or_empty::<CSwitchRow>() {
        let (start_ns, Some(utid)) = (switch.ts_ns(), row(switch.new_utid())) else { continue };
        let Some(run_ns) = switch.run_ns().filter(|run| *run >= 0) else { continue };
        if !profile.is_in_time(start_ns) || !profile.is_of(tracks.people, row(switch.new_upid()), Some(utid))
        {
            continue;
        }
        let cpu_ns = switch.cpu_ns().unwrap_or(run_ns).clamp(0, run_ns);
        found.entry(utid).or_default().push(Run { start_ns, run_ns, cpu_ns, stack: row(switch.stack_id()) });
    }
    for runs in found.values_mut() {
        runs.sort_by_key(|run| run.start_ns);
    }
    found
}

/// The samples of a thread while they are written.
struct Line<'a, 'p> {
    thread: fx::ThreadHandle,
    stack: Option<fx::StackHandle>,
    /// CPU time that samples told so far, in microseconds.
    told_us: i64,
    /// CPU time so far.
    cpu_ns: i64,
    tracks: &'a mut Tracks<'p>,
    made: &'a mut fx::Profile,
}

impl Line<'_, '_> {
    /// Time since the last sample; what is no whole microsecond is told by the next one.
    fn delta(&mut self) -> fx::CpuDelta {
        let us = self.cpu_ns / 1000 - self.told_us;
        self.told_us += us.max(0);
        fx::CpuDelta::from_micros(us.max(0) as u64)
    }

    fn sample(&mut self, sample: &Sample) {
        self.stack = self.tracks.stack(self.thread, sample.stack, sample.place, self.made);
        let delta = self.delta();
        self.made.add_sample(self.thread, timestamp(sample.ts_ns), self.stack, delta, 1);
    }

    fn edge(&mut self, ts_ns: i64, stack: Option<fx::StackHandle>) {
        let delta = self.delta();
        self.made.add_sample(self.thread, timestamp(ts_ns), stack, delta, 0);
    }
}

fn with_runs(line: &mut Line<'_, '_>, samples: &[Sample], runs: &[Run], interval_ns: i64) {
    let mut samples = samples.iter().peekable();
    // CPU time of all runs before.
    let mut before = 0i64;
    let mut last_end: Option<i64> = None;
    for (at, run) in runs.iter().enumerate() {
        // Samples that no run covers: what they stand for is in no run either.
        while let Some(sample) = samples.next_if(|sample| sample.ts_ns < run.start_ns) {
            line.sample(sample);
        }
        if last_end.is_none_or(|end| run.start_ns.saturating_sub(end) >= interval_ns) {
            let stack = line.tracks.stack(line.thread, run.stack, CodeKind::Thread, line.made);
            line.edge(run.start_ns, stack);
        }
        let end = run.start_ns.saturating_add(run.run_ns);
        while let Some(sample) = samples.next_if(|sample| sample.ts_ns <= end) {
            let done = i128::from(sample.ts_ns.saturating_sub(run.start_ns)) * i128::from(run.cpu_ns);
            let done = done / i128::from(run.run_ns.max(1));
            line.cpu_ns = before.saturating_add(i64::try_from(done).unwrap_or(0));
            line.sample(sample);
        }
        before = before.saturating_add(run.cpu_ns);
        line.cpu_ns = before;
        let next = runs.get(at + 1).map(|next| next.start_ns);
        if next.is_none_or(|next| next.saturating_sub(end) >= interval_ns) {
            line.edge(end, line.stack);
        }
        last_end = Some(end);
    }
    for sample in samples {
        line.sample(sample);
    }
}
