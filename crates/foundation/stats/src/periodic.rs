//! Is there a period in counts per bucket of time?
//!
//! The autocorrelation of the counts, smoothed over three buckets so that a period that is no whole number of buckets, or that
//! jitters by one, is seen. The period is the first lag behind the first valley whose correlation is nearly the largest, if its double
//! correlates as well (two bursts at a distance are no period) and if the counts repeat themselves throughout: a computer that is
//! started a dozen times within two hours has some lag at which many starts meet, but no period.

/// A period that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Period {
    /// Length in buckets.
    pub buckets: f64,
    /// Correlation of the counts with themselves one period later, 0 to 1.
    pub strength: f64,
}

/// Lags below this are the width of a burst, not a period.
const SHORTEST: usize = 4;
/// Of white noise over n buckets the correlation of a lag is normal with deviation 1/sqrt(n) (Bartlett); the largest of some hundred
/// lags of 500 buckets reaches about 0.15, smoothing over three adds a factor of up to sqrt(19/9).
const LEAST: f64 = 0.3;
/// A lag counts as nearly the best from this part of the best on: multiples of a period correlate a little less or more by chance.
const NEARLY: f64 = 0.6;
/// What the double of the period has to reach, as a part of the period's own correlation.
const DOUBLE: f64 = 0.5;

/// Parts of the counts that are looked at one by one, each of at least two periods.
const PARTS: usize = 4;
/// What a part has to reach, as a part of the whole's correlation. A storm pauses at times: of three or more parts one may have none.
const PART: f64 = 0.5;

/// Sums of products of the values with those `lag` behind, for each lag. Eight lags at a time go through the values, so that their sums do not
/// wait for each other; each is summed in the order of the values.
fn products(values: &[f64], lags: std::ops::RangeInclusive<usize>) -> Vec<f64> {
    const TOGETHER: usize = 8;
    let (first, last) = lags.into_inner();
    let mut all = Vec::new();
    for begin in (first..=last).step_by(TOGETHER) {
        let later = values.get(begin..).unwrap_or(&[]);
        let mut sums = [0.0; TOGETHER];
        for (value, later) in values.iter().zip(later.array_windows::<TOGETHER>()) {
            for (sum, later) in sums.iter_mut().zip(later) {
                *sum += value * later;
            }
        }
        // All of these lags had so many pairs; each has one more than the next.
        let done = later.len().saturating_sub(TOGETHER - 1);
        for (n, sum) in sums.iter_mut().enumerate() {
            let rest = values.iter().zip(later.get(n..).unwrap_or(&[])).skip(done);
            rest.for_each(|(value, later)| *sum += value * later);
        }
        all.extend_from_slice(&sums);
    }
    all.truncate((last + 1).saturating_sub(first));
    all
}

/// The values of a part, less their mean: where nothing happens nothing repeats itself.
fn about_mean(values: &[f64], from: usize, to: usize) -> Vec<f64> {
    let part = values.get(from..to).unwrap_or(&[]);
    let mean = part.iter().sum::<f64>() / part.len().max(1) as f64;
    part.iter().map(|x| x - mean).collect()
}

/// Whether the counts repeat themselves after `lag` in (nearly) all of their parts.
fn throughout(smooth: &[f64], lag: usize) -> bool {
    let pairs = smooth.len().saturating_sub(lag);
    let parts = (pairs / (2 * lag).max(1)).clamp(1, PARTS);
    let sums: Vec<(f64, f64)> = (0..parts)
        .map(|part| {
            let (from, to) = (pairs * part / parts, pairs * (part + 1) / parts);
            let (now, later) = (about_mean(smooth, from, to), about_mean(smooth, from + lag, to + lag));
            let sum = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            (sum(&now, &later), (sum(&now, &now) * sum(&later, &later)).sqrt())
        })
        .collect();
    let (all, spread) = sums.iter().fold((0.0, 0.0), |(a, b), (c, d)| (a + c, b + d));
    if spread <= 0.0 {
        return false;
    }
    let least = PART * all / spread;
    let good = sums.iter().filter(|(sum, spread)| *spread > 0.0 && sum / spread >= least).count();
    good + usize::from(parts > 2) >= parts
}

