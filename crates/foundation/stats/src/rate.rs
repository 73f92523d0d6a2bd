//! Rates: counts of events over times or other exposures.
//!
//! # What fools it
//! The interval is that of a Poisson process. Events that come in bursts vary more: then it is too narrow, and rates of
//! several stretches (per second) belong into [`crate::resample`].

use crate::Interval;
use crate::normal::quantile;

/// The ratio of the rate `after` to the rate `before`, each a count and the time in which it was counted. `None` where a time is
/// not positive or both counts are 0.
///
/// Given the sum of both counts the second is binomial, so an interval of its share (Wilson's) is one of the ratio
/// (Przyborowski and Wilenski's conditioning). A count of 0 gives a ratio of 0 or infinity with an interval that is
/// closed on the other side.
pub fn ratio(before: (f64, f64), after: (f64, f64), confidence: f64) -> Option<Interval> {
    let valid =
        |(count, time): (f64, f64)| count >= 0.0 && count.is_finite() && time > 0.0 && time.is_finite();
    let sum = before.0 + after.0;
    if !valid(before) || !valid(after) || sum <= 0.0 {
        return None;
    }
    let share = after.0 / sum;
    let (low, high) = wilson(share, sum, confidence);
    let scale = before.1 / after.1;
    let odds = |p: f64| if p >= 1.0 { f64::INFINITY } else { scale * p / (1.0 - p) };
    Some(Interval { value: odds(share), low: odds(low), high: odds(high) })
}

/// A sum of independent pieces, and the exposure (a time, a capacity) in which they were collected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sum {
    /// The sum.
    pub total: f64,
    /// Size of a piece in the unit of the sum: its relative variance is `piece / total`. That of a compound Poisson process is the sum of
    /// squares divided by the sum; pieces that come in bursts count as larger ones ([`crate::dispersion`]).
    pub piece: f64,
    /// The exposure.
    pub exposure: f64,
}

/// The ratio of two sums per exposure, each taken for a count of its pieces, so that counts and sizes vary alike. A sum of 0 takes the
/// other one's piece. `None` as for [`ratio`].
pub fn ratio_of_sums(before: Sum, after: Sum, confidence: f64) -> Option<Interval> {
    let own = |sum: Sum, other: Sum| if sum.total > 0.0 { sum.piece } else { other.piece };
    let (b, a) = (own(before, after), own(after, before));
    if !(b > 0.0 && b.is_finite() && a > 0.0 && a.is_finite()) {
        return None;
    }
    ratio((before.total / b, before.exposure / b), (after.total / a, after.exposure / a), confidence)
}

/// Wilson's interval of a share of `count` trials (Wilson 1927).
pub fn wilson(share: f64, count: f64, confidence: f64) -> (f64, f64) {
    let z = quantile(0.5 + confidence / 2.0);
    let z2 = z * z / count;
    let middle = (share + z2 / 2.0) / (1.0 + z2);
    let half = z / (1.0 + z2) * (share * (1.0 - share) / count + z2 / (4.0 * count)).max(0.0).sqrt();
    let low = if share <= 0.0 { 0.0 } else { (middle - half).max(0.0) };
    let high = if share >= 1.0 { 1.0 } else { (middle + half).min(1.0) };
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_base::rng::Rng;

    #[test]
    fn wilson_is_that_of_the_books() {
        // 15 of 20: 0.531 to 0.888 (Brown, Cai, DasGupta 2001 use the same formula).
        let (low, high) = wilson(0.75, 20.0, 0.95);
        assert!((low - 0.531).abs() < 1e-3 && (high - 0.888).abs() < 1e-3, "{low} {high}");
    }

    #[test]
    fn twice_as_many_in_half_the_time_is_four_times_the_rate() {
        let ratio = ratio((100.0, 10.0), (200.0, 5.0), 0.95).unwrap();
        assert!((ratio.value - 4.0).abs() < 1e-12);
        assert!(ratio.low > 3.1 && ratio.high < 5.2, "{ratio:?}");
    }

    #[test]
    fn none_before_has_only_a_lower_end() {
        let from_nothing = ratio((0.0, 10.0), (50.0, 10.0), 0.95).unwrap();
        assert_eq!((from_nothing.value, from_nothing.high), (f64::INFINITY, f64::INFINITY));
        assert!(from_nothing.low > 5.0);
        assert_eq!(ratio((0.0, 1.0), (0.0, 1.0), 0.95), None);
        assert_eq!(ratio((1.0, 0.0), (1.0, 1.0), 0.95), None);
    }

    #[test]
    fn sums_of_few_large_pieces_vary_more() {
        let sum = |total: f64, piece: f64| Sum { total, piece, exposure: 100.0 };
        let fine = ratio_of_sums(sum(20.0, 0.01), sum(22.0, 0.01), 0.95).unwrap();
        let coarse = ratio_of_sums(sum(20.0, 1.0), sum(22.0, 1.0), 0.95).unwrap();
        assert!((fine.value - 1.1).abs() < 1e-9 && !fine.holds(1.0), "{fine:?}");
        assert!((coarse.value - 1.1).abs() < 1e-9 && coarse.holds(1.0), "{coarse:?}");
        // New: only a lower end, and more than chance if it is many pieces.
        let new = ratio_of_sums(sum(0.0, 0.0), sum(20.0, 1.0), 0.95).unwrap();
        assert!(new.value.is_infinite() && new.low > 3.0 && !new.holds(1.0), "{new:?}");
        assert!(ratio_of_sums(sum(0.0, 0.0), sum(2.0, 1.0), 0.95).unwrap().holds(1.0));
        let gone = ratio_of_sums(sum(20.0, 1.0), sum(0.0, 0.0), 0.95).unwrap();
        assert!(gone.value == 0.0 && gone.high < 0.3, "{gone:?}");
        assert_eq!(ratio_of_sums(sum(0.0, 0.0), sum(0.0, 0.0), 0.95), None);
    }

    #[test]
    fn the_interval_holds_the_truth_as_often_as_it_says() {
        let mut rng = Rng::new(11);
        let mut poisson = |mean: f64| {
            let (mut count, mut time) = (0.0, -(1.0 - rng.uniform()).ln());
            while time < mean {
                count += 1.0;
                time -= (1.0 - rng.uniform()).ln();
            }
            count
        };
        let runs = 2_000;
        let held = (0..runs)
            .filter(|_| {
                let (before, after) = (poisson(20.0), poisson(60.0));
                ratio((before, 10.0), (after, 15.0), 0.95).is_some_and(|r| r.holds(2.0))
            })
            .count();
        let share = held as f64 / f64::from(runs);
        println!("Poisson rate ratio: nominal 95 %, held {:.1} %", share * 100.0);
        assert!((0.93..=0.98).contains(&share), "{share}");
    }
}
