//! Numbers that look random and are the same in every run.

/// `SplitMix64` (Steele, Lea and Flood 2014): small, and good enough to choose bytes with.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator; equal seeds give equal numbers.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// Any number.
    #[allow(clippy::should_implement_trait)] // a generator never ends, an iterator may
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n` (0 if `n` is 0).
    pub fn below(&mut self, n: usize) -> usize {
        if n == 0 { 0 } else { (self.next() % n as u64) as usize }
    }

    /// One of the items; `None` if there is none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }

    /// A length: mostly short, at times up to `max`.
    pub fn length(&mut self, max: usize) -> usize {
        let bits = self.below(usize::BITS as usize - max.max(1).leading_zeros() as usize + 1);
        (self.below(1 << bits.min(40))).min(max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_in_every_run() {
        let mut rng = Rng::new(0);
        assert_eq!(rng.next(), 0xE220_A839_7B1D_CDAF);
        for max in [0, 1, 7, 1000, 1 << 20] {
            for _ in 0..100 {
                assert!(rng.length(max) <= max);
                assert!(rng.below(max) <= max);
            }
        }
    }
}
