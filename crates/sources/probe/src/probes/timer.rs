//! How late a sleeping thread wakes up.

use crate::clock::{Moment, Spent, nanos};
use crate::error::ProbeError;
use crate::probe::{Contrast, EVERYWHERE, Grows, Parameter, Probe};
use crate::run::Run;
use crate::sample::{Case, Laps, Sample};
use crate::summary::Figures;
use crate::words::time;
use std::time::{Duration, Instant, SystemTime};

/// Declaration.
pub static PROBE: Probe = Probe {
    name: "timer",
    about: "How late sleeping threads wake up, how fine the clock is, and what reading it costs",
    manual: "Sleeps for 0.1, 1, 5, 10 and 15.6 ms, many times each, and measures how long it really took. The figure is how late the \
             thread woke up: half of the times at most that much. The percentiles beside it tell of the late ones. Then it reads the clocks \
             in a loop: what a reading costs, and the smallest step that was seen.\n\n\
             Ways to sleep. Linux and macOS: nanosleep; on Linux again with a timer slack of 1 ns (the kernel delays ordinary threads' \
             timers by up to 50 us to wake the machine less often). Windows: Sleep, which wakes up at a tick of the clock, 15.6 ms apart \
             unless a program asks for less; the same while the probe asks for 1 ms (timeBeginPeriod, taken back at once; before Windows \
             10 2004 it holds for all programs); the high-resolution timer of Windows 10 1803 and later, which programs in Rust and newer \
             Go sleep by.\n\n\
             How to read it: 50 to 100 us late is usual on Linux. On Windows Sleep(1) takes up to 15.6 ms where nobody asked for \
             short ticks: loops with Sleep(1) that are quick on one machine and slow on another. 25 ns for a reading of the clock is usual; \
             several hundred mean that it is a system call (on Linux: the clock source is not tsc).\n\n\
             What fools it: on a busy machine threads wait for a processor after they woke up. That is what programs there get, too; time in \
             the run queue stands beside it on Linux. Sleep of Windows may return up to a tick early: such sleeps count as 0 late, and \
             as failures.",
    systems: EVERYWHERE,
    parameters: &[Parameter::number("sleeps", "Sleeps of each length", "sleeps", (50, 20), (5, 10_000))],
    grows: Grows::No,
    n_is: "",
    contrasts: &[
        Contrast {
            title: "Sleep(1) with ticks as they are against ticks of 1 ms",
            dear: ("sleep 1 ms", "Sleep"),
            cheap: ("sleep 1 ms", "Sleep, timeBeginPeriod(1)"),
            meaning: "How much later threads wake up when nobody asks for short ticks.",
        },
        Contrast {
            title: "ordinary timer slack against 1 ns",
            dear: ("sleep 0.1 ms", "nanosleep"),
            cheap: ("sleep 0.1 ms", "nanosleep, slack 1 ns"),
            meaning: "What the timer slack of Linux adds to each short sleep.",
        },
    ],
    run,
    child: None,
    conclude,
};

/// What is slept for: microseconds, and as people write it. 15.6 ms is the tick of Windows.
const LENGTHS: [(u64, &str); 5] = [
    (100, "sleep 0.1 ms"),
    (1000, "sleep 1 ms"),
    (5000, "sleep 5 ms"),
    (10_000, "sleep 10 ms"),
    (15_600, "sleep 15.6 ms"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Std,
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    Slack,
    #[cfg_attr(not(windows), allow(dead_code))]
    Sleep,
    #[cfg_attr(not(windows), allow(dead_code))]
    ShortTicks,
}

const WAYS: &[How] = if cfg!(windows) {
    &[How::Sleep, How::ShortTicks, How::Std]
} else if cfg!(target_os = "linux") {
    &[How::Std, How::Slack]
} else {
    &[How::Std]
};

impl How {
    fn variant(self) -> &'static str {
        match self {
            How::Std if cfg!(windows) => "high-resolution timer",
            How::Std => "nanosleep",
            How::Slack => "nanosleep, slack 1 ns",
            How::Sleep => "Sleep",
            How::ShortTicks => "Sleep, timeBeginPeriod(1)",
        }
    }

    fn sleep(self, time: Duration) {
        #[cfg(windows)]
        if self != How::Std {
            // Sleep takes whole milliseconds; 0 would be no sleep at all.
            let ms = time.as_micros().div_ceil(1000);
            return etwhy_os::calls::sleep_ms(u32::try_from(ms).unwrap_or(1).max(1));
        }
        std::thread::sleep(time);
    }

    /// What is really asked for.
    fn asked(self, micros: u64) -> Duration {
        match self {
            How::Sleep | How::ShortTicks => Duration::from_millis(micros.div_ceil(1000)),
            How::Std | How::Slack => Duration::from_micros(micros),
        }
    }
}

fn run(run: &mut Run<'_>) -> Result<(), ProbeError> {
    facts(run);
    let sleeps = run.number("sleeps");
    let mut cases: Vec<(How, u64, &str)> =
        WAYS.iter().flat_map(|&how| LENGTHS.iter().map(move |&(micros, name)| (how, micros, name))).collect();
    if run.round() % 2 == 1 {
        cases.reverse();
    }
    for (done, &(how, micros, name)) in cases.iter().enumerate() {
        run.progress(name, done as u64, cases.len() as u64);
        run.goes_on()?;
        let start_ns = run.since_start();
        let stop = run.interrupt().clone();
        // A thread of its own: what is changed for it goes with it.
        let result = std::thread::scope(|scope| {
            scope.spawn(|| lateness(how, micros, sleeps, &|| stop.is_set())).join()
        });
        run.goes_on()?;
        let (spent, laps, early) = match result {
            Ok(Ok(measured)) => measured,
            Ok(Err(why)) => {
                run.note(format!("{}: left out: {why}", how.variant()));
                continue;
            }
            Err(_) => continue,
        };
        let case = Case::new(name).when(how.variant());
        let sample = run.sample(case, start_ns, laps.count(), &spent, &laps);
        let value = sample.p50_ns.unwrap_or(0) as f64;
        run.push(Sample { value, unit: "ns".to_owned(), failures: early, ..sample });
    }
    clocks(run)
}

