//! What a system call costs that does next to nothing, with one thread and with many.

use crate::clock::{Moment, Spent, nanos};
use crate::sample::{Laps, Sample};
use serde::{Deserialize, Serialize};
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Gives the processor to whoever is ready: `sched_yield`, `SwitchToThread`.
    Yield,
    /// `Sleep(0)`: Windows only.
    Sleep0,
    /// `getppid`; on Windows `GetPriorityClass`, which asks the kernel for two bytes of the process.
    Null,
}

impl Call {
    /// Those that programs of this system spin with.
    pub const OF_SPINNERS: &[Call] =
        if cfg!(windows) { &[Call::Sleep0, Call::Yield] } else { &[Call::Yield] };

    /// As programmers write it.
    pub fn name(self) -> &'static str {
        match self {
            Call::Yield if cfg!(windows) => "SwitchToThread",
            Call::Yield => "sched_yield",
            Call::Sleep0 => "Sleep(0)",
            Call::Null if cfg!(windows) => "GetPriorityClass",
            Call::Null => "getppid",
        }
    }

    /// By its name.
    pub fn named(name: &str) -> Option<Call> {
        [Call::Yield, Call::Sleep0, Call::Null].into_iter().find(|call| call.name() == name)
    }

    fn make(self) {
        match self {
            // `std` calls `sched_yield` and `SwitchToThread` and nothing else.
            Call::Yield => std::thread::yield_now(),
            #[cfg(windows)]
            Call::Sleep0 => etwhy_os::calls::sleep_ms(0),
            #[cfg(not(windows))]
            Call::Sleep0 => std::thread::yield_now(),
            Call::Null => null(),
        }
    }
}

#[cfg(unix)]
fn null() {
    // The C library of old kept the answer of `getpid`, never that of `getppid`; rustix asks the kernel.
    std::hint::black_box(rustix::process::getppid());
}

#[cfg(windows)]
fn null() {
    std::hint::black_box(etwhy_os::calls::null_call());
}

#[cfg(not(any(unix, windows)))]
fn null() {
    std::thread::yield_now();
}

/// Calls between two readings of the clock.
const BATCH: u64 = 64;

/// Calls of many threads: which, by how many, for how long.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Which.
    pub call: Call,
    /// By how many threads at once.
    pub threads: u64,
    /// For how long.
    pub ms: u64,
}

/// What calls cost. Times are those of all threads, added up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Calls.
    pub calls: u64,
    /// Time on the clock.
    pub wall_ns: u64,
    /// CPU time.
    pub cpu_ns: Option<u64>,
    /// Time ready without a processor.
    pub queue_ns: Option<u64>,
    /// Time stopped: waiting for somebody.
    pub blocked_ns: Option<u64>,
    /// Times stopped.
    pub waits: Option<u64>,
    /// Percentiles 50, 95, 99 and 100 of one call on the clock, each lap being the mean of 64 calls.
    pub laps: [Option<u64>; 4],
}

impl Cost {
    /// Time of a thread for one call, nanoseconds: on the clock, less what it stood ready without a processor, where that
    /// is known. CPU time alone would leave out the time for which a tracer stops the thread.
    pub fn per_call_ns(&self) -> f64 {
        let without_queue = self.wall_ns.saturating_sub(self.queue_ns.unwrap_or(0));
        without_queue as f64 / self.calls.max(1) as f64
    }

    /// Puts it into a sample.
    pub fn sample(&self, blank: Sample) -> Sample {
        let [p50_ns, p95_ns, p99_ns, max_ns] = self.laps;
        Sample {
            value: self.per_call_ns(),
            unit: "ns".to_owned(),
            operations: self.calls,
            wall_ns: self.wall_ns,
            cpu_ns: self.cpu_ns,
            queue_ns: self.queue_ns,
            blocked_ns: self.blocked_ns,
            waits: self.waits,
            p50_ns,
            p95_ns,
            p99_ns,
            max_ns,
            // They hold the run queue, which the value leaves out.
            percentiles_apart: true,
            ..blank
        }
    }
}

/// Makes the calls. `stop` is asked after each batch.
pub fn measure(load: Load, stop: impl Fn() -> bool + Sync) -> Cost {
    let threads = load.threads.clamp(1, 4096);
    let time = Duration::from_millis(load.ms);
    let barrier = Barrier::new(usize::try_from(threads).unwrap_or(1));
    let work = || {
        barrier.wait();
        let mut laps = Laps::default();
        let mut calls = 0_u64;
        let before = Moment::now();
        let start = Instant::now();
        while start.elapsed() < time && !stop() {
            let lap = Instant::now();
            for _ in 0..BATCH {
                load.call.make();
            }
            laps.push(nanos(lap) / BATCH);
            calls += BATCH;
        }
        (calls, before.until_now(), laps)
    };
    let each: Vec<(u64, Spent, Laps)> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        handles.into_iter().filter_map(|handle| handle.join().ok()).collect()
    });
    let mut cost =
        Cost { cpu_ns: Some(0), queue_ns: Some(0), blocked_ns: Some(0), waits: Some(0), ..Cost::default() };
    let add = |sum: &mut Option<u64>, one: Option<u64>| *sum = sum.zip(one).map(|(a, b)| a.saturating_add(b));
    let mut all = Laps::default();
    for (calls, spent, laps) in each {
        cost.calls += calls;
        cost.wall_ns = cost.wall_ns.saturating_add(spent.wall_ns);
        add(&mut cost.cpu_ns, spent.cpu_ns);
        add(&mut cost.queue_ns, spent.queue_ns);
        add(&mut cost.blocked_ns, spent.blocked_ns);
        add(&mut cost.waits, spent.waits);
        all.join(laps);
    }
    cost.laps = all.percentiles([0.5, 0.95, 0.99, 1.0]);
    cost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_calls_and_times_add_up() {
        for call in [Call::Yield, Call::Null] {
            let cost = measure(Load { call, threads: 3, ms: 30 }, || false);
            assert!(cost.calls >= 3 * BATCH, "{cost:?}");
            assert!(cost.wall_ns >= 3 * 30_000_000, "{cost:?}");
            assert!(cost.per_call_ns() > 1.0);
            assert_eq!(Call::named(call.name()), Some(call));
        }
    }

    #[test]
    fn the_table_says_what_the_sentences_say() {
        let cost = Cost {
            calls: 10,
            wall_ns: 4_000,
            queue_ns: Some(3_000),
            laps: [Some(400); 4],
            ..Cost::default()
        };
        let sample = cost.sample(Sample::default());
        assert_eq!((sample.value, crate::summary::typical(&sample)), (100.0, 100.0));
    }

    #[test]
    fn it_stops_at_once() {
        let start = Instant::now();
        let cost = measure(Load { call: Call::Null, threads: 2, ms: 60_000 }, || true);
        assert_eq!(cost.calls, 0);
        assert!(start.elapsed() < Duration::from_secs(30));
    }
}
