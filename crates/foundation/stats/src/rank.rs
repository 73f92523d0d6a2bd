//! Rank statistics: they look at order only, so outliers and odd distributions do not fool them.
//!
//! # What fools them
//! All of them take values as independent. Costs of neighbouring calls are not quite: small p values are smaller
//! than they should be.

use crate::normal::two_sided;
use crate::percentile::{median, weighted_percentile};
use etwhy_base::rng::Rng;

/// Two samples compared by ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MannWhitney {
    /// How many pairs (before, after) have the larger value after, ties as halves.
    pub u: f64,
    /// `u` as a share of all pairs: the probability that a value after is larger than one before. 0.5: no difference.
    pub superiority: f64,
    /// Probability of a difference as large by chance, two-sided: normal approximation with ties and continuity
    /// correction, good from about 8 values each.
    pub p: f64,
}

/// The test of Mann and Whitney (Wilcoxon's rank sum). `None` for an empty sample.
pub fn mann_whitney(before: &[f64], after: &[f64]) -> Option<MannWhitney> {
    let (m, n) = (before.len() as f64, after.len() as f64);
    if before.is_empty() || after.is_empty() {
        return None;
    }
    let mut all: Vec<(f64, bool)> =
        before.iter().map(|&v| (v, false)).chain(after.iter().map(|&v| (v, true))).collect();
    all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let (mut rank_sum, mut ties, mut before_these) = (0.0, 0.0, 0.0);
    for group in all.chunk_by(|a, b| a.0 == b.0) {
        let size = group.len() as f64;
        let rank = before_these + (size + 1.0) / 2.0;
        rank_sum += rank * group.iter().filter(|(_, after)| *after).count() as f64;
        ties += size.powi(3) - size;
        before_these += size;
    }
    let u = rank_sum - n * (n + 1.0) / 2.0;
    let total = m + n;
    let variance = m * n / 12.0 * (total + 1.0 - ties / (total * (total - 1.0)).max(1.0));
    let distance = ((u - m * n / 2.0).abs() - 0.5).max(0.0);
    let p = if variance > 0.0 { two_sided(distance / variance.sqrt()) } else { 1.0 };
    Some(MannWhitney { u, superiority: u / (m * n), p })
}

/// Differences that are looked at; from more a seeded part is drawn.
const MOST_PAIRS: usize = 1 << 20;

/// Median of all differences after - before (Hodges and Lehmann 1963). `None` for an empty sample.
pub fn hodges_lehmann(before: &[f64], after: &[f64]) -> Option<f64> {
    median(&mut pairs(before, after, |b, a| a - b))
}

/// Median of all quotients after / before of positive values: the typical factor.
pub fn median_ratio(before: &[f64], after: &[f64]) -> Option<f64> {
    let positive = |values: &[f64]| values.iter().copied().filter(|&v| v > 0.0).collect::<Vec<f64>>();
    median(&mut pairs(&positive(before), &positive(after), |b, a| a / b))
}

fn pairs(before: &[f64], after: &[f64], figure: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    if before.len().saturating_mul(after.len()) <= MOST_PAIRS {
        return before
            .iter()
            .flat_map(|&b| after.iter().map(move |&a| (b, a)))
            .map(|(b, a)| figure(b, a))
            .collect();
    }
    let mut rng = Rng::new(0x5EED);
    let mut one_of = |values: &[f64]| values.get(rng.index(values.len())).copied().unwrap_or(f64::NAN);
    (0..MOST_PAIRS).map(|_| (one_of(before), one_of(after))).map(|(b, a)| figure(b, a)).collect()
}

/// Whether values rise or fall in their order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Kendall's tau: share of pairs that rise less that of pairs that fall, -1 to 1.
    pub tau: f64,
    /// Probability of a trend as clear by chance, two-sided.
    pub p: f64,
    /// Theil-Sen slope: median of the slopes of all pairs, in units of y for each unit of x.
    pub slope: f64,
}

/// Points that a trend is made from; of more, every k-th is taken.
const MOST_POINTS: usize = 2_000;

