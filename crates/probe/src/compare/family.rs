//! Many comparisons at once, of few rounds.
//!
//! Corrections that look at single p values (Holm, Benjamini and Hochberg) cannot work here: six rounds give no p below 1/32, and
//! twenty series would need 1/400. Instead the rounds of all series are exchanged together, as often as there are ways to do it,
//! and each series is compared with the *largest* statistic of all series under each exchange: Westfall and Young's step-down
//! maxT (*Resampling-Based Multiple Testing*, 1993). It holds the family-wise error rate for any dependence between series, since
//! rounds are exchanged as a whole.
//!
//! * Pairs: the two states of a round change places (the signs of all its differences).
//! * Two files: rounds are dealt to the two sides anew.

use etwhy_stats::rng::Rng;
use std::collections::BTreeMap;

/// Exchanges that are tried if there are more than that: chosen at random, with a fixed seed.
const MOST_EXCHANGES: usize = 2_000;

/// Resolution that is added to every spread: values that repeat exactly would make any difference infinitely sure. On logarithms
/// it is 0.2 %, about what clocks and timer ticks leave.
const RESOLUTION: f64 = 0.002;

/// How much wider intervals of two files are than independent rounds would make them. Rounds of one file resemble each other: with
/// 1, which textbooks have, intervals of recorded runs held the truth in 77 to 89 % instead of 95 % of cases, and 20 to 40 % of
/// comparisons of equal runs gave an alarm. `tests/coverage.rs` shows
/// what these values give; of fewer rounds less can be told about how they hang together.
pub fn caution(rounds: usize) -> f64 {
    if rounds < 10 { 5.0 } else { 2.5 }
}

/// p values, corrected for all of them, of series of differences by round.
pub fn pairs<R: Ord + Copy>(series: &[BTreeMap<R, f64>]) -> Vec<f64> {
    let rounds: Vec<R> = rounds(series.iter());
    let at: Vec<Vec<(usize, f64)>> = series.iter().map(|values| indexed(&rounds, values)).collect();
    let statistic = |signs: &[bool]| -> Vec<f64> {
        at.iter()
            .map(|values| {
                let n = values.len() as f64;
                let sign = |at: usize| if signs.get(at).copied().unwrap_or(false) { -1.0 } else { 1.0 };
                let mean = values.iter().map(|(at, value)| value * sign(*at)).sum::<f64>() / n;
                let squares = values.iter().map(|(_, value)| value * value).sum::<f64>();
                let variance = ((squares - n * mean * mean) / (n - 1.0).max(1.0)).max(0.0);
                mean.abs() / ((variance + RESOLUTION * RESOLUTION) / n).sqrt()
            })
            .collect()
    };
    let count = rounds.len();
    let mut exchanges: Vec<Vec<bool>> = Vec::new();
    if count <= 12 {
        // The other half is its mirror image, with the same statistics.
        for bits in 0..1_usize << count.saturating_sub(1) {
            exchanges.push((0..count).map(|at| bits >> at & 1 == 1).collect());
        }
    } else {
        let mut rng = Rng::new(0xAB);
        exchanges.push(vec![false; count]);
        exchanges.extend((1..MOST_EXCHANGES).map(|_| (0..count).map(|_| rng.bits() & 1 == 1).collect()));
    }
    step_down(&exchanges, 1.0, statistic)
}

/// Values by round, before and after.
pub type TwoSides<R> = (BTreeMap<R, f64>, BTreeMap<R, f64>);

/// The same of series of two samples each, whose rounds are independent.
pub fn samples<R: Ord + Copy>(series: &[TwoSides<R>]) -> Vec<f64> {
    let before: Vec<R> = rounds(series.iter().map(|(before, _)| before));
    let after: Vec<R> = rounds(series.iter().map(|(_, after)| after));
    let (m, n) = (before.len(), after.len());
    let at: Vec<Vec<(usize, f64)>> = series
        .iter()
        .map(|(b, a)| {
            let mut all = indexed(&before, b);
            all.extend(indexed(&after, a).into_iter().map(|(at, value)| (at + m, value)));
            all
        })
        .collect();
    let statistic = |is_after: &[bool]| -> Vec<f64> {
        at.iter()
            .map(|values| {
                // Count, sum and squares of each side.
                let mut sides = [(0.0, 0.0, 0.0); 2];
                for (at, value) in values {
                    let side = usize::from(is_after.get(*at).copied().unwrap_or(false));
                    if let Some((count, sum, squares)) = sides.get_mut(side) {
                        (*count, *sum, *squares) = (*count + 1.0, *sum + value, *squares + value * value);
                    }
                }
                let [(b, spread_b), (a, spread_a)] = sides.map(|(count, sum, squares)| {
                    let mean = sum / count;
                    let variance = ((squares - count * mean * mean) / (count - 1.0_f64).max(1.0)).max(0.0);
                    (mean, (variance + RESOLUTION * RESOLUTION) / count)
                });
                let t = (a - b).abs() / (spread_a + spread_b).sqrt();
                // A deal that leaves a side empty says nothing.
                if t.is_finite() { t } else { 0.0 }
            })
            .collect()
    };
    let seen: Vec<bool> = (0..m + n).map(|at| at >= m).collect();
    step_down(&deals(seen, n), caution(m.min(n)), statistic)
}

