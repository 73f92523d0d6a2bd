//! Steps in a series of runs: from which run on is the level another one, and how sure is that?
//!
//! # How it is computed
//!
//! A step before a run splits the series in two. The split that explains most of the squared deviations is the candidate; how often
//! a series without any step has as good a split by chance gives its p value. From [`ENOUGH`] values on, that is counted over orders
//! of the values themselves (a permutation test: no distribution is assumed, so a few outliers do not make a step); few values have
//! too few orders for that, so they are compared with series of normal noise of the same length. Where a step is sure, both parts
//! are searched again (binary segmentation: Scott and Knott 1974, Vostrikova 1981). Values that are all positive are compared as
//! logarithms: costs vary in proportion to their size.
//!
//! # What fools it
//!
//! Runs must be independent. A machine that warms up, or a slow drift, is described by one or more steps. Fewer than [`LEAST`]
//! values tell nothing, and a step needs two values on either side: that of the last run alone cannot be told from an outlier.

use crate::Interval;
use crate::normal::student_quantile;
use crate::resample::mean;
use etwhy_base::rng::Rng;

/// Values below which there is no answer.
pub const LEAST: usize = 5;
/// From this many values on no distribution is assumed.
pub const ENOUGH: usize = 12;
/// Values that a level needs.
const LEVEL: usize = 2;
/// Series of chance that a split is compared with.
const DRAWS: usize = 20_000;
/// After so many of them, a split that is nothing special is given up.
const FIRST_DRAWS: usize = 500;

/// The level changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The first value of the new level.
    pub at: usize,
    /// Mean of the level before, back to the step before it. Geometric, if all values of the series are positive.
    pub before: f64,
    /// Mean of the new level, up to the next step.
    pub after: f64,
    /// `after / before` with its interval of 95 %; `None` if a value of the series is not positive.
    pub ratio: Option<Interval>,
    /// Probability that a series without a step has as good a split.
    pub p: f64,
}

/// Steps whose p value is below `alpha`, in order. Empty for fewer than [`LEAST`] values, or if one is not finite.
pub fn steps(values: &[f64], alpha: f64) -> Vec<Step> {
    if values.len() < LEAST || values.iter().any(|value| !value.is_finite()) {
        return Vec::new();
    }
    let positive = values.iter().all(|value| *value > 0.0);
    let scaled: Vec<f64> = if positive { values.iter().map(|v| v.ln()).collect() } else { values.to_vec() };
    let mut found = search(&scaled, alpha);
    found.sort_by_key(|(at, _)| *at);
    let ends: Vec<usize> = found.iter().map(|(at, _)| *at).chain([values.len()]).collect();
    let mut start = 0;
    let mut steps = Vec::new();
    for ((at, p), end) in found.into_iter().zip(ends.into_iter().skip(1)) {
        let (old, new) = (scaled.get(start..at).unwrap_or(&[]), scaled.get(at..end).unwrap_or(&[]));
        let level = |part: &[f64]| if positive { mean(part).exp() } else { mean(part) };
        steps.push(Step {
            at,
            before: level(old),
            after: level(new),
            ratio: positive.then(|| ratio(old, new)),
            p,
        });
        start = at;
    }
    steps
}

/// Finds the best split, and if it is sure those of both sides, and so on: as often as there are steps, so without recursion.
fn search(values: &[f64], alpha: f64) -> Vec<(usize, f64)> {
    let mut found = Vec::new();
    let mut open = vec![(values, 0)];
    while let Some((part, from)) = open.pop() {
        let Some((at, explained)) = best_split(part) else { continue };
        let p = chance(part, explained, alpha);
        if p < alpha {
            let (left, right) = part.split_at(at);
            found.push((from + at, p));
            open.extend([(left, from), (right, from + at)]);
        }
    }
    found
}

/// The best split, as the place of the first value after it, and the share of the squared deviations that it explains. `None` if there
/// are too few values or they are all equal.
fn best_split(values: &[f64]) -> Option<(usize, f64)> {
    let n = values.len();
    if n < LEAST {
        return None;
    }
    let center = mean(values);
    let whole: f64 = values.iter().map(|value| (value - center).powi(2)).sum();
    // Less than what rounding leaves of equal values.
    if whole <= n as f64 * (center * 1e-12).powi(2) {
        return None;
    }
    let (mut best, mut sum) = ((0, 0.0), 0.0);
    for (at, value) in (1..).zip(values.iter().take(n - LEVEL)) {
        sum += value - center;
        let explained = sum * sum * n as f64 / (at * (n - at)) as f64;
        if at >= LEVEL && explained > best.1 {
            best = (at, explained);
        }
    }
    Some((best.0, best.1 / whole))
}

/// How often a series without a step has a split as good.
fn chance(values: &[f64], explained: f64, alpha: f64) -> f64 {
    let mut rng = Rng::new(0x57E9);
    let mut drawn = values.to_vec();
    let mut as_good = 1;
    for draw in 1..=DRAWS {
        if values.len() < ENOUGH {
            drawn.iter_mut().for_each(|value| *value = rng.normal());
        } else {
            for last in (1..drawn.len()).rev() {
                drawn.swap(last, rng.index(last + 1));
            }
        }
        // Orders of the same values differ in the last bits of their sums.
        as_good +=
            usize::from(best_split(&drawn).is_some_and(|(_, other)| other >= explained * (1.0 - 1e-9)));
        // It can only rise: where thousands of series are searched, `alpha` is small, and most are done after a few draws.
        let least = as_good as f64 / (DRAWS + 1) as f64;
        if least >= alpha {
            return least;
        }
        if draw >= FIRST_DRAWS && as_good as f64 > 4.0 * alpha.max(0.02) * draw as f64 {
            return as_good as f64 / (draw + 1) as f64;
        }
    }
    as_good as f64 / (DRAWS + 1) as f64
}

