//! When the events of a table happen.

use crate::error::one_of;
use crate::model::{Burst, Common};
use crate::value::{Dist, Draw};
use etwhy_base::rng::Xoshiro;

#[derive(Clone, Debug)]
enum Pace {
    /// Listed moments.
    Listed(Vec<i64>),
    /// This many, evenly or at random.
    Count(u64),
    /// Events per second.
    Rate(Dist),
    /// Seconds between events.
    Every(Dist),
    /// This many; the gaps between them follow a law, stretched to the window.
    Grown(u64, Dist, f64),
}

/// A sequence of moments, in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    pace: Pace,
    random: bool,
    /// Evenly spaced to the nanosecond; otherwise each event is somewhere in its slot, so that nothing beats
    /// with the sampling interrupt.
    exact: bool,
    from: i64,
    /// Length of the window without the off phases.
    active: i64,
    burst: Option<(i64, i64)>,
    /// Position in active time.
    at: f64,
    n: u64,
    due: Option<i64>,
}

impl Arrivals {
    /// The moments that a table's fields say; `default_rate` when they say nothing.
    pub(crate) fn new(
        c: &Common,
        duration: i64,
        factors: (f64, f64),
        rng: &mut Xoshiro,
    ) -> Result<Arrivals, String> {
        let (time, counts) = factors;
        let scaled = |t: crate::value::Time| (t.0 * time * 1e9) as i64;
        let from = c.from.map_or(0, scaled);
        let to = c.to.map_or(duration, scaled).min(duration);
        if to < from {
            return Err("`to` lies before `from` (or `from` behind the end of the trace)".into());
        }
        let burst = burst(c)?;
        let random = match c.arrival.as_deref().unwrap_or("constant") {
            "constant" | "burst" | "exact" => false,
            "poisson" | "random" => true,
            other => {
                return Err(format!("arrival = {other:?}: allowed are constant, exact, poisson and burst"));
            }
        };
        if c.arrival.as_deref() == Some("burst") && burst.is_none() {
            return Err("arrival = \"burst\" needs burst = { on = \"50ms\", off = \"150ms\" }".into());
        }
        let given = [c.at.is_some(), c.count.is_some(), c.rate.is_some(), c.every.is_some()];
        let grown = c.every.as_ref().zip(c.count).filter(|_| c.at.is_none() && c.rate.is_none());
        if given.iter().filter(|g| **g).count() > 1 && grown.is_none() {
            return Err(format!("give only one of {}", one_of(["at", "count", "rate", "every"])));
        }
        let active = burst.map_or(to - from, |(on, off)| active_time(to - from, on, off));
        let pace = if let Some((every, count)) = grown {
            let count = (count as f64 * counts).round() as u64;
            let mut dry = rng.clone();
            let gap = |n| every.draw(&mut Draw { rng: &mut dry, n, x: n as f64 / count as f64 }).max(0.0);
            let sum: f64 = (0..count).map(gap).sum();
            Pace::Grown(count, every.clone(), active as f64 / sum.max(1e-9))
        } else if let Some(at) = &c.at {
            let mut at: Vec<i64> = at.iter().map(|t| scaled(*t)).collect();
            at.sort_unstable();
            Pace::Listed(at)
        } else if let Some(rate) = &c.rate {
            Pace::Rate(rate.clone())
        } else if let Some(every) = &c.every {
            Pace::Every(every.clone())
        } else {
            // A count grows with the window when a scenario is stretched to a size.
            Pace::Count(c.count.map_or(1, |n| (n as f64 * counts).round() as u64))
        };
        let exact = c.arrival.as_deref() == Some("exact");
        let mut arrivals = Arrivals { pace, random, exact, from, active, burst, at: 0.0, n: 0, due: None };
        arrivals.step(rng, true);
        Ok(arrivals)
    }

    pub(crate) fn next(&self) -> Option<i64> {
        self.due
    }

    /// How many events there will be, where that is known.
    pub(crate) fn count(&self) -> Option<u64> {
        match &self.pace {
            Pace::Listed(list) => Some(list.len() as u64),
            Pace::Count(count) | Pace::Grown(count, ..) => Some(*count),
            Pace::Rate(_) | Pace::Every(_) => None,
        }
    }

    /// How many came before, and where in the window the next one is.
    pub(crate) fn place(&self) -> (u64, f64) {
        (self.n, (self.at / self.active.max(1) as f64).clamp(0.0, 1.0))
    }

    /// Moves to the next moment.
    pub(crate) fn advance(&mut self, rng: &mut Xoshiro) {
        self.n += 1;
        self.step(rng, false);
    }