/// Sleeps, and how late each ended; how many ended early.
fn lateness(
    how: How,
    micros: u64,
    sleeps: u64,
    stop: &dyn Fn() -> bool,
) -> Result<(Spent, Laps, u64), String> {
    #[cfg(target_os = "linux")]
    if how == How::Slack {
        // prctl(2), PR_SET_TIMERSLACK: of this thread only.
        rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1))
            .map_err(|error| format!("timer slack: {error}"))?;
    }
    #[cfg(windows)]
    let _ticks = match how {
        How::ShortTicks => Some(
            etwhy_os::calls::TimerPeriod::begin(1).map_err(|error| format!("timeBeginPeriod(1): {error}"))?,
        ),
        _ => None,
    };
    let asked = how.asked(micros);
    let asked_ns = u64::try_from(asked.as_nanos()).unwrap_or(u64::MAX);
    let mut laps = Laps::default();
    let mut early = 0;
    let before = Moment::now();
    for _ in 0..sleeps {
        if stop() {
            break;
        }
        let start = Instant::now();
        how.sleep(asked);
        let took = nanos(start);
        if took < asked_ns {
            early += 1;
        }
        laps.push(took.saturating_sub(asked_ns));
    }
    Ok((before.until_now(), laps, early))
}

/// Readings of a clock in one sample.
const READINGS: u64 = 20_000;

fn clocks(run: &mut Run<'_>) -> Result<(), ProbeError> {
    let start = Instant::now();
    clock(run, "steady clock", &mut || nanos(start))?;
    clock(run, "time of day", &mut || {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_nanos()).unwrap_or(0)
    })
}

fn clock(run: &mut Run<'_>, name: &str, read: &mut dyn FnMut() -> u64) -> Result<(), ProbeError> {
    let mut step = u64::MAX;
    run.measure(Case::new("read the clock").when(name), |_, _| {
        let mut last = read();
        for _ in 0..READINGS {
            let now = read();
            // Clocks of the day are set back now and then.
            if now > last {
                step = step.min(now - last);
            }
            last = now;
        }
        Ok((READINGS + 1, 0))
    })?;
    if step != u64::MAX {
        let case = Case::new("smallest step of the clock").when(name);
        let sample = run.sample(case, run.since_start(), 1, &Spent::default(), &Laps::default());
        run.push(Sample { value: step as f64, unit: "ns".to_owned(), ..sample });
    }
    Ok(())
}

/// What the system says of its clocks.
#[cfg(windows)]
fn facts(run: &mut Run<'_>) {
    if let Ok((longest, shortest, now)) = etwhy_os::calls::timer_resolution() {
        let ms = |units: u32| f64::from(units) / 10_000.0;
        run.note(format!(
            "ticks of the clock are {:.3} ms apart now; this machine can from {:.3} to {:.3} ms",
            ms(now),
            ms(shortest),
            ms(longest)
        ));
    }
}

/// What the system says of its clocks.
#[cfg(not(windows))]
fn facts(run: &mut Run<'_>) {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    if let Ok(source) = std::fs::read_to_string(path) {
        let source = source.trim();
        let slow = matches!(source, "hpet" | "acpi_pm" | "jiffies");
        run.note(format!(
            "the clock source is {source}{}",
            if slow { ": each reading is a slow system call" } else { "" }
        ));
    }
}

fn conclude(samples: &[Sample]) -> Vec<String> {
    let figures = Figures::from_samples(samples);
    let mut sentences = Vec::new();
    for how in WAYS {
        let late = |(_, name): &(u64, &str)| {
            let p50 = figures.typical(name, how.variant())?;
            let p99 = figures.one(name, how.variant(), None)?.p99_ns?;
            Some(format!("{} {} (99 %: {})", name.trim_start_matches("sleep "), time(p50), time(p99)))
        };
        let late: Vec<String> = LENGTHS.iter().filter_map(late).collect();
        if !late.is_empty() {
            sentences.push(format!("{} wakes up late by: {}.", how.variant(), late.join(", ")));
        }
    }
    for clock in ["steady clock", "time of day"] {
        let cost = figures.typical("read the clock", clock);
        let step = figures.typical("smallest step of the clock", clock);
        if let (Some(cost), Some(step)) = (cost, step) {
            sentences.push(format!("{clock}: {} a reading, smallest step {}.", time(cost), time(step)));
        }
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::{made, options};

    #[test]
    fn nobody_wakes_up_before_the_time_and_clocks_move() {
        let options = options(&std::env::temp_dir(), &[("sleeps", "5")]);
        let made = made(&PROBE, &options);
        let sleeps: Vec<&Sample> =
            made.samples.iter().filter(|s| s.case.measure.starts_with("sleep ")).collect();
        assert_eq!(sleeps.len(), WAYS.len() * LENGTHS.len());
        if cfg!(unix) {
            // POSIX: never less than what is asked for.
            assert!(sleeps.iter().all(|s| s.failures == 0), "{sleeps:?}");
        }
        let step = made.samples.iter().find(|s| s.case.measure.starts_with("smallest step")).unwrap();
        assert!(step.value >= 1.0 && step.value < 20_000_000.0, "{step:?}");
        assert_eq!(conclude(&made.samples).len(), WAYS.len() + 2);
    }
}
