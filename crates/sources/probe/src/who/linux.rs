//! Who it is, on Linux: everything comes from `/proc`, without special rights; root sees more.
//!
//! A thread looks every few milliseconds where the probe's threads wait (`/proc/self/task/*/wchan`), and now and then who listens to
//! file accesses, who traces, and who is busy. It looks less often when that takes more than 1 % of a processor.

mod busy;
mod fanotify;
mod files;
mod inside;
mod processes;
mod products;
mod tracers;
mod verdict;
mod waits;
mod watched;

use super::timeline::{Seen, Timeline};
use crate::clock::Moment;
use fanotify::Target;
use inside::Inside;
use processes::Snapshot;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use watched::Watched;

pub use products::products;

/// Between two looks at where threads wait, at first.
const LOOK: Duration = Duration::from_millis(5);

/// Part of the time that passes which watching may take.
const MOST_CPU: f64 = 0.01;

/// Between two looks at marks of listeners that are known.
const MARKS: Duration = Duration::from_millis(250);

/// Between two searches for new listeners and tracers.
const SEARCH: Duration = Duration::from_secs(5);

/// Between two readings of the CPU time of those who may work for the probe: two ticks of their clock.
const WORK: Duration = Duration::from_millis(20);

/// Looks around while a probe runs.
#[derive(Debug)]
pub struct Watch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Watched>>,
}

impl Watch {
    /// Begins to look.
    pub fn start(folder: &Path) -> Watch {
        let stop = Arc::new(AtomicBool::new(false));
        let ours = Arc::clone(&stop);
        let folder: PathBuf = folder.to_owned();
        let probe = rustix::thread::gettid().as_raw_nonzero().get();
        let thread = std::thread::Builder::new()
            .name("etwhy-watch".to_owned())
            .spawn(move || watch(&folder, probe, &ours))
            .ok();
        Watch { stop, thread }
    }

    /// Ends it.
    pub fn finish(mut self) -> Seen {
        match self.end() {
            Some(watched) => Seen { timeline: watched.timeline.clone(), ..verdict::judge(&watched) },
            None => Seen {
                notes: vec!["nobody watched who was at work: no thread could be started for it".to_owned()],
                ..Seen::default()
            },
        }
    }

    fn end(&mut self) -> Option<Watched> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take()?;
        thread.thread().unpark();
        thread.join().ok()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end();
    }
}

fn watch(folder: &Path, probe: i32, stop: &AtomicBool) -> Watched {
    let start = Instant::now();
    let cpu = Moment::now();
    let own = rustix::thread::gettid().as_raw_nonzero().get();
    let mut seen = Watched { before: Snapshot::take(), ..Watched::default() };
    let queued = processes::queue_ns(probe);
    seen.target = Target::for_folder(folder);
    seen.waits.only_notes_of(probe);
    seen.inside = Inside::for_thread(probe);
    seen.timeline = Timeline::starting(start);
    let products: Vec<(u32, String)> = seen.before.products().collect();
    let mut followed = Vec::new();
    let (mut search_at, mut searches, mut marks_at) = (Duration::ZERO, 0_u32, Duration::ZERO);
    let mut work_at = Duration::ZERO;
    let mut pause = LOOK;
    let mut looked = start.elapsed();
    loop {
        let now = start.elapsed();
        if now >= search_at {
            seen.listeners.search(&mut seen.tracers);
            seen.tracers.look();
            followed = seen.candidates(&products);
            searches += 1;
            // Soon after the start once more: products mark new folders when they are made.
            search_at = now + if searches < 3 { Duration::from_millis(400) } else { SEARCH };
        }
        if now >= marks_at {
            seen.target.look();
            seen.listeners.look(&seen.target);
            marks_at = now + MARKS;
        }
        if now >= work_at {
            seen.follow(&followed, start.elapsed());
            work_at = now + WORK.max(pause);
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
        std::thread::park_timeout(pause);
        let now = start.elapsed();
        seen.waits.look(own, now.saturating_sub(looked));
        seen.inside.look(now.saturating_sub(looked));
        looked = now;
        if seen.waits.looks().is_multiple_of(64) {
            pause = next_pause(pause, &cpu);
        }
    }
    seen.follow(&followed, start.elapsed());
    seen.after = Snapshot::take();
    seen.queue_ns = processes::queue_ns(probe).zip(queued).map(|(now, then)| now.saturating_sub(then));
    seen.took = start.elapsed();
    seen.cost_ns = cpu.until_now().cpu_ns;
    seen
}

/// A longer pause if watching takes too much, at most 50 ms.
fn next_pause(pause: Duration, since: &Moment) -> Duration {
    let spent = since.until_now();
    let share = spent.cpu_ns.unwrap_or(0) as f64 / spent.wall_ns.max(1) as f64;
    if share > MOST_CPU { (pause * 3 / 2).min(Duration::from_millis(50)) } else { pause }
}

#[cfg(test)]
#[path = "linux_tests.rs"]
mod tests;
