//! Many comparisons at once, of few rounds.
//!
//! Corrections that look at single p values (Holm, Benjamini and Hochberg) cannot work here: six rounds give no p below 1/32, and
//! twenty series would need 1/400. Instead the rounds of all series are exchanged together, as often as there are ways to do it,
//! and each series is compared with the *largest* statistic of all series under each exchange: Westfall and Young's
//! maxT (*Resampling-Based Multiple Testing*, 1993). It holds the family-wise error rate for any dependence between series, since
//! rounds are exchanged as a whole.
//!
//! Intervals come from the same test: a shift is inside if the test, asked whether the series differs by that shift, does not say no. So
//! an interval excludes no difference exactly if the test shows one, and intervals of all series hold together.
//!
//! * Pairs: the two states of a round change places (the signs of all its differences).
//! * Two files: rounds are dealt to the two sides anew.

use etwhy_base::rng::Rng;
use etwhy_stats::Interval;
use std::collections::BTreeMap;

/// Exchanges that are tried if there are more than that: chosen at random, with a fixed seed.
const MOST_EXCHANGES: usize = 2_000;

/// Resolution that is added to every spread: values that repeat exactly would make any difference infinitely sure. On logarithms
/// it is 0.2 %, about what clocks and timer ticks leave.
const RESOLUTION: f64 = 0.002;

/// How much wider intervals of two files are than independent rounds would make them. Rounds of one file resemble each other: with
/// 1, which textbooks have, intervals of recorded runs held the truth in 77 to 89 % instead of 95 % of cases, and 20 to 40 % of
/// comparisons of equal runs gave an alarm. `tests/all/coverage.rs` shows
/// what these values give; of fewer rounds less can be told about how they hang together.
pub fn caution(rounds: usize) -> f64 {
    if rounds < 10 { 5.0 } else { 2.5 }
}

/// What the test says of one series of a family.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// Probability of such a difference in any of the series, if nothing differs.
    pub p: f64,
    /// By how much the series differs: the mean, and the shifts that the test does not reject at [`ALPHA`].
    pub shift: Interval,
}

/// What an exchange leaves of a series: enough for its statistic after any shift, without the values.
#[derive(Clone, Copy, Debug, Default)]
struct Side {
    count: f64,
    sum: f64,
    squares: f64,
    /// How often a shift counts in the sum: the values that it moves.
    moved: f64,
    /// The sum of those values.
    sum_of_moved: f64,
}

impl Side {
    fn add(&mut self, value: f64, sign: f64, moves: bool) {
        self.count += 1.0;
        self.sum += value * sign;
        self.squares += value * value;
        if moves {
            self.moved += sign;
            self.sum_of_moved += value;
        }
    }

    /// Mean, and its variance, when `shift` is taken away from all values that it moves. `movers`: how many these are.
    fn shifted(&self, shift: f64, movers: f64) -> (f64, f64) {
        let n = self.count;
        let mean = (self.sum - shift * self.moved) / n;
        let squares = self.squares - 2.0 * shift * self.sum_of_moved + shift * shift * movers;
        let variance = ((squares - n * mean * mean) / (n - 1.0).max(1.0)).max(0.0);
        (mean, (variance + RESOLUTION * RESOLUTION) / n)
    }
}

/// The statistic of a series after an exchange.
#[derive(Clone, Copy, Debug)]
enum Exchanged {
    /// Signs of differences have changed.
    Pairs(Side),
    /// Rounds were dealt to the two sides anew.
    Samples([Side; 2]),
}

impl Exchanged {
    fn t(&self, shift: f64) -> f64 {
        let t = match self {
            Exchanged::Pairs(side) => {
                let (mean, spread) = side.shifted(shift, side.count);
                mean.abs() / spread.sqrt()
            }
            Exchanged::Samples([before, after]) => {
                let (b, spread_b) = before.shifted(shift, before.moved);
                let (a, spread_a) = after.shifted(shift, after.moved);
                (a - b).abs() / (spread_a + spread_b).sqrt()
            }
        };
        // A deal that leaves a side empty says nothing.
        if t.is_finite() { t } else { 0.0 }
    }

    /// The shift at which nothing is left of the difference.
    fn centre(&self) -> f64 {
        match self {
            Exchanged::Pairs(side) => side.sum / side.count,
            Exchanged::Samples([before, after]) => after.sum / after.count - before.sum / before.count,
        }
    }
}

