//! Clocks: what a thread did between two moments.
//!
//! Wall time alone says little on a busy machine: two runs of one probe then differ by half. CPU time repeats, and what is
//! neither CPU time nor waiting for a processor is waiting for somebody: that is what a security product costs.
//!
//! | system | CPU time | run queue | waits |
//! |---|---|---|---|
//! | Linux | `CLOCK_THREAD_CPUTIME_ID` | `/proc/thread-self/schedstat` | `voluntary_ctxt_switches` of `/proc/thread-self/status` |
//! | macOS | `CLOCK_THREAD_CPUTIME_ID` | absent | absent |
//! | Windows | `QueryThreadCycleTime`, checked against `GetThreadTimes`; without it long samples only | absent | absent |

use std::time::Instant;

/// A moment of the calling thread.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    wall: Instant,
    cpu: Option<system::Cpu>,
    queue_ns: Option<u64>,
    waits: Option<u64>,
}

/// What a thread did between two moments. What the system does not tell is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Time on the clock.
    pub wall_ns: u64,
    /// CPU time, user and kernel.
    pub cpu_ns: Option<u64>,
    /// Time ready without a processor.
    pub queue_ns: Option<u64>,
    /// wall − CPU − queue.
    pub blocked_ns: Option<u64>,
    /// Times that it gave up the processor to wait.
    pub waits: Option<u64>,
}

impl Moment {
    /// This moment of this thread. Takes some microseconds: it is for samples, not for single operations.
    pub fn now() -> Moment {
        let (queue_ns, waits) = system::scheduling();
        Moment { cpu: system::cpu(), queue_ns, waits, wall: Instant::now() }
    }

    /// What the thread did since then. It must be the same thread.
    pub fn until_now(self) -> Spent {
        let wall_ns = nanos(self.wall);
        let cpu_ns = self.cpu.zip(system::cpu()).and_then(|(then, now)| system::between(then, now, wall_ns));
        let (queue, waits) = system::scheduling();
        let queue_ns = since(queue, self.queue_ns);
        let blocked_ns = match (cpu_ns, queue_ns) {
            (Some(cpu), Some(queue)) => Some(wall_ns.saturating_sub(cpu).saturating_sub(queue)),
            _ => None,
        };
        Spent { wall_ns, cpu_ns, queue_ns, blocked_ns, waits: since(waits, self.waits) }
    }
}

fn since(now: Option<u64>, then: Option<u64>) -> Option<u64> {
    Some(now?.saturating_sub(then?))
}

/// Nanoseconds since `start`.
pub fn nanos(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(unix)]
mod system {
    /// CPU time, nanoseconds.
    pub type Cpu = u64;

    /// CPU time between two moments of one thread.
    pub fn between(then: Cpu, now: Cpu, _: u64) -> Option<u64> {
        Some(now.saturating_sub(then))
    }

    /// CPU time of this thread.
    pub fn cpu() -> Option<Cpu> {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let seconds = u64::try_from(time.tv_sec).ok()?;
        seconds.checked_mul(1_000_000_000)?.checked_add(u64::try_from(time.tv_nsec).ok()?)
    }

    /// Time in the run queue and voluntary switches of this thread.
    pub fn scheduling() -> (Option<u64>, Option<u64>) {
        if cfg!(not(target_os = "linux")) {
            return (None, None);
        }
        // Documentation/scheduler/sched-stats.rst: time on the CPU, time in the run queue (both ns), slices.
        let queue = std::fs::read_to_string("/proc/thread-self/schedstat")
            .ok()
            .and_then(|text| text.split_whitespace().nth(1)?.parse().ok());
        let waits = std::fs::read_to_string("/proc/thread-self/status").ok().and_then(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
            line.trim().parse().ok()
        });
        (queue, waits)
    }
}

#[cfg(windows)]
#[path = "clock_windows.rs"]
mod system;

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn sleeping_is_no_work() {
        let start = Moment::now();
        std::thread::sleep(Duration::from_millis(30));
        let spent = start.until_now();
        assert!(spent.wall_ns >= 30_000_000);
        if let Some(cpu) = spent.cpu_ns {
            assert!(cpu < 15_000_000, "{cpu} ns of CPU time in a sleep");
        }
        if let Some(blocked) = spent.blocked_ns {
            assert!(blocked > 10_000_000, "{blocked} ns blocked");
        }
        if let Some(waits) = spent.waits {
            assert!(waits >= 1);
        }
    }
}