/// The trend of `points` (x, y), sorted by x: Mann and Kendall's test with Theil and Sen's slope. `None` for fewer than three
/// points.
pub fn mann_kendall(points: &[(f64, f64)]) -> Option<Trend> {
    let every = points.len().div_ceil(MOST_POINTS).max(1);
    let points: Vec<(f64, f64)> = points.iter().step_by(every).copied().collect();
    let n = points.len() as f64;
    if points.len() < 3 {
        return None;
    }
    let mut score = 0.0;
    let mut slopes: Vec<f64> = Vec::with_capacity(points.len() * (points.len() - 1) / 2);
    for (i, &(x, y)) in points.iter().enumerate() {
        for &(x2, y2) in points.iter().skip(i + 1) {
            if x2 > x {
                slopes.push((y2 - y) / (x2 - x));
                score += f64::from(i8::from(y2 > y) - i8::from(y2 < y));
            }
        }
    }
    let mut ys: Vec<f64> = points.iter().map(|p| p.1).collect();
    ys.sort_unstable_by(f64::total_cmp);
    let ties: f64 = ys
        .chunk_by(|a, b| a == b)
        .map(|group| group.len() as f64)
        .map(|size| size * (size - 1.0) * (2.0 * size + 5.0))
        .sum();
    let variance = (n * (n - 1.0) * (2.0 * n + 5.0) - ties) / 18.0;
    let p = if variance > 0.0 { two_sided((score.abs() - 1.0).max(0.0) / variance.sqrt()) } else { 1.0 };
    let pairs = slopes.len().max(1) as f64;
    Some(Trend { tau: score / pairs, p, slope: median(&mut slopes)? })
}

/// Middle half of values: how far they spread (interquartile range).
pub fn spread(values: &[f64]) -> Option<f64> {
    let weighted: Vec<(f64, f64)> = values.iter().map(|&v| (v, 1.0)).collect();
    Some(weighted_percentile(&weighted, 0.75)? - weighted_percentile(&weighted, 0.25)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mann_whitney_by_hand() {
        // Pairs with the larger value after: 3>1 3>2 5>1 5>2 5>4, that is 5 of 6.
        let test = mann_whitney(&[1.0, 2.0, 4.0], &[3.0, 5.0]).unwrap();
        assert_eq!(test.u, 5.0);
        assert!((test.superiority - 5.0 / 6.0).abs() < 1e-12);
        // scipy.stats.mannwhitneyu([19,22,16,29,24], [20,11,17,12], method="asymptotic"): U1 = 17, p = 0.11134.
        let test = mann_whitney(&[20.0, 11.0, 17.0, 12.0], &[19.0, 22.0, 16.0, 29.0, 24.0]).unwrap();
        assert_eq!(test.u, 17.0);
        assert!((test.p - 0.111_346_88).abs() < 1e-5, "{}", test.p);
        let equal = mann_whitney(&[1.0; 5], &[1.0; 5]).unwrap();
        assert_eq!((equal.superiority, equal.p), (0.5, 1.0));
        assert_eq!(mann_whitney(&[], &[1.0]), None);
    }

    #[test]
    fn hodges_lehmann_by_hand() {
        // Differences: 9 8 7, 19 18 17.
        assert_eq!(hodges_lehmann(&[1.0, 2.0, 3.0], &[10.0, 20.0]), Some(13.0));
        assert_eq!(median_ratio(&[1.0, 2.0, 0.0], &[8.0]), Some(6.0));
        assert_eq!(hodges_lehmann(&[], &[1.0]), None);
        let many: Vec<f64> = (0..2_000).map(f64::from).collect();
        let more: Vec<f64> = many.iter().map(|v| v + 500.0).collect();
        assert!((hodges_lehmann(&many, &more).unwrap() - 500.0).abs() < 10.0);
    }

    #[test]
    fn trends_by_hand() {
        // y = 1 3 2 4: five pairs rise, one falls. Slopes: 2 -1 2, .5 .5, 1.
        let points = [(0.0, 1.0), (1.0, 3.0), (2.0, 2.0), (3.0, 4.0)];
        let trend = mann_kendall(&points).unwrap();
        assert!((trend.tau - 4.0 / 6.0).abs() < 1e-12);
        assert_eq!(trend.slope, 0.75);
        // Variance 4*3*13/18 = 8.667, z = 3 / 2.944 = 1.019, p = 0.308.
        assert!((trend.p - 0.3082).abs() < 1e-3, "{}", trend.p);
        let flat = mann_kendall(&[(0.0, 1.0), (1.0, 1.0), (2.0, 1.0)]).unwrap();
        assert_eq!((flat.tau, flat.p, flat.slope), (0.0, 1.0, 0.0));
        assert_eq!(mann_kendall(&points[..2]), None);
    }

    #[test]
    fn an_outlier_moves_no_slope() {
        let mut points: Vec<(f64, f64)> = (0..100).map(|i| (f64::from(i), 2.0 * f64::from(i))).collect();
        points[50].1 = 1e9;
        let trend = mann_kendall(&points).unwrap();
        assert!((trend.slope - 2.0).abs() < 1e-9 && trend.tau > 0.95 && trend.p < 1e-10);
        assert_eq!(spread(&[1.0, 2.0, 3.0, 1e9]), Some(2.0));
    }
}