/// All ways to choose `n` of the places; the first is the one that was seen.
fn deals(seen: Vec<bool>, n: usize) -> Vec<Vec<bool>> {
    let total = seen.len();
    let ways = (0..n).fold(1.0, |ways, i| ways * (total - i) as f64 / (i + 1) as f64);
    let mut all = vec![seen.clone()];
    if ways <= MOST_EXCHANGES as f64 && total < 24 {
        for bits in 0_u32..1 << total {
            if bits.count_ones() as usize == n {
                all.push((0..total).map(|at| bits >> at & 1 == 1).collect());
            }
        }
        // The one that was seen stands there twice.
        all.swap_remove(0);
        if let Some(at) = all.iter().position(|deal| *deal == seen) {
            all.swap(0, at);
        }
        return all;
    }
    let mut rng = Rng::new(0xAB);
    let mut deal = seen;
    for _ in 1..MOST_EXCHANGES {
        for at in (1..total).rev() {
            deal.swap(at, rng.below(at + 1));
        }
        all.push(deal.clone());
    }
    all
}

/// Westfall and Young's step-down procedure. The first exchange is none. What was seen counts for `caution` times less.
fn step_down(exchanges: &[Vec<bool>], caution: f64, statistic: impl Fn(&[bool]) -> Vec<f64>) -> Vec<f64> {
    let Some(seen) = exchanges.first().map(|first| statistic(first)) else { return Vec::new() };
    let mut order: Vec<usize> = (0..seen.len()).collect();
    order.sort_by(|a, b| seen.get(*b).partial_cmp(&seen.get(*a)).unwrap_or(std::cmp::Ordering::Equal));
    let mut reached = vec![0_usize; seen.len()];
    for exchange in exchanges {
        let now = statistic(exchange);
        let mut largest = 0.0_f64;
        for at in order.iter().rev() {
            largest = largest.max(now.get(*at).copied().unwrap_or(0.0));
            // Rounding must not make equal statistics different.
            let limit = seen.get(*at).copied().unwrap_or(0.0) / caution * (1.0 - 1e-9);
            if let Some(count) = reached.get_mut(*at) {
                *count += usize::from(largest >= limit);
            }
        }
    }
    let mut p = vec![1.0; seen.len()];
    let mut least = 0.0_f64;
    for at in order {
        let share = reached.get(at).copied().unwrap_or(0) as f64 / exchanges.len().max(1) as f64;
        least = least.max(share);
        if let Some(slot) = p.get_mut(at) {
            *slot = least;
        }
    }
    p
}

fn rounds<'a, R: Ord + Copy + 'a>(series: impl Iterator<Item = &'a BTreeMap<R, f64>>) -> Vec<R> {
    let mut all: Vec<R> = series.flat_map(|values| values.keys().copied()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn indexed<R: Ord + Copy>(rounds: &[R], values: &BTreeMap<R, f64>) -> Vec<(usize, f64)> {
    values.iter().filter_map(|(round, value)| Some((rounds.binary_search(round).ok()?, *value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_round(values: &[f64]) -> BTreeMap<u32, f64> {
        (0..).zip(values.iter().copied()).collect()
    }

    #[test]
    fn six_equal_signs_are_one_in_32_however_many_series_there_are() {
        let clear = by_round(&[0.70, 0.72, 0.69, 0.71, 0.70, 0.68]);
        let mut series = vec![clear];
        for k in 0..20_u32 {
            let noise: Vec<f64> =
                (0..6_u32).map(|r| f64::from((r * 7 + k * 13) % 11) / 11.0 - 0.45).collect();
            series.push(by_round(&noise));
        }
        let p = pairs(&series);
        assert_eq!(p[0], 1.0 / 32.0);
        assert!(p[1..].iter().all(|p| *p > 0.05), "{p:?}");
    }

    #[test]
    fn two_samples_of_four_by_hand() {
        // 70 deals; the one seen and its mirror image are the only ones as clear.
        let p = samples(&[(by_round(&[1.0, 2.0, 3.0, 4.0]), by_round(&[11.0, 12.0, 13.0, 14.0]))]);
        assert_eq!(p, [2.0 / 70.0]);
        // t is 11 here, and 4 after caution: more than the 2.2 of the next best deals.
        assert_eq!(samples::<u32>(&[]), Vec::<f64>::new());
        assert_eq!(pairs::<u32>(&[]), Vec::<f64>::new());
    }
}
