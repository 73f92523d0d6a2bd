//! Percentiles of values with weights.

/// The smallest value such that values up to it hold at least the share `p` (0 to 1) of the weight. Values that are not
/// finite and weights that are not positive do not count. `None` if nothing is left.
///
/// That is the percentile of a trace that recorded each value `weight` times, with no interpolation: the result is a value
/// that occurred.
pub fn weighted_percentile(values: &[(f64, f64)], p: f64) -> Option<f64> {
    percentiles(values, &[p]).first().copied().flatten()
}

/// As [`weighted_percentile`], for several shares at once.
pub fn percentiles(values: &[(f64, f64)], shares: &[f64]) -> Vec<Option<f64>> {
    let mut sorted: Vec<(f64, f64)> =
        values.iter().copied().filter(|(v, w)| v.is_finite() && *w > 0.0 && w.is_finite()).collect();
    sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = sorted.iter().map(|(_, w)| w).sum();
    let at = |p: f64| {
        // Sums of many weights are not exact; what is missing is far below one weight.
        let wanted = p.clamp(0.0, 1.0) * total * (1.0 - 1e-12);
        let mut sum = 0.0;
        let reached = sorted.iter().find(|(_, w)| {
            sum += w;
            sum >= wanted
        });
        reached.or(sorted.last()).map(|(v, _)| *v)
    };
    shares.iter().map(|&p| at(p)).collect()
}

/// The median; the mean of the two middle values of an even number. `None` for no values. Sorts `values`.
pub fn median(values: &mut [f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let middle = values.len() / 2;
    let even = values.len().is_multiple_of(2);
    let (lower, high, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let high = *high;
    match even {
        true => lower.iter().copied().max_by(f64::total_cmp).map(|low| (low + high) / 2.0),
        false => Some(high),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_count_as_repetitions() {
        let weighted = [(1.0, 1.0), (10.0, 3.0), (5.0, 1.0)];
        // 1 5 10 10 10
        assert_eq!(weighted_percentile(&weighted, 0.2), Some(1.0));
        assert_eq!(weighted_percentile(&weighted, 0.4), Some(5.0));
        assert_eq!(weighted_percentile(&weighted, 0.5), Some(10.0));
        assert_eq!(percentiles(&weighted, &[0.0, 1.0]), [Some(1.0), Some(10.0)]);
    }

    #[test]
    fn nonsense_counts_for_nothing() {
        assert_eq!(weighted_percentile(&[], 0.5), None);
        assert_eq!(weighted_percentile(&[(f64::NAN, 1.0), (3.0, 0.0), (4.0, -1.0)], 0.5), None);
        assert_eq!(weighted_percentile(&[(f64::INFINITY, 1.0), (3.0, 1.0)], 0.9), Some(3.0));
    }

    #[test]
    fn medians() {
        assert_eq!(median(&mut []), None);
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }
}
