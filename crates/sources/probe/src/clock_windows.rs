//! Clocks of Windows.

use etwhy_os::windows::thread;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Clock tick, by which Windows charges threads with `GetThreadTimes`: 64 in a second unless somebody has set it shorter.
const TICK_NS: u64 = 15_625_000;

/// Shortest sample whose CPU time ticks tell well enough: an error of one in sixteen.
const LONG_NS: u64 = 16 * TICK_NS;

/// What the thread has used.
#[derive(Clone, Copy, Debug)]
pub struct Cpu {
    ticked_ns: u64,
    cycles: Option<u64>,
}

/// CPU time of this thread.
pub fn cpu() -> Option<Cpu> {
    let (user, kernel) = thread::cpu_ns().ok()?;
    Some(Cpu { ticked_ns: user.saturating_add(kernel), cycles: thread::cycles().ok() })
}

/// CPU time between two moments that are `wall_ns` apart. Cycles count only if they agree with ticks: where the processor's
/// counter follows its clock rate they do not.
pub fn between(then: Cpu, now: Cpu, wall_ns: u64) -> Option<u64> {
    let ticked = now.ticked_ns.saturating_sub(then.ticked_ns);
    let counted = then.cycles.zip(now.cycles).zip(cycles_per_ns()).map(|((then, now), rate)| {
        let ns = now.saturating_sub(then) as f64 / rate;
        (ns as u64).min(wall_ns)
    });
    told(ticked, counted, wall_ns)
}

fn told(ticked: u64, counted: Option<u64>, wall_ns: u64) -> Option<u64> {
    match counted {
        // Each end may be a tick off, and rates are calibrated to some per cent.
        Some(counted) if counted.abs_diff(ticked) <= 2 * TICK_NS + ticked / 10 => Some(counted),
        _ => (wall_ns >= LONG_NS).then_some(ticked.min(wall_ns)),
    }
}

/// Time in the run queue: not offered to programs.
pub fn queue_ns() -> Option<u64> {
    None
}

/// Voluntary switches: not offered to programs.
pub fn waits() -> Option<u64> {
    None
}

/// Cycles that Windows counts in a nanosecond of work: the fastest of some short pieces of work, since an interrupted one looks
/// slow. Found once.
fn cycles_per_ns() -> Option<f64> {
    static RATE: OnceLock<Option<f64>> = OnceLock::new();
    *RATE.get_or_init(|| {
        let mut best: Option<f64> = None;
        for _ in 0..5 {
            let (start, before) = (Instant::now(), thread::cycles().ok()?);
            while start.elapsed() < Duration::from_millis(2) {
                std::hint::spin_loop();
            }
            let cycles = thread::cycles().ok()?.saturating_sub(before);
            let rate = cycles as f64 / start.elapsed().as_nanos().max(1) as f64;
            best = Some(best.map_or(rate, |best| best.max(rate)));
        }
        best.filter(|rate| (0.01..100.0).contains(rate))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_must_agree_with_ticks() {
        // 100 ms of work in 200 ms: five to seven ticks.
        assert_eq!(told(93_750_000, Some(100_000_000), 200_000_000), Some(100_000_000));
        // A counter at a third of the rate.
        assert_eq!(told(93_750_000, Some(33_000_000), 200_000_000), None);
        assert_eq!(told(1_000_000_000, Some(333_000_000), 1_100_000_000), Some(1_000_000_000));
        // Ticks alone say nothing of short samples.
        assert_eq!((told(0, None, 3_000_000), told(0, Some(2_000_000), 3_000_000)), (None, Some(2_000_000)));
        assert_eq!(told(312_500_000, None, 300_000_000), Some(300_000_000));
    }

    #[test]
    fn work_is_told_from_waiting() {
        let (start, before) = (Instant::now(), cpu().unwrap());
        let (mut wall, mut worked) = (0, 0);
        // On a busy machine the thread may get little of the first 400 ms.
        while wall < 400_000_000 || (worked <= 20_000_000 && wall < 20_000_000_000) {
            let piece = Instant::now();
            while piece.elapsed() < Duration::from_millis(100) {
                std::hint::spin_loop();
            }
            let now = cpu().unwrap();
            wall = start.elapsed().as_nanos() as u64;
            worked = between(before, now, wall).unwrap_or(0);
        }
        assert!(worked > 20_000_000 && worked <= wall, "{worked} of {wall}");
        let (start, before) = (Instant::now(), cpu().unwrap());
        std::thread::sleep(Duration::from_millis(400));
        let wall = start.elapsed().as_nanos() as u64;
        let worked = between(before, cpu().unwrap(), wall).unwrap();
        assert!(worked < 100_000_000, "{worked} of {wall}");
    }
}