/// Judges series of differences by round.
pub fn pairs<R: Ord + Copy>(series: &[BTreeMap<R, f64>]) -> Vec<Judged> {
    let rounds: Vec<R> = rounds(series.iter());
    let at: Vec<Vec<(usize, f64)>> = series.iter().map(|values| indexed(&rounds, values)).collect();
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
    judge(at.len(), &exchanges, 1.0, |series, signs| {
        let mut side = Side::default();
        for (at, value) in at.get(series).into_iter().flatten() {
            let sign = if signs.get(*at).copied().unwrap_or(false) { -1.0 } else { 1.0 };
            side.add(*value, sign, true);
        }
        Exchanged::Pairs(side)
    })
}

/// Values by round, before and after.
pub type TwoSides<R> = (BTreeMap<R, f64>, BTreeMap<R, f64>);

/// The same of series of two samples each, whose rounds are independent.
pub fn samples<R: Ord + Copy>(series: &[TwoSides<R>]) -> Vec<Judged> {
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
    let seen: Vec<bool> = (0..m + n).map(|at| at >= m).collect();
    judge(at.len(), &deals(seen, n), caution(m.min(n)), |series, is_after| {
        let mut sides = [Side::default(); 2];
        for (at, value) in at.get(series).into_iter().flatten() {
            let side = usize::from(is_after.get(*at).copied().unwrap_or(false));
            if let Some(side) = sides.get_mut(side) {
                side.add(*value, 1.0, *at >= m);
            }
        }
        Exchanged::Samples(sides)
    })
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
            deal.swap(at, rng.index(at + 1));
        }
        all.push(deal.clone());
    }
    all
}

/// Judges `count` series, whose statistics `exchanged` gives for each exchange; the first exchange is none. What was seen counts for
/// `caution` times less.
fn judge(
    count: usize,
    exchanges: &[Vec<bool>],
    caution: f64,
    exchanged: impl Fn(usize, &[bool]) -> Exchanged,
) -> Vec<Judged> {
    let all: Vec<Vec<Exchanged>> = (0..count)
        .map(|series| exchanges.iter().map(|exchange| exchanged(series, exchange)).collect())
        .collect();
    // Of each exchange the largest statistic, whose it is, and the largest of the others.
    let mut largest = vec![(0.0_f64, usize::MAX, 0.0_f64); exchanges.len()];
    for (series, own) in all.iter().enumerate() {
        for (exchanged, largest) in own.iter().zip(&mut largest) {
            let t = exchanged.t(0.0);
            if t > largest.0 {
                *largest = (t, series, largest.0);
            } else {
                largest.2 = largest.2.max(t);
            }
        }
    }
    let one = |(series, own): (usize, Vec<Exchanged>)| {
        let of_others = |(t, whose, next): &(f64, usize, f64)| if *whose == series { *next } else { *t };
        Family { caution, all: own.into_iter().zip(largest.iter().map(of_others)).collect() }.judged()
    };
    all.into_iter().enumerate().map(one).collect()
}

/// One series among its family: after each exchange its own statistic, and the largest of the others.
struct Family {
    caution: f64,
    all: Vec<(Exchanged, f64)>,
}

/// Steps when the end of an interval is looked for, and halvings when it is found.
const STEPS: usize = 60;
const HALVINGS: usize = 16;

impl Family {
    fn judged(&self) -> Judged {
        let Some((seen, _)) = self.all.first() else {
            return Judged {
                p: 1.0,
                shift: Interval { value: 0.0, low: f64::NEG_INFINITY, high: f64::INFINITY },
            };
        };
        let centre = seen.centre();
        let p = self.p(0.0);
        let end = |sign: f64| self.end(centre, sign, !self.holds(0.0));
        Judged { p, shift: Interval { value: centre, low: end(-1.0), high: end(1.0) } }
    }

    /// The exchanges that give as much as was seen, if the series differs by `shift`.
    fn reached(&self, shift: f64) -> impl Iterator<Item = &(Exchanged, f64)> {
        let seen = self.all.first().map_or(0.0, |(first, _)| first.t(shift));
        // Rounding must not make equal statistics different.
        let limit = seen / self.caution * (1.0 - 1e-9);
        self.all.iter().filter(move |(own, others)| *others >= limit || own.t(shift) >= limit)
    }

