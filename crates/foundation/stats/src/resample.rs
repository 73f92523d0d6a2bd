//! Bootstrap: how far an estimate could have come out differently.
//!
//! Values are drawn again, with replacement, as many as there are, and the estimate is made from each draw; the middle 95 % of
//! these estimates are the interval (percentile method, Efron 1979). It needs no distribution: durations are skewed and have
//! outliers.
//!
//! # What fools it
//! Below some ten values the interval is too narrow. Values must be independent: neighbouring calls often are not, so draw
//! over processes, seconds or runs (`blocks`) rather than over single events.

use crate::Interval;
use crate::percentile::{median, weighted_percentile};
use etwhy_base::rng::Rng;

/// How a bootstrap is done.
#[derive(Clone, Copy, Debug)]
pub struct Bootstrap {
    /// Draws.
    pub draws: usize,
    /// Seed: equal seeds give equal intervals.
    pub seed: u64,
    /// How sure the interval shall be, 0 to 1.
    pub confidence: f64,
}

impl Default for Bootstrap {
    fn default() -> Bootstrap {
        Bootstrap { draws: 1_000, seed: 0x5EED, confidence: 0.95 }
    }
}

impl Bootstrap {
    /// The interval of any figure of a sample. `None` if the figure of the sample itself is not finite.
    pub fn interval(&self, values: &[f64], figure: impl Fn(&mut [f64]) -> f64) -> Option<Interval> {
        self.draw(&[values], |draws| draws.first_mut().map_or(f64::NAN, |values| figure(values)))
    }

    /// The interval of any figure of two samples, each drawn for itself.
    pub fn of_two(
        &self,
        before: &[f64],
        after: &[f64],
        figure: impl Fn(&mut [f64], &mut [f64]) -> f64,
    ) -> Option<Interval> {
        self.draw(&[before, after], |draws| match draws {
            [before, after] => figure(before, after),
            _ => f64::NAN,
        })
    }

    fn draw(&self, samples: &[&[f64]], figure: impl Fn(&mut [Vec<f64>]) -> f64) -> Option<Interval> {
        if samples.iter().any(|s| s.is_empty()) {
            return None;
        }
        let mut drawn: Vec<Vec<f64>> = samples.iter().map(|s| s.to_vec()).collect();
        let value = figure(&mut drawn);
        if !value.is_finite() {
            return None;
        }
        let mut rng = Rng::new(self.seed);
        let mut figures: Vec<(f64, f64)> = Vec::with_capacity(self.draws);
        for _ in 0..self.draws.max(1) {
            for (sample, drawn) in samples.iter().zip(&mut drawn) {
                for slot in drawn {
                    *slot = sample.get(rng.index(sample.len())).copied().unwrap_or(f64::NAN);
                }
            }
            figures.push((figure(&mut drawn), 1.0));
        }
        let tail = (1.0 - self.confidence) / 2.0;
        Some(Interval {
            value,
            low: weighted_percentile(&figures, tail)?,
            high: weighted_percentile(&figures, 1.0 - tail)?,
        })
    }

    /// The mean.
    pub fn mean(&self, values: &[f64]) -> Option<Interval> {
        self.interval(values, |v| mean(v))
    }

    /// The median.
    pub fn median(&self, values: &[f64]) -> Option<Interval> {
        self.interval(values, |v| median(v).unwrap_or(f64::NAN))
    }

    /// The mean of `after` less that of `before`.
    pub fn difference_of_means(&self, before: &[f64], after: &[f64]) -> Option<Interval> {
        self.of_two(before, after, |b, a| mean(a) - mean(b))
    }

    /// The median of `after` less that of `before`.
    pub fn difference_of_medians(&self, before: &[f64], after: &[f64]) -> Option<Interval> {
        self.of_two(before, after, |b, a| median(a).zip(median(b)).map_or(f64::NAN, |(a, b)| a - b))
    }

    /// The mean of `after` divided by that of `before`.
    pub fn ratio_of_means(&self, before: &[f64], after: &[f64]) -> Option<Interval> {
        self.of_two(before, after, |b, a| mean(a) / mean(b))
    }
}

/// The mean; NaN for no values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Sums of consecutive runs of `length` values: what to draw from if neighbours depend on each other. A rest that
/// is shorter does not count.
pub fn blocks(values: &[f64], length: usize) -> Vec<f64> {
    values.chunks_exact(length.max(1)).map(|run| run.iter().sum()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log_normal(rng: &mut Rng, count: usize, sigma: f64) -> Vec<f64> {
        (0..count).map(|_| (rng.normal() * sigma).exp()).collect()
    }

    /// How often intervals hold `truth`.
    fn coverage(truth: f64, mut interval: impl FnMut(&mut Rng, &Bootstrap) -> Option<Interval>) -> f64 {
        let mut rng = Rng::new(3);
        let (runs, bootstrap) = (300, Bootstrap { draws: 300, ..Bootstrap::default() });
        let held =
            (0..runs).filter(|_| interval(&mut rng, &bootstrap).is_some_and(|i| i.holds(truth))).count();
        held as f64 / f64::from(runs)
    }

    #[test]
    fn intervals_hold_the_truth_nearly_as_often_as_they_say() {
        let s = 0.5_f64;
        let mean_of = (s * s / 2.0).exp();
        let mean = coverage(mean_of, |rng, b| b.mean(&log_normal(rng, 50, s)));
        let median = coverage(1.0, |rng, b| b.median(&log_normal(rng, 51, s)));
        let ratio = coverage(3.0, |rng, b| {
            let before = log_normal(rng, 50, s);
            let after: Vec<f64> = log_normal(rng, 50, s).iter().map(|v| v * 3.0).collect();
            b.ratio_of_means(&before, &after)
        });
        let difference = coverage(0.0, |rng, b| {
            let (before, after) = (log_normal(rng, 50, s), log_normal(rng, 40, s));
            b.difference_of_medians(&before, &after)
        });
        println!(
            "bootstrap, nominal 95 %: mean {mean:.3} median {median:.3} ratio {ratio:.3} difference {difference:.3}"
        );
        for share in [mean, median, ratio, difference] {
            assert!((0.90..=0.985).contains(&share), "{share}");
        }
    }

    #[test]
    fn equal_seeds_give_equal_intervals() {
        let values = [1.0, 2.0, 3.0, 4.0, 50.0];
        let bootstrap = Bootstrap::default();
        assert_eq!(bootstrap.mean(&values), bootstrap.mean(&values));
        let other = Bootstrap { seed: 1, ..bootstrap };
        assert_ne!(bootstrap.mean(&values), other.mean(&values));
        let interval = bootstrap.mean(&values).unwrap();
        assert_eq!(interval.value, 12.0);
        assert!(interval.low < 12.0 && interval.high > 12.0);
    }

    #[test]
    fn constants_have_no_width_and_nothing_has_no_interval() {
        let bootstrap = Bootstrap::default();
        assert_eq!(bootstrap.mean(&[2.0; 9]), Some(Interval { value: 2.0, low: 2.0, high: 2.0 }));
        assert_eq!(bootstrap.mean(&[]), None);
        assert_eq!(bootstrap.ratio_of_means(&[0.0, 0.0], &[1.0]), None);
        assert_eq!(blocks(&[1.0, 2.0, 3.0, 4.0, 5.0], 2), [3.0, 7.0]);
    }
}
