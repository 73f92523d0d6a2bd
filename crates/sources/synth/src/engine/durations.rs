//! How long the events of a table take, with a prescribed sum if the table says one.

use crate::value::{Dist, Draw};
use etwhy_base::rng::Xoshiro;

/// Durations of a table's events.
pub(crate) struct Durations {
    dist: Dist,
    /// With a prescribed sum: what the drawn numbers are multiplied with, and dice of their own.
    fitted: Option<Fitted>,
}

struct Fitted {
    factor: f64,
    count: u64,
    rng: Xoshiro,
    /// What rounding to nanoseconds left over, so that the sum is right to the nanosecond.
    carry: f64,
}

impl Durations {
    /// Durations drawn from `dist`; with `total` (seconds), stretched so that `count` of them sum up to it.
    pub(crate) fn new(
        dist: Dist,
        total: Option<f64>,
        count: Option<u64>,
        seed: u64,
    ) -> Result<Durations, String> {
        let Some(total) = total else { return Ok(Durations { dist, fitted: None }) };
        let count = count.ok_or("`total` needs a `count` (or listed moments)")?;
        // The same dice are thrown twice: once for the sum, once for the events.
        let rng = Xoshiro::seeded(seed ^ 0x707A_1000);
        let mut dry = rng.clone();
        let draw = |n| dist.draw(&mut Draw { rng: &mut dry, n, x: n as f64 / count.max(1) as f64 }).max(0.0);
        let sum: f64 = (0..count).map(draw).sum();
        if sum <= 0.0 && count > 0 {
            return Err("`total` needs durations above 0".into());
        }
        let factor = if count == 0 { 0.0 } else { total / sum };
        Ok(Durations { dist, fitted: Some(Fitted { factor, count, rng, carry: 0.0 }) })
    }

    /// True when the sum is prescribed.
    pub(crate) fn is_fitted(&self) -> bool {
        self.fitted.is_some()
    }

    /// The next duration in nanoseconds.
    pub(crate) fn next(&mut self, rng: &mut Xoshiro, n: u64, x: f64) -> i64 {
        let Some(f) = &mut self.fitted else { return self.dist.ns(&mut Draw { rng, n, x }) };
        let x = n as f64 / f.count.max(1) as f64;
        let exact = self.dist.draw(&mut Draw { rng: &mut f.rng, n, x }).max(0.0) * f.factor * 1e9 + f.carry;
        let rounded = exact.round();
        f.carry = exact - rounded;
        rounded.max(0.0) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_sum_up_to_the_prescribed_total() {
        let shape = Dist::from_value(&toml::Value::Table(
            [("lognormal".to_string(), toml::Value::from(vec![1.0, 0.8]))].into_iter().collect(),
        ));
        let mut d = Durations::new(shape.unwrap(), Some(36.8), Some(163_230), 5).unwrap();
        let mut rng = Xoshiro::seeded(1);
        let all: Vec<i64> = (0..163_230).map(|n| d.next(&mut rng, n, 0.0)).collect();
        assert!((all.iter().sum::<i64>() - 36_800_000_000).abs() <= 1);
        assert!(all.iter().any(|t| *t > 500_000) && all.iter().any(|t| *t < 100_000));
        assert!(Durations::new(Dist::constant(1.0), Some(1.0), None, 1).is_err());
    }
}