    /// Their share.
    fn p(&self, shift: f64) -> f64 {
        self.reached(shift).count() as f64 / self.all.len().max(1) as f64
    }

    /// Whether a shift is not rejected: whether `p` is above the limit, without counting on.
    fn holds(&self, shift: f64) -> bool {
        let most = ALPHA * self.all.len().max(1) as f64;
        self.reached(shift).zip(1_u32..).any(|(_, count)| f64::from(count) > most)
    }

    /// The last shift on one side of the centre that is not rejected. Whether 0 is rejected decides on which side of it the end lies,
    /// so that interval and p never contradict each other.
    fn end(&self, centre: f64, sign: f64, zero_is_rejected: bool) -> f64 {
        let zero_is_there = -centre * sign > 0.0;
        let (mut inside, mut outside) = match (zero_is_there, zero_is_rejected) {
            (true, true) => (centre, Some(0.0)),
            (true, false) => (0.0, None),
            (false, _) => (centre, None),
        };
        let mut step = centre.abs().max(RESOLUTION);
        for _ in 0..STEPS {
            if outside.is_some() {
                break;
            }
            let next = inside + sign * step;
            if self.holds(next) {
                inside = next;
            } else {
                outside = Some(next);
            }
            step *= 2.0;
        }
        let Some(mut outside) = outside else { return sign * f64::INFINITY };
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(inside, outside);
            if self.holds(middle) {
                inside = middle;
            } else {
                outside = middle;
            }
        }
        inside
    }
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

/// Family-wise rate of false alarms that is accepted.
pub const ALPHA: f64 = 0.05;

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
        let all = pairs(&series);
        assert_eq!(all[0].p, 1.0 / 32.0);
        assert!(all[1..].iter().all(|one| one.p > 0.05), "{all:?}");
        // The interval says the same, and holds what was put in.
        assert!(all[0].shift.low > 0.0 && all[0].shift.holds(0.70), "{:?}", all[0]);
        assert!(all[1..].iter().all(|one| one.shift.holds(0.0)), "{all:?}");
    }

    #[test]
    fn two_samples_of_four_by_hand() {
        // 70 deals; the one seen and its mirror image are the only ones as clear.
        let all = samples(&[(by_round(&[1.0, 2.0, 3.0, 4.0]), by_round(&[11.0, 12.0, 13.0, 14.0]))]);
        assert_eq!((all.len(), all[0].p), (1, 2.0 / 70.0));
        assert!(all[0].shift.low > 0.0 && all[0].shift.holds(10.0), "{all:?}");
        // t is 11 here, and 4 after caution: more than the 2.2 of the next best deals.
        assert_eq!(samples::<u32>(&[]), []);
        assert_eq!(pairs::<u32>(&[]), []);
    }

    /// An interval excludes no difference exactly if the test shows one: whatever the values, and beside whatever others.
    #[test]
    fn interval_and_p_are_one_statement() {
        let mut rng = Rng::new(5);
        let (mut shown, mut not) = (0, 0);
        for trial in 0..60_u32 {
            let effects: Vec<f64> =
                (0..8).map(|_| if rng.uniform() < 0.4 { 4.0 * rng.uniform() } else { 0.0 }).collect();
            let mut draw = |effect: f64| {
                let values: Vec<f64> = (0..6 + trial % 3)
                    .map(|_| effect + 0.3 * rng.normal() + if rng.uniform() < 0.05 { 3.0 } else { 0.0 })
                    .collect();
                by_round(&values)
            };
            let differences: Vec<BTreeMap<u32, f64>> = effects.iter().map(|effect| draw(*effect)).collect();
            let sides: Vec<TwoSides<u32>> = effects.iter().map(|effect| (draw(0.0), draw(*effect))).collect();
            let mut all = pairs(&differences);
            if trial < 10 {
                all.extend(samples(&sides));
            }
            for one in all {
                let Interval { value, low, high } = one.shift;
                assert!(low <= value && value <= high && low.is_finite() && high.is_finite(), "{one:?}");
                assert_eq!(one.p <= crate::compare::ALPHA, !one.shift.holds(0.0), "{one:?}");
                if one.shift.holds(0.0) { not += 1 } else { shown += 1 }
            }
        }
        assert!(shown > 50 && not > 50, "{shown} {not}");
    }
}
