//! Intervals for few values without a guess about their distribution.
//!
//! * [`signed_rank`]: the typical value of differences of pairs (Hodges and Lehmann's estimate, the interval of Wilcoxon's
//!   signed-rank test). It needs that differences are symmetric about it.
//! * [`shift`]: by how much one sample lies above another (the interval of Mann and Whitney's test). It needs that both differ by
//!   their place only.
//!
//! Both are exact for small samples: the distribution of ranks is counted, not approximated. Six pairs are the fewest that an
//! interval of 95 % can be made from: all six of one sign come by chance in 2 of 64 cases. Hollander, Wolfe, Chicken,
//! *Nonparametric Statistical Methods* (2014), 3.3 and 4.3.
//!
//! # What fools them
//! Values that depend on each other: rounds while a machine warms up. Pairs measured next to each other, in changing order, undo
//! most of that; two samples taken one after the other do not.

use crate::Interval;
use crate::normal::quantile;
use crate::percentile::median;

/// Samples up to this size are counted exactly; larger ones use the normal approximation.
const MOST_COUNTED: usize = 40;

/// Values that are looked at of each sample; more are thinned evenly.
const MOST: usize = 1_000;

/// The typical difference with its interval. `None` if there are too few for this confidence, or values that are not finite.
pub fn signed_rank(differences: &[f64], confidence: f64) -> Option<Interval> {
    let values = thin(differences)?;
    let n = values.len();
    let mut walsh = Vec::with_capacity(n * (n + 1) / 2);
    for (at, a) in values.iter().enumerate() {
        walsh.extend(values.iter().skip(at).map(|b| f64::midpoint(*a, *b)));
    }
    let cut = if n <= MOST_COUNTED {
        cut(&signed_rank_counts(n), confidence)?
    } else {
        let n = n as f64;
        approximate(n * (n + 1.0) / 4.0, n * (n + 1.0) * (2.0 * n + 1.0) / 24.0, confidence)
    };
    ends(walsh, cut)
}

/// By how much `after` lies above `before`, with the interval. `None` if there are too few for this confidence, or values that
/// are not finite.
pub fn shift(before: &[f64], after: &[f64], confidence: f64) -> Option<Interval> {
    let (before, after) = (thin(before)?, thin(after)?);
    let (m, n) = (before.len(), after.len());
    let differences: Vec<f64> = before.iter().flat_map(|b| after.iter().map(move |a| a - b)).collect();
    let cut = if m <= MOST_COUNTED && n <= MOST_COUNTED {
        cut(&rank_sum_counts(m, n), confidence)?
    } else {
        let (m, n) = (m as f64, n as f64);
        approximate(m * n / 2.0, m * n * (m + n + 1.0) / 12.0, confidence)
    };
    ends(differences, cut)
}

fn thin(values: &[f64]) -> Option<Vec<f64>> {
    if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let every = values.len().div_ceil(MOST).max(1);
    Some(values.iter().step_by(every).copied().collect())
}

/// How many of the lowest and of the highest values an interval leaves out, if all of them are possible outcomes of equal
/// probability: the largest number whose tail is not above half of what is left of `confidence`.
fn cut(counts: &[f64], confidence: f64) -> Option<usize> {
    let tail = (1.0 - confidence) / 2.0 * counts.iter().sum::<f64>();
    let mut sum = 0.0;
    let mut within = 0;
    for count in counts {
        sum += count;
        if sum > tail {
            break;
        }
        within += 1;
    }
    // The tail of the statistic being at most k holds k + 1 outcomes: the ends are the (k + 1)-th values from outside.
    (within > 0).then(|| within - 1)
}

fn approximate(mean: f64, variance: f64, confidence: f64) -> usize {
    (mean - quantile(f64::midpoint(1.0, confidence)) * variance.sqrt()).floor().max(0.0) as usize
}

fn ends(mut values: Vec<f64>, cut: usize) -> Option<Interval> {
    values.sort_unstable_by(f64::total_cmp);
    let low = *values.get(cut)?;
    let high = *values.get(values.len().checked_sub(cut + 1)?)?;
    let value = median(&mut values)?;
    Some(Interval { value, low, high })
}