/// The ratio of two levels of logarithms, with Student's interval of 95 %.
fn ratio(old: &[f64], new: &[f64]) -> Interval {
    let squares = |part: &[f64]| part.iter().map(|value| (value - mean(part)).powi(2)).sum::<f64>();
    let (m, n) = (old.len() as f64, new.len() as f64);
    let freedom = (m + n - 2.0).max(1.0);
    let error = ((squares(old) + squares(new)) / freedom * (1.0 / m + 1.0 / n)).sqrt();
    let (value, half) = (mean(new) - mean(old), student_quantile(0.975, freedom) * error);
    Interval { value: value.exp(), low: (value - half).exp(), high: (value + half).exp() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FALSE_ALARMS;

    /// A noisy series; from `at` on everything is `factor` times as much.
    fn series(rng: &mut Rng, n: usize, noise: f64, at: usize, factor: f64) -> Vec<f64> {
        let level = |run: usize| if run >= at { 100.0 * factor } else { 100.0 };
        (0..n).map(|run| level(run) * (noise * rng.normal()).exp()).collect()
    }

    #[test]
    fn a_step_of_5_percent_is_found_where_it_is() {
        let mut rng = Rng::new(11);
        let (mut found, mut held) = (0, 0);
        for _ in 0..200 {
            let n = LEAST + rng.index(46);
            let at = LEVEL + rng.index(n - 2 * LEVEL + 1);
            let all = steps(&series(&mut rng, n, 0.01, at, 1.05), FALSE_ALARMS);
            let near = all.iter().find(|step| step.at.abs_diff(at) <= 1);
            found += usize::from(near.is_some());
            held += usize::from(near.and_then(|step| step.ratio).is_some_and(|ratio| ratio.holds(1.05)));
        }
        println!("found {found} of 200, interval holds the truth in {held}");
        assert!(found >= 180 && held >= 170, "{found} {held}");
    }

    /// Share of series without a step that have one.
    fn false_alarms(mut draw: impl FnMut(&mut Rng) -> f64) -> f64 {
        let mut rng = Rng::new(12);
        let wrong = (0..400).filter(|_| {
            let n = LEAST + rng.index(46);
            let values: Vec<f64> = (0..n).map(|_| draw(&mut rng)).collect();
            !steps(&values, FALSE_ALARMS).is_empty()
        });
        wrong.count() as f64 / 400.0
    }

    #[test]
    fn quiet_series_have_no_step_whatever_their_noise_looks_like() {
        let normal = false_alarms(|rng| 100.0 * (0.01 * rng.normal()).exp());
        let skewed = false_alarms(|rng| 100.0 + rng.exponential());
        // One run in ten has a visitor.
        let outliers = false_alarms(|rng| 100.0 + rng.normal() + if rng.index(10) == 0 { 30.0 } else { 0.0 });
        println!("false alarms: normal {normal:.3} skewed {skewed:.3} outliers {outliers:.3}");
        for share in [normal, skewed, outliers] {
            assert!(share <= 0.05, "{share}");
        }
    }

    /// Of thousands of courses each is asked for more than draws can show: that costs next to nothing.
    #[test]
    fn what_no_draw_can_show_is_not_drawn() {
        let values: Vec<f64> = (0..3_000).map(|n| if n < 1_500 { 1.0 } else { 2.0 }).collect();
        // 20,000 draws of each would take hours.
        for _ in 0..1_000 {
            assert!(steps(&values, 0.05 / 2_000.0).is_empty());
        }
    }

    #[test]
    fn several_steps_and_their_levels() {
        let values: Vec<f64> = [10.0; 8]
            .into_iter()
            .chain([20.0; 8])
            .chain([5.0; 8])
            .zip([0.0, 0.1, -0.1].into_iter().cycle())
            .map(|(v, d)| v + d)
            .collect();
        let all = steps(&values, 0.05);
        assert_eq!(all.iter().map(|step| step.at).collect::<Vec<_>>(), [8, 16]);
        assert!((all[0].before - 10.0).abs() < 0.1 && (all[0].after - 20.0).abs() < 0.1);
        assert!((all[1].before - 20.0).abs() < 0.1 && (all[1].after - 5.0).abs() < 0.1);
        let ratio = all[1].ratio.unwrap();
        assert!(ratio.holds(0.25) && ratio.high < 0.26);
    }

    #[test]
    fn what_cannot_be_told_is_not() {
        assert!(steps(&[1.0, 1.0, 9.0, 9.0], 0.05).is_empty(), "four runs");
        assert!(steps(&[7.0; 20], 0.05).is_empty(), "nothing varies");
        assert!(steps(&[1.0, 1.0, 1.0, 2.0, f64::NAN, 2.0, 2.0], 0.05).is_empty());
        let mut last = vec![1.0, 1.1, 0.9, 1.0, 1.1, 0.9, 1.0, 1.1];
        last.push(50.0);
        assert!(steps(&last, 0.05).is_empty(), "one run is no level");
    }

    #[test]
    fn from_nothing_to_something_has_no_ratio() {
        let values: Vec<f64> = [0.0; 10].into_iter().chain((0..10).map(|i| 5.0 + f64::from(i % 3))).collect();
        let all = steps(&values, 0.05);
        assert_eq!((all[0].at, all[0].before, all[0].ratio), (10, 0.0, None));
    }
}