    fn step(&mut self, rng: &mut Xoshiro, first: bool) {
        let active = self.active as f64;
        let mut slot = 0.0;
        let gap = match &self.pace {
            Pace::Listed(list) => {
                self.due = list.get(self.n as usize).copied();
                self.at = self.due.map_or(active, |d| (d - self.from) as f64);
                return;
            }
            Pace::Count(count) => {
                let left = count.saturating_sub(self.n);
                if left == 0 {
                    self.due = None;
                    return;
                }
                // Random: the smallest of `left` uniform moments in what is left of the window.
                if self.random {
                    (active - self.at) * (1.0 - (1.0 - rng.uniform()).powf(1.0 / left as f64))
                } else {
                    slot = active / *count as f64;
                    if first { 0.0 } else { slot }
                }
            }
            Pace::Rate(dist) => {
                let x = (self.at / active.max(1.0)).clamp(0.0, 1.0);
                let rate = dist.draw(&mut Draw { rng, n: self.n, x });
                if rate <= 0.0 {
                    // A pause: look again a hundredth of the window later.
                    self.at += active / 100.0 + 1.0;
                    self.due = (self.at < active).then(|| self.wall(0.0));
                    if self.due.is_some() {
                        return self.step(rng, first);
                    }
                    return;
                }
                let gap = 1e9 / rate * if self.random { rng.exponential() } else { 1.0 };
                slot = if self.random { 0.0 } else { gap };
                if first && !self.random { 0.0 } else { gap }
            }
            Pace::Grown(count, every, factor) => {
                if self.n >= *count {
                    self.due = None;
                    return;
                }
                let x = self.n as f64 / *count as f64;
                every.draw(&mut Draw { rng, n: self.n, x }).max(0.0) * factor
            }
            Pace::Every(dist) => {
                let x = (self.at / active.max(1.0)).clamp(0.0, 1.0);
                let gap = dist.ns(&mut Draw { rng, n: self.n, x }).max(1) as f64;
                let gap = gap * if self.random { rng.exponential() } else { 1.0 };
                if first { 0.0 } else { gap }
            }
        };
        self.at += gap.max(if first { 0.0 } else { 1.0 });
        let inside = slot * if self.exact { 0.5 } else { rng.uniform() };
        // The last moment of a counted sequence may lie at the end by rounding: it is brought back by `wall`.
        let counted = matches!(self.pace, Pace::Count(_) | Pace::Grown(..));
        self.due = (counted || self.at < active || active == 0.0 && first).then(|| self.wall(inside));
    }

    /// The moment of a position in active time, so far into its slot.
    fn wall(&self, inside: f64) -> i64 {
        let at = (self.at + inside).min(self.active as f64 - 1.0).max(0.0) as i64;
        match self.burst {
            None => self.from + at,
            Some((on, off)) => self.from + at / on * (on + off) + at % on,
        }
    }
}

/// On and off phases in nanoseconds.
pub(crate) fn burst(c: &Common) -> Result<Option<(i64, i64)>, String> {
    match c.burst {
        None => Ok(None),
        Some(Burst { on, off }) if on.ns() > 0 && off.ns() >= 0 => Ok(Some((on.ns(), off.ns()))),
        Some(_) => Err("burst: `on` must be longer than 0".into()),
    }
}

fn active_time(window: i64, on: i64, off: i64) -> i64 {
    window / (on + off) * on + (window % (on + off)).min(on)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Time;

    fn all(c: &Common) -> Vec<i64> {
        let mut rng = Xoshiro::seeded(3);
        let mut a = Arrivals::new(c, 10_000_000_000, (1.0, 1.0), &mut rng).unwrap();
        let mut list = Vec::new();
        while let Some(due) = a.next() {
            list.push(due);
            a.advance(&mut rng);
        }
        assert!(list.is_sorted());
        list
    }

    #[test]
    fn counts_are_exact_and_rates_are_near() {
        let window = Common { from: Some(Time(2.0)), to: Some(Time(4.0)), ..Common::default() };
        let even = all(&Common { count: Some(100), arrival: Some("exact".into()), ..window.clone() });
        assert_eq!((even.len(), even[0]), (100, 2_010_000_000));
        let random = all(&Common { count: Some(500), arrival: Some("poisson".into()), ..window.clone() });
        assert_eq!(random.len(), 500);
        assert!(random.iter().all(|t| (2_000_000_000..4_000_000_000).contains(t)));
        let rate = all(&Common { rate: Some(Dist::constant(1000.0)), ..window.clone() });
        assert!((1999..=2001).contains(&rate.len()), "{}", rate.len());
        assert_eq!(all(&window).len(), 1);
    }

    #[test]
    fn bursts_leave_the_off_phases_empty() {
        let burst = Some(Burst { on: Time(0.1), off: Time(0.9) });
        let list = all(&Common { rate: Some(Dist::constant(1000.0)), burst, ..Common::default() });
        assert!((990..=1000).contains(&list.len()), "{}", list.len());
        assert!(list.iter().all(|t| t % 1_000_000_000 < 100_000_000));
    }
}
