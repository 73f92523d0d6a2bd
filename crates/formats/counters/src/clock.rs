//! From local time to UTC.
//!
//! A log has local stamps and, in its header, the zone's name and how many minutes UTC is ahead of local time when the log began
//! (`(Pacific Standard Time)(480)`). When the clock is set forward or back in between, only the stamps tell.

const SECOND: i64 = 1_000_000_000;
const HOUR: i64 = 3600 * SECOND;

/// What the clock did before a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It went on.
    On,
    /// It was set back by an hour: the end of daylight saving time. UTC went on.
    SummerEnds,
    /// It was set forward by an hour in a night to Sunday: daylight saving time. UTC went on.
    SummerBegins,
    /// It was set back otherwise: times of the log repeat.
    SetBack,
}

/// The clock of a log.
#[derive(Clone, Debug)]
pub struct Clock {
    bias_ns: i64,
    last: Option<i64>,
    /// The last steps that were neither back nor very long.
    steps: [i64; 9],
    seen: usize,
}

impl Clock {
    /// A clock that is `bias_min` minutes behind UTC.
    pub fn new(bias_min: i32) -> Clock {
        Clock { bias_ns: i64::from(bias_min).saturating_mul(60 * SECOND), last: None, steps: [0; 9], seen: 0 }
    }

    /// UTC of a local time, and what the clock did. Samples come in the order of the file.
    pub fn utc(&mut self, local: i64) -> (i64, Step) {
        let step = match self.last {
            Some(last) => self.step(last, local),
            None => Step::On,
        };
        match step {
            Step::SummerEnds => self.bias_ns = self.bias_ns.saturating_add(HOUR),
            Step::SummerBegins => self.bias_ns = self.bias_ns.saturating_sub(HOUR),
            Step::SetBack | Step::On => {}
        }
        self.last = Some(local);
        (local.saturating_add(self.bias_ns), step)
    }

    /// True before the first sample.
    pub fn is_fresh(&self) -> bool {
        self.last.is_none()
    }

    /// The usual time between two samples, once a few are known.
    pub fn interval(&self) -> Option<i64> {
        let mut steps = self.steps;
        let steps = steps.get_mut(..self.seen.min(self.steps.len())).filter(|steps| steps.len() >= 2)?;
        steps.sort_unstable();
        steps.get(steps.len() / 2).copied()
    }

    fn step(&mut self, last: i64, local: i64) -> Step {
        let step = local.saturating_sub(last);
        let usual = self.interval();
        // Samples are late by a few milliseconds, seldom by a second.
        let slack = usual.map_or(SECOND, |usual| (usual / 2).max(SECOND));
        if step < 0 {
            let expected = usual.unwrap_or(0);
            let near = step.saturating_add(HOUR - expected).saturating_abs() <= slack
                || (usual.is_none() && (-HOUR..-HOUR + 900 * SECOND).contains(&step));
            return if near { Step::SummerEnds } else { Step::SetBack };
        }
        if let Some(usual) = usual.filter(|usual| *usual < HOUR) {
            let crosses_hour =
                last.div_euclid(HOUR) != last.saturating_add(usual).saturating_add(slack).div_euclid(HOUR);
            if step.saturating_sub(HOUR + usual).saturating_abs() <= slack
                && crosses_hour
                && is_night_to_sunday(local)
            {
                return Step::SummerBegins;
            }
        }
        if let Some(place) = self.steps.get_mut(self.seen % 9) {
            *place = step;
            self.seen += 1;
        }
        Step::On
    }
}

/// Sunday before five: when clocks are set forward nearly everywhere (tz database, `Rule` lines of the present).
fn is_night_to_sunday(local: i64) -> bool {
    let day = local.div_euclid(24 * HOUR);
    // 1970-01-01 was a Thursday.
    (day + 4).rem_euclid(7) == 0 && local.rem_euclid(24 * HOUR) < 5 * HOUR
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::{Order, parse};

    fn run(bias: i32, stamps: &[&str]) -> (Vec<i64>, Vec<Step>) {
        let mut clock = Clock::new(bias);
        let first = parse(stamps[0].as_bytes(), Order::Mdy).unwrap();
        let all = stamps.iter().map(|s| clock.utc(parse(s.as_bytes(), Order::Mdy).unwrap()));
        let (times, steps): (Vec<i64>, Vec<Step>) = all.unzip();
        let zero = first + i64::from(bias) * 60 * SECOND;
        (times.iter().map(|t| (t - zero) / SECOND).collect(), steps)
    }

    #[test]
    fn summer_ends() {
        // Central Europe, 27 October 2024: 03:00 becomes 02:00.
        let (seconds, steps) = run(
            -120,
            &[
                "10/27/2024 02:59:15.001",
                "10/27/2024 02:59:30.002",
                "10/27/2024 02:59:45.000",
                "10/27/2024 02:00:00.004",
                "10/27/2024 02:00:15.000",
            ],
        );
        assert_eq!(seconds, [0, 15, 29, 45, 59]);
        assert_eq!(steps, [Step::On, Step::On, Step::On, Step::SummerEnds, Step::On]);
    }

    #[test]
    fn summer_begins() {
        // Pacific time, 10 March 2024, a Sunday: 02:00 becomes 03:00.
        let (seconds, steps) = run(
            480,
            &[
                "03/10/2024 01:59:00",
                "03/10/2024 01:59:20",
                "03/10/2024 01:59:40",
                "03/10/2024 03:00:00",
                "03/10/2024 03:00:20",
            ],
        );
        assert_eq!(seconds, [0, 20, 40, 60, 80]);
        assert_eq!(steps[3], Step::SummerBegins);
    }

    #[test]
    fn a_gap_of_an_hour_is_a_gap() {
        // Not at the full hour, and not on a Sunday.
        let (seconds, steps) = run(
            480,
            &["03/10/2024 01:29:00", "03/10/2024 01:29:20", "03/10/2024 01:29:40", "03/10/2024 02:30:00"],
        );
        assert_eq!((seconds[3], steps[3]), (3660, Step::On));
        let (seconds, steps) = run(
            480,
            &["03/11/2024 01:59:00", "03/11/2024 01:59:20", "03/11/2024 01:59:40", "03/11/2024 03:00:00"],
        );
        assert_eq!((seconds[3], steps[3]), (3660, Step::On));
    }

    #[test]
    fn a_clock_that_is_set_back() {
        let (seconds, steps) = run(
            0,
            &[
                "01/10/2024 10:00:00",
                "01/10/2024 10:00:10",
                "01/10/2024 10:00:20",
                "01/10/2024 09:50:00",
                "01/10/2024 09:50:10",
            ],
        );
        assert_eq!((seconds[3], steps[3], steps[4]), (-600, Step::SetBack, Step::On));
        assert_eq!(run(0, &["01/10/2024 10:00:00"]).0, [0]);
    }

    #[test]
    fn extreme_times_do_not_overflow() {
        let mut clock = Clock::new(i32::MAX);
        for local in [i64::MIN, i64::MAX, 0, i64::MAX, i64::MIN] {
            clock.utc(local);
        }
    }
}