/// The period of the counts, if they have one of at least four buckets that fits four times into them.
pub fn period(counts: &[u32]) -> Option<Period> {
    let n = counts.len();
    let longest = n / 4;
    if longest <= SHORTEST {
        return None;
    }
    let at = |i: Option<usize>| i.and_then(|i| counts.get(i)).map_or(0.0, |c| f64::from(*c));
    let smooth: Vec<f64> =
        (0..n).map(|i| at(i.checked_sub(1)) + at(Some(i)) + at(i.checked_add(1))).collect();
    let mean = smooth.iter().sum::<f64>() / n as f64;
    let centred: Vec<f64> = smooth.iter().map(|x| x - mean).collect();
    let variance = centred.iter().map(|x| x * x).sum::<f64>();
    if variance <= 0.0 {
        return None;
    }
    // The biased estimator: products of n - lag pairs over the whole variance, as Box and Jenkins advise, since few pairs scatter.
    // The loss of lag/n is given back, as far as a quarter of the counts allows.
    let correlations = |lags: std::ops::RangeInclusive<usize>| {
        let sums = products(&centred, lags.clone());
        lags.zip(sums).map(move |(lag, sum)| sum / variance * n as f64 / (n - lag.min(n - 1)) as f64)
    };
    let mut all: Vec<f64> = correlations(0..=longest + 1).collect();
    let valley = all.iter().take(longest + 1).position(|r| *r < LEAST / 2.0)?.max(SHORTEST);
    let candidates = all.get(valley..=longest)?;
    let best = candidates.iter().copied().fold(0.0, f64::max);
    if best < LEAST {
        return None;
    }
    // Most counts have no period, and got no further.
    all.extend(correlations(longest + 2..=2 * longest));
    let get = |lag: usize| all.get(lag).copied().unwrap_or(0.0);
    let is_peak = |lag: &usize| {
        get(*lag) >= LEAST.max(NEARLY * best)
            && get(*lag) >= get(lag.saturating_sub(1))
            && get(*lag) >= get(lag + 1)
    };
    let lag = (valley..=longest).find(is_peak)?;
    let strength = get(lag);
    let near_double = (2 * lag).saturating_sub(2)..=2 * lag + 2;
    if near_double.map(get).fold(0.0, f64::max) < DOUBLE * strength {
        return None;
    }
    if !throughout(&smooth, lag) {
        return None;
    }
    // The vertex of the parabola through the peak and its neighbours.
    let (before, after) = (get(lag - 1), get(lag + 1));
    let bend = before - 2.0 * strength + after;
    let shift = if bend < 0.0 { (0.5 * (before - after) / bend).clamp(-0.5, 0.5) } else { 0.0 };
    Some(Period { buckets: lag as f64 + shift, strength: strength.min(1.0) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_base::rng::Rng;

    /// Poisson by multiplying uniforms (Knuth).
    fn poisson(rng: &mut Rng, mean: f64) -> u32 {
        let (limit, mut k, mut p) = ((-mean).exp(), 0, rng.uniform());
        while p > limit {
            k += 1;
            p *= rng.uniform();
        }
        k
    }

    #[test]
    fn periods_of_simulated_storms_are_found() {
        let mut rng = Rng::new(11);
        for (period_buckets, size, noise, jitter) in
            [(25.0, 20.0, 0.3, 0.0), (60.0, 50.0, 1.0, 1.0), (97.3, 40.0, 0.5, 0.5), (200.0, 30.0, 0.2, 1.0)]
        {
            for _ in 0..20 {
                let mut counts: Vec<u32> = (0..2048).map(|_| poisson(&mut rng, noise)).collect();
                let mut at = rng.uniform() * period_buckets;
                while at < 2047.0 {
                    let hit = (at + (rng.uniform() - 0.5) * 2.0 * jitter).max(0.0) as usize;
                    counts[hit] += poisson(&mut rng, size);
                    at += period_buckets;
                }
                let found = period(&counts).unwrap_or_else(|| panic!("no period: {period_buckets}"));
                assert!((found.buckets - period_buckets).abs() < 1.0, "{found:?} {period_buckets}");
                assert!(found.strength > 0.3, "{found:?}");
            }
        }
    }

    #[test]
    fn sums_of_products_are_those_of_one_lag_after_the_other() {
        let mut rng = Rng::new(13);
        for n in [0, 1, 7, 8, 9, 40, 515] {
            let values: Vec<f64> = (0..n).map(|_| rng.uniform() - 0.5).collect();
            let plain =
                |lag: usize| values.iter().zip(values.iter().skip(lag)).fold(0.0, |sum, (a, b)| sum + a * b);
            for (first, last) in [(0, 0), (0, n), (3, n / 2 + 3), (n / 4 + 2, n / 2), (n, n + 20)] {
                // Not nearly: an answer must not depend on how it is computed.
                assert_eq!(products(&values, first..=last), (first..=last).map(plain).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn noise_and_single_bursts_have_none() {
        let mut rng = Rng::new(12);
        let mut false_alarms = 0;
        for n in [500, 1000, 2048] {
            for mean in [0.05, 1.0, 20.0] {
                for _ in 0..30 {
                    let counts: Vec<u32> = (0..n).map(|_| poisson(&mut rng, mean)).collect();
                    false_alarms += u32::from(period(&counts).is_some());
                }
            }
        }
        assert!(false_alarms <= 2, "{false_alarms} of 270");
        let mut two = vec![0; 1000];
        two[100] = 500;
        two[300] = 500;
        assert_eq!(period(&two), None);
        assert_eq!(period(&[3; 1000]), None);
        assert_eq!(period(&[]), None);
        let mut random = vec![0; 2000];
        for _ in 0..40 {
            random[rng.index(2000)] += 50;
        }
        assert_eq!(period(&random), None, "storms at random times");
        // Starts of a computer in minutes of a day (a real log): twelve logons each, many 18 minutes after another.
        let starts = [
            0, 2, 244, 278, 292, 293, 300, 313, 317, 328, 331, 336, 355, 358, 361, 373, 375, 379, 380, 391,
            395, 397,
        ];
        let mut started = vec![0; 2048];
        for minute in starts {
            started[minute * 5] += 12;
        }
        assert_eq!(period(&started[..397 * 5 + 1]), None, "starts of a computer");
        assert_eq!(period(&started), None, "starts of a computer, and rest");
    }

    #[test]
    fn pauses_are_forgiven_and_silence_is_not_repetition() {
        let storms = |quiet: std::ops::Range<usize>| {
            let mut counts = vec![0; 2048];
            (0..2048).step_by(40).filter(|at| !quiet.contains(at)).for_each(|at| counts[at] = 9);
            period(&counts).map(|found| found.buckets.round())
        };
        assert_eq!(storms(0..0), Some(40.0));
        assert_eq!(storms(700..900), Some(40.0), "a pause");
        assert_eq!(storms(300..2048), None, "eight storms, then none");
    }
}