/// Of all signs that n ranks may have, how many give the sum 0, 1, 2, … of the positive ones.
fn signed_rank_counts(n: usize) -> Vec<f64> {
    let top = n * (n + 1) / 2;
    let mut counts = vec![0.0; top + 1];
    if let Some(first) = counts.first_mut() {
        *first = 1.0;
    }
    for rank in 1..=n {
        for sum in (rank..=top).rev() {
            let add = counts.get(sum - rank).copied().unwrap_or(0.0);
            if let Some(count) = counts.get_mut(sum) {
                *count += add;
            }
        }
    }
    counts
}

/// Of all orders of m and n values, how many have 0, 1, 2, … pairs in which the one of the second sample is the larger.
fn rank_sum_counts(m: usize, n: usize) -> Vec<f64> {
    // Gaussian binomial coefficients: products of (1 - x^(m+i)) / (1 - x^i).
    let top = m * n;
    let mut counts = vec![0.0; top + 1];
    if let Some(first) = counts.first_mut() {
        *first = 1.0;
    }
    for i in 1..=n {
        for at in (m + i..=top).rev() {
            let take = counts.get(at - m - i).copied().unwrap_or(0.0);
            if let Some(count) = counts.get_mut(at) {
                *count -= take;
            }
        }
        for at in i..=top {
            let add = counts.get(at - i).copied().unwrap_or(0.0);
            if let Some(count) = counts.get_mut(at) {
                *count += add;
            }
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_base::rng::Rng;

    #[test]
    fn counts_are_those_of_the_tables() {
        // Three ranks: sums 0 1 2 3 3 4 5 6.
        assert_eq!(signed_rank_counts(3), [1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0]);
        // Two and two: six orders, U = 0 1 2 2 3 4.
        assert_eq!(rank_sum_counts(2, 2), [1.0, 1.0, 2.0, 1.0, 1.0]);
        assert_eq!(rank_sum_counts(6, 6).iter().sum::<f64>(), 924.0);
        // Wilcoxon's table, two-sided 0.05: n = 6: 0, 8: 3, 10: 8, 20: 52. Mann and Whitney's: 5, 5: 2; 6, 6: 5; 10, 10: 23.
        for (n, critical) in [(6, 0), (8, 3), (10, 8), (20, 52)] {
            assert_eq!(cut(&signed_rank_counts(n), 0.95), Some(critical), "{n}");
        }
        for (m, n, critical) in [(5, 5, 2), (6, 6, 5), (10, 10, 23)] {
            assert_eq!(cut(&rank_sum_counts(m, n), 0.95), Some(critical), "{m} {n}");
        }
    }

    #[test]
    fn too_few_give_no_interval() {
        assert_eq!(signed_rank(&[1.0; 5], 0.95), None);
        let six = signed_rank(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0.95).unwrap();
        assert_eq!((six.low, six.value, six.high), (1.0, 3.5, 6.0));
        assert_eq!(shift(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0], 0.95), None);
        assert!(shift(&[1.0, 2.0, 3.0, 4.0], &[4.0, 5.0, 6.0, 7.0], 0.95).is_some());
        assert_eq!(signed_rank(&[f64::NAN; 9], 0.95), None);
        assert_eq!(shift(&[], &[1.0], 0.95), None);
        assert!(signed_rank(&vec![1.0; 5_000], 0.95).is_some());
    }

    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        let mut rng = Rng::new(11);
        for n in [6, 9, 15, 60] {
            let (mut pairs, mut shifts) = (0, 0);
            for _ in 0..1000 {
                let values: Vec<f64> = (0..n).map(|_| 3.0 + rng.normal()).collect();
                let other: Vec<f64> = (0..n).map(|_| rng.normal()).collect();
                pairs += u32::from(signed_rank(&values, 0.95).unwrap().holds(3.0));
                shifts += u32::from(shift(&other, &values, 0.95).unwrap().holds(3.0));
            }
            assert!((935..=985).contains(&pairs), "{n}: {pairs}");
            assert!((935..=985).contains(&shifts), "{n}: {shifts}");
        }
    }
}
