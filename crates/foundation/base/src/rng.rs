//! Random numbers that are the same in every run and on every platform.
//!
//! Written traces, intervals of figures and damage to input depend on the exact sequence, which may change with a new version of a
//! library: so the generators are ours. They are not for secrets.

/// The step of `SplitMix64`.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// One step of `SplitMix64`: also a hash of small numbers.
pub fn mix(value: u64) -> u64 {
    let z = value.wrapping_add(STEP);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// FNV-1a, 64 bits (<http://www.isthe.com/chongo/tech/comp/fnv/>): a hash that is the same in every run.
pub fn fnv1a(bytes: impl AsRef<[u8]>) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
    bytes.as_ref().iter().fold(0xCBF2_9CE4_8422_2325, step)
}

/// What a generator remembers.
pub trait State {
    /// The next 64 bits.
    fn step(&mut self) -> u64;
}

/// `SplitMix64` (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
impl State for u64 {
    #[inline]
    fn step(&mut self) -> u64 {
        let bits = mix(*self);
        *self = self.wrapping_add(STEP);
        bits
    }
}

/// xoshiro256++ (Blackman and Vigna).
impl State for [u64; 4] {
    #[inline]
    fn step(&mut self) -> u64 {
        let s = self;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }
}

/// A generator; equal seeds give equal numbers.
#[derive(Clone, Debug)]
pub struct Rng<S = u64>(S);

/// The generator for long streams.
pub type Xoshiro = Rng<[u64; 4]>;

impl Rng {
    /// A generator with that seed.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }
}

impl Xoshiro {
    /// A generator with that seed.
    pub fn seeded(seed: u64) -> Xoshiro {
        let a = mix(seed);
        let b = mix(a);
        let c = mix(b);
        Rng([a, b, c, mix(c)])
    }
}

impl<S: State> Rng<S> {
    /// The next 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.step()
    }

    /// Uniform in [0, 1).
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in 0 .. `count`; 0 if `count` is 0.
    #[inline]
    pub fn below(&mut self, count: u64) -> u64 {
        // The high half of a product: the bias is below count / 2^64.
        ((u128::from(self.bits()) * u128::from(count)) >> 64) as u64
    }

    /// As [`Rng::below`], for places in lists.
    #[inline]
    pub fn index(&mut self, count: usize) -> usize {
        self.below(count as u64) as usize
    }

    /// One of the items; `None` if there is none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.index(items.len()))
    }

    /// Normal with mean 0 and standard deviation 1 (Box and Muller, one of the pair).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.uniform()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_are_those_that_are_published() {
        // Reference output for seed 1234567 (Vigna's splitmix64.c, as quoted by Rosetta Code).
        let mut rng = Rng::new(1_234_567);
        assert_eq!([rng.bits(), rng.bits()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
        // Reference output for state 1, 2, 3, 4 (Vigna's xoshiro256plusplus.c, as quoted by the test of rand_xoshiro).
        let mut rng = Rng([1, 2, 3, 4]);
        assert_eq!([rng.bits(), rng.bits(), rng.bits()], [41_943_041, 58_720_359, 3_588_806_011_781_223]);
        // Landon Curt Noll's test vectors.
        assert_eq!([fnv1a(""), fnv1a("foobar")], [0xCBF2_9CE4_8422_2325, 0x8594_4171_F739_67E8]);
    }

    #[test]
    fn moments_are_right() {
        moments(Rng::new(7));
        moments(Xoshiro::seeded(7));
    }

    fn moments<S: State>(mut rng: Rng<S>) {
        let n = 200_000;
        let mut of =
            |draw: fn(&mut Rng<S>) -> f64| (0..n).map(|_| draw(&mut rng)).sum::<f64>() / f64::from(n);
        assert!((of(Rng::uniform) - 0.5).abs() < 0.01 && (of(Rng::exponential) - 1.0).abs() < 0.02);
        assert!(of(Rng::normal).abs() < 0.01 && (of(|rng| rng.normal().powi(2)) - 1.0).abs() < 0.02);
        let mut counts = [0; 5];
        for _ in 0..50_000 {
            counts[rng.index(5)] += 1;
        }
        assert!(counts.iter().all(|&c| (9_500..10_500).contains(&c)), "{counts:?}");
        assert_eq!(rng.index(0), 0);
    }
}
