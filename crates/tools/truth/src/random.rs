//! Random numbers that are the same everywhere: a seed is a machine.

use etwhy_base::rng::Rng;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random(Rng);

impl Random {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Random {
        Random(Rng::new(seed))
    }

    /// From 0 up to but not 1.
    pub fn unit(&mut self) -> f64 {
        self.0.uniform()
    }

    /// From `low` to `high`.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// From `low` to `high`, each factor as likely as the others.
    pub fn log_between(&mut self, low: f64, high: f64) -> f64 {
        (self.between(low.ln(), high.ln())).exp()
    }

    /// A number below `n`; 0 if there is none.
    pub fn below(&mut self, n: usize) -> usize {
        self.0.index(n)
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// One of a list that is not empty.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

/// The seed of machine `number` of a run.
pub fn seed(run: u64, number: u64) -> u64 {
    if run == 0 { number } else { Rng::new(run ^ number.wrapping_mul(0xa076_1d64_78bd_642f)).bits() >> 16 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds() {
        let mut random = Random::new(7);
        for _ in 0..1000 {
            assert!((0.3..=100.0).contains(&random.log_between(0.3, 100.0)));
            assert!(random.below(3) < 3);
        }
        assert_eq!(random.below(0), 0);
        assert_eq!(seed(0, 5), 5);
        assert_ne!(seed(9, 5), seed(9, 6));
    }
}
