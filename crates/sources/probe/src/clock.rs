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
//!
//! CPU time, run queue and waiting add up to time on the clock. The clocks alone would not: reading the run queue takes some
//! microseconds in which the thread may lose its processor, and that is run queue outside of the time on the clock. So each reading is
//! timed itself. What the thread was without a processor while it read is taken off the run queue, and what is left cannot exceed the
//! time on the clock for which it was off the processor. Waiting is the rest. On a virtual machine it also holds what the host took, if
//! the host tells the kernel of it, and on all machines time of interrupts, if the kernel counts it apart.

use std::time::{Duration, Instant};

/// A moment of the calling thread.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    wall: Instant,
    cpu: Option<system::Cpu>,
    queue: Queue,
    waits: Option<u64>,
}

/// The time that a thread stood in the run queue, and how far it can be relied on.
#[derive(Clone, Copy, Debug)]
struct Queue {
    ns: Option<u64>,
    /// Time without a processor while this was read.
    off_ns: u64,
    /// CPU time and clock right after it.
    cpu: Option<system::Cpu>,
    wall: Instant,
}

impl Queue {
    /// Reads it; `cpu` and `wall` were read right before.
    fn read(cpu: Option<system::Cpu>, wall: Instant) -> Queue {
        let queue = system::queue_ns();
        if queue.is_none() {
            return Queue { ns: None, off_ns: 0, cpu, wall };
        }
        let (cpu_after, wall_after) = (system::cpu(), Instant::now());
        let took = ns(wall_after.saturating_duration_since(wall));
        let ran = cpu.zip(cpu_after).and_then(|(then, now)| system::between(then, now, took));
        let off_ns = ran.map_or(0, |ran| took.saturating_sub(ran));
        Queue { ns: queue, off_ns, cpu: cpu_after, wall: wall_after }
    }
}

/// What a thread did between two moments. What the system does not tell is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Time on the clock.
    pub wall_ns: u64,
    /// CPU time, user and kernel; at most the time on the clock.
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
        let waits = system::waits();
        let queue = Queue::read(system::cpu(), Instant::now());
        Moment { cpu: queue.cpu, wall: queue.wall, queue, waits }
    }

    /// What the thread did since then. It must be the same thread.
    pub fn until_now(self) -> Spent {
        let wall = Instant::now();
        let cpu = system::cpu();
        let now = Queue::read(cpu, wall);
        let waits = since(system::waits(), self.waits);
        let wall_ns = ns(wall.saturating_duration_since(self.wall));
        let cpu_ns = self.cpu.zip(cpu).and_then(|(then, now)| system::between(then, now, wall_ns));
        let off_ns = self.queue.off_ns.saturating_add(now.off_ns);
        Spent { waits, ..split(wall_ns, cpu_ns, since(now.ns, self.queue.ns), off_ns) }
    }
}

/// Parts of `wall_ns` that add up to it: `cpu`, and of the time in the run queue, of which `off` may have passed while it was read,
/// what lies within.
fn split(wall_ns: u64, cpu: Option<u64>, queue: Option<u64>, off: u64) -> Spent {
    // The CPU clock is read next to the other, not at once with it.
    let cpu_ns = cpu.map(|cpu| cpu.min(wall_ns));
    let queue = queue.map(|queue| queue.saturating_sub(off));
    let rest = wall_ns.saturating_sub(cpu_ns.unwrap_or(0));
    let queue_ns = queue.map(|queue| queue.min(rest));
    let blocked_ns = cpu_ns.and(queue_ns).map(|queue| rest.saturating_sub(queue));
    Spent { wall_ns, cpu_ns, queue_ns, blocked_ns, waits: None }
}

fn since(now: Option<u64>, then: Option<u64>) -> Option<u64> {
    Some(now?.saturating_sub(then?))
}

/// Nanoseconds since `start`.
pub fn nanos(start: Instant) -> u64 {
    ns(start.elapsed())
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
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

    /// A file of `/proc` about this thread, kept open, since reading it from its beginning asks anew: opening costs more.
    #[cfg(target_os = "linux")]
    struct Own(Option<std::fs::File>);

    #[cfg(target_os = "linux")]
    impl Own {
        fn open(name: &str) -> Own {
            Own(std::fs::File::open(format!("/proc/thread-self/{name}")).ok())
        }

        fn number(&self, find: fn(&str) -> Option<&str>) -> Option<u64> {
            use std::os::unix::fs::FileExt;
            // `status` has about 1500 bytes; a user of many groups has more.
            let mut buffer = [0_u8; 16384];
            let length = self.0.as_ref()?.read_at(&mut buffer, 0).ok()?;
            find(&String::from_utf8_lossy(buffer.get(..length)?))?.trim().parse().ok()
        }
    }

    #[cfg(target_os = "linux")]
    thread_local! {
        static SCHEDSTAT: Own = Own::open("schedstat");
        static STATUS: Own = Own::open("status");
    }

    /// Time in the run queue of this thread.
    #[cfg(target_os = "linux")]
    pub fn queue_ns() -> Option<u64> {
        // Documentation/scheduler/sched-stats.rst: time on the CPU, time in the run queue (both ns), slices.
        SCHEDSTAT.try_with(|own| own.number(|text| text.split_whitespace().nth(1))).ok()?
    }

    /// Voluntary switches of this thread.
    #[cfg(target_os = "linux")]
    pub fn waits() -> Option<u64> {
        const NAME: &str = "voluntary_ctxt_switches:";
        STATUS.try_with(|own| own.number(|text| text.lines().find_map(|l| l.strip_prefix(NAME)))).ok()?
    }

    /// Not told here.
    #[cfg(not(target_os = "linux"))]
    pub fn queue_ns() -> Option<u64> {
        None
    }

    /// Not told here.
    #[cfg(not(target_os = "linux"))]
    pub fn waits() -> Option<u64> {
        None
    }
}

