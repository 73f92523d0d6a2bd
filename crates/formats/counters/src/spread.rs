//! How values are spread: percentiles of a stream in little memory.

/// Values that are kept as they are.
pub const EXACT: usize = 1024;

/// Parts of a power of two: the seven highest bits of the fraction, so that a value is known to 1/256.
const PARTS: usize = 128;

/// Exponents that are told apart. Counters lie between a nanosecond and 2^63; what is beyond is counted at the end.
const EXPONENTS: std::ops::RangeInclusive<i32> = -40..=64;

type Octave = (i32, Box<[u32; PARTS]>);

/// Percentiles of values: exact up to [`EXACT`] values, then by counts of values that share sign, exponent and seven bits of the
/// fraction (as in HdrHistogram), whose middle is at most 0.4 % off.
#[derive(Clone, Debug, Default)]
pub struct Spread {
    /// The first values; later those that are not counted yet. Counting many at once spares the processor's cache, which the
    /// counts of hundreds of counters do not fit.
    exact: Vec<f64>,
    zeros: u64,
    positive: Vec<Octave>,
    negative: Vec<Octave>,
    count: u64,
}

impl Spread {
    /// Adds a finite value.
    #[inline]
    pub fn add(&mut self, value: f64) {
        if self.exact.len() >= EXACT {
            self.flush();
        }
        self.count += 1;
        self.exact.push(value);
    }

    /// Counts the values that wait.
    #[cold]
    fn flush(&mut self) {
        let mut values = std::mem::take(&mut self.exact);
        for value in values.drain(..) {
            self.bin(value);
        }
        self.exact = values;
    }

    #[inline]
    fn bin(&mut self, value: f64) {
        let bits = value.to_bits();
        let exponent = ((bits >> 52) & 0x7FF) as i32 - 1023;
        if exponent < *EXPONENTS.start() {
            self.zeros += 1;
            return;
        }
        let exponent = exponent.min(*EXPONENTS.end());
        let part = ((bits >> 45) & 0x7F) as usize;
        let side = if value < 0.0 { &mut self.negative } else { &mut self.positive };
        let octave = match side.iter().position(|(e, _)| *e == exponent) {
            Some(0) => side.first_mut(),
            Some(at) => {
                // What came last comes next.
                side.swap(0, at);
                side.first_mut()
            }
            None => {
                side.insert(0, (exponent, Box::new([0; PARTS])));
                side.first_mut()
            }
        };
        if let Some(count) = octave.and_then(|(_, parts)| parts.get_mut(part)) {
            *count = count.saturating_add(1);
        }
    }

    /// The values at these shares (0 to 1), by nearest rank: the smallest value that at least this share does not exceed.
    pub fn at<const N: usize>(&self, shares: [f64; N]) -> [Option<f64>; N] {
        let bins = if self.count <= EXACT as u64 {
            let mut exact = self.exact.clone();
            exact.sort_unstable_by(f64::total_cmp);
            exact.into_iter().map(|value| (value, 1)).collect()
        } else {
            let mut all = self.clone();
            all.flush();
            all.bins()
        };
        let total: u64 = bins.iter().map(|(_, count)| count).sum();
        shares.map(|share| {
            let rank = ((share * total as f64).ceil() as u64).clamp(1, total.max(1));
            let mut below = 0;
            bins.iter()
                .find(|(_, count)| {
                    below += count;
                    below >= rank
                })
                .map(|(value, _)| *value)
        })
    }

    /// Values in ascending order, each with its count.
    fn bins(&self) -> Vec<(f64, u64)> {
        let side = |octaves: &[Octave], sign: f64| -> Vec<(f64, u64)> {
            let mut bins = Vec::new();
            for (exponent, parts) in octaves {
                for (part, count) in parts.iter().enumerate().filter(|(_, count)| **count > 0) {
                    let middle = (1.0 + (part as f64 + 0.5) / PARTS as f64) * 2f64.powi(*exponent);
                    bins.push((sign * middle, u64::from(*count)));
                }
            }
            bins
        };
        let mut bins = side(&self.negative, -1.0);
        bins.extend((self.zeros > 0).then_some((0.0, self.zeros)));
        bins.extend(side(&self.positive, 1.0));
        bins.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        bins
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_base::rng::Rng;

    #[test]
    fn few_values_are_exact() {
        let mut spread = Spread::default();
        assert_eq!(spread.at([0.5]), [None]);
        (1..=100).rev().for_each(|n| spread.add(f64::from(n)));
        assert_eq!(spread.at([0.5, 0.95, 0.99, 0.0, 1.0]), [50.0, 95.0, 99.0, 1.0, 100.0].map(Some));
        let mut one = Spread::default();
        one.add(-3.5);
        assert_eq!(one.at([0.5, 0.99]), [Some(-3.5); 2]);
    }

    #[test]
    fn many_values_are_nearly_exact() {
        let mut rng = Rng::new(7);
        let mut values: Vec<f64> = (0..50_000)
            .map(|n| {
                let uniform = rng.uniform();
                match n % 10 {
                    0 => 0.0,
                    1 => -uniform * 5.0,
                    _ => uniform.powi(4) * 1e6,
                }
            })
            .collect();
        let mut spread = Spread::default();
        values.iter().for_each(|v| spread.add(*v));
        values.sort_unstable_by(f64::total_cmp);
        for share in [0.01, 0.05, 0.15, 0.5, 0.9, 0.95, 0.99, 1.0] {
            let wanted = values[((share * 50_000.0f64).ceil() as usize).max(1) - 1];
            let got = spread.at([share])[0].unwrap();
            assert!((got - wanted).abs() <= 0.004 * wanted.abs(), "{share}: {got} {wanted}");
        }
    }

    #[test]
    fn memory_is_bounded_whatever_comes() {
        let mut spread = Spread::default();
        for bits in 0..200_000u64 {
            let value = f64::from_bits(bits.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            if value.is_finite() {
                spread.add(value);
            }
        }
        assert!(spread.positive.len() + spread.negative.len() <= 2 * 105);
        assert!(spread.exact.len() <= EXACT);
    }
}
