//! Dispersion: how much more sums of a time series vary than those of independent pieces.
//!
//! Load comes in bursts. The variance of a sum over a whole trace is estimated from sums of slices: that of blocks of 1, 2, 4, … slices, as
//! long as there are enough blocks, and the largest counts, since bursts may be longer than a slice. Divided by what independent
//! pieces would show (their number is sum / piece) it is the dispersion; below 1 it counts as 1, because a load that was steady once
//! need not be so the next time.
//!
//! # What fools it
//! A trend over the whole trace counts as a burst, which makes intervals wider than they must be. Changes that are slower than a
//! quarter of the trace are not seen.

use crate::resample::blocks;

/// Fewest blocks from which a variance is estimated.
const FEWEST: usize = 8;

/// The dispersion of sums per slice whose independent pieces have the size `piece`; 1 where it cannot be estimated.
pub fn dispersion(slices: &[f64], piece: f64) -> f64 {
    let mut most = 1.0_f64;
    let mut length = 1;
    while piece > 0.0 && slices.len() / length >= FEWEST {
        let sums = blocks(slices, length);
        let count = sums.len() as f64;
        let mean = sums.iter().sum::<f64>() / count;
        if mean > 0.0 {
            let variance = sums.iter().map(|sum| (sum - mean).powi(2)).sum::<f64>() / (count - 1.0);
            // Independent pieces: variance = piece * mean.
            most = most.max(variance / (piece * mean));
        }
        length *= 2;
    }
    if most.is_finite() { most } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_are_larger_pieces() {
        // One piece in each slice: less than chance would vary.
        assert_eq!(dispersion(&[1.0; 64], 1.0), 1.0);
        // All in bursts of ten pieces each eighth slice.
        let bursts: Vec<f64> = (0..64).map(|at| if at % 8 == 0 { 10.0 } else { 0.0 }).collect();
        assert!((8.0..10.0).contains(&dispersion(&bursts, 1.0)), "{}", dispersion(&bursts, 1.0));
        // Bursts longer than a slice.
        let long: Vec<f64> = (0..64).map(|at| if at / 4 % 2 == 0 { 5.0 } else { 0.0 }).collect();
        assert!(dispersion(&long, 1.0) > 8.0, "{}", dispersion(&long, 1.0));
        assert_eq!(dispersion(&[], 1.0), 1.0);
        assert_eq!(dispersion(&[0.0; 64], 1.0), 1.0);
        assert_eq!(dispersion(&[1.0, 9.0], 0.0), 1.0);
    }
}