#[cfg(windows)]
#[path = "clock_windows.rs"]
mod system;

#[cfg(test)]
mod tests {
    use super::*;

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
    /// Of parts that are all told: they are the whole.
    fn adds_up(spent: &Spent) {
        if let (Some(cpu), Some(queue), Some(blocked)) = (spent.cpu_ns, spent.queue_ns, spent.blocked_ns) {
            assert_eq!(cpu + queue + blocked, spent.wall_ns, "{spent:?}");
        }
    }

    #[test]
    fn parts_are_the_whole_whatever_the_clocks_say() {
        let told = |wall, cpu, queue, off| {
            let spent = split(wall, Some(cpu), Some(queue), off);
            adds_up(&spent);
            [spent.cpu_ns, spent.queue_ns, spent.blocked_ns].map(Option::unwrap)
        };
        assert_eq!(told(1_000, 300, 200, 0), [300, 200, 500]);
        // The thread lost its processor while the run queue was read: 100 % CPU time and 2 % run queue cannot both be.
        assert_eq!(told(1_000, 1_000, 20, 20), [1_000, 0, 0]);
        assert_eq!(told(1_000, 1_000, 20, 0), [1_000, 0, 0]);
        assert_eq!(told(1_000, 700, 250, 50), [700, 200, 100]);
        assert_eq!(told(1_000, 1_003, 0, 7), [1_000, 0, 0]);
        assert_eq!(told(0, 5, u64::MAX, 1), [0, 0, 0]);
        for missing in [split(10, None, Some(4), 0), split(10, Some(4), None, 0), split(10, None, None, 0)] {
            assert_eq!(missing.blocked_ns, None);
        }
    }

    /// Turns of a loop, on threads that take processors away until this is dropped.
    struct Load(std::sync::Arc<std::sync::atomic::AtomicBool>, Vec<std::thread::JoinHandle<()>>);

    impl Load {
        fn of(threads: usize) -> Load {
            let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
            let spin = || {
                let stop = std::sync::Arc::clone(&stop);
                std::thread::spawn(move || while !stop.load(std::sync::atomic::Ordering::Relaxed) {})
            };
            let threads = (0..threads).map(|_| spin()).collect();
            Load(stop, threads)
        }
    }

    impl Drop for Load {
        fn drop(&mut self) {
            self.0.store(true, std::sync::atomic::Ordering::Relaxed);
            self.1.drain(..).for_each(|thread| thread.join().unwrap());
        }
    }

    #[test]
    fn without_a_processor_is_run_queue_and_adds_up() {
        let _load = Load::of(4 * std::thread::available_parallelism().map_or(1, usize::from));
        let mut all = Spent { cpu_ns: Some(0), queue_ns: Some(0), blocked_ns: Some(0), ..Spent::default() };
        let start = Instant::now();
        // Many short samples: each end is a chance to lose the processor while the clocks are read.
        while start.elapsed() < Duration::from_millis(1500) {
            let (moment, work) = (Moment::now(), Instant::now());
            while work.elapsed() < Duration::from_micros(50) {}
            let spent = moment.until_now();
            adds_up(&spent);
            all.wall_ns += spent.wall_ns;
            for (sum, part) in [
                (&mut all.cpu_ns, spent.cpu_ns),
                (&mut all.queue_ns, spent.queue_ns),
                (&mut all.blocked_ns, spent.blocked_ns),
            ] {
                *sum = sum.zip(part).map(|(sum, part)| sum + part);
            }
        }
        adds_up(&all);
        println!("{all:?}");
        let long = Moment::now();
        let work = Instant::now();
        while work.elapsed() < Duration::from_millis(500) {}
        let long = long.until_now();
        println!("{long:?}");
        adds_up(&long);
        // Four others want each processor: a fair scheduler gives this thread a fifth; nobody makes it wait.
        if let (Some(queue), Some(blocked)) = (long.queue_ns, long.blocked_ns) {
            assert!(queue > long.wall_ns / 4, "{long:?}");
            assert!(blocked < queue, "{long:?}");
        }
    }
}
