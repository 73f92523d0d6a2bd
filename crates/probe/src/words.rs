//! Figures of probes in sentences.

use crate::sample::Sample;

/// A time as people say it: `1.80 ms`.
pub fn time(ns: f64) -> String {
    let (value, unit) = match ns.abs() {
        small if small < 999.5 => return format!("{ns:.0} ns"),
        us if us < 999_500.0 => (ns / 1e3, "us"),
        ms if ms < 999_500_000.0 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    match value.abs() {
        small if small < 9.995 => format!("{value:.2} {unit}"),
        middle if middle < 99.95 => format!("{value:.1} {unit}"),
        _ => format!("{value:.0} {unit}"),
    }
}

/// How often `less` goes into `more`, if that is worth saying: `2.9 times as long`, `about the same`.
pub fn times(more: f64, less: f64) -> String {
    if less <= 0.0 || !more.is_finite() {
        return "not comparable".to_owned();
    }
    // Runs on a busy machine differ by that much without any reason; `compare` gives intervals.
    match more / less {
        same if (0.8..=1.25).contains(&same) => "about the same".to_owned(),
        ratio if ratio < 1.0 => format!("{:.1} times as fast", 1.0 / ratio),
        ratio if ratio < 9.95 => format!("{ratio:.1} times as long"),
        ratio => format!("{ratio:.0} times as long"),
    }
}

/// Parts of a whole in per cent that add up to 100, as largest remainders round them; nothing if all parts are 0.
pub fn percents<const N: usize>(parts: [u64; N]) -> Option<[u64; N]> {
    let whole: u128 = parts.iter().map(|part| u128::from(*part)).sum();
    if whole == 0 {
        return None;
    }
    let scaled = parts.map(|part| u128::from(part) * 100);
    let mut percents = scaled.map(|part| u64::try_from(part / whole).unwrap_or(0));
    let mut order: Vec<usize> = (0..N).collect();
    order.sort_by_key(|at| std::cmp::Reverse(scaled.get(*at).map_or(0, |part| part % whole)));
    let missing = 100_u64.saturating_sub(percents.iter().sum());
    for at in order.into_iter().take(usize::try_from(missing).unwrap_or(0)) {
        if let Some(percent) = percents.get_mut(at) {
            *percent += 1;
        }
    }
    Some(percents)
}

/// How many rounds samples are of, at least 1.
pub fn rounds<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> f64 {
    let numbers: std::collections::BTreeSet<u32> = samples.into_iter().map(|s| s.round).collect();
    numbers.len().max(1) as f64
}

/// The middle of some values.
pub fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some((sorted.get(middle.checked_sub(1)?)? + upper) / 2.0)
}

/// The same of what half of single operations took at most, which no single stall spoils; of the values, where single operations
/// were not timed.
pub fn half(samples: &[Sample], measure: &str, variant: &str) -> Option<f64> {
    let of = |s: &&Sample| s.case.measure == measure && s.case.variant == variant;
    median(samples.iter().filter(of).map(|s| s.p50_ns.map_or(s.value, |ns| ns as f64)))
}

/// The middle of the rounds' values of one kind of samples.
pub fn each(samples: &[Sample], measure: &str, variant: &str) -> Option<f64> {
    median(samples.iter().filter(|s| s.case.measure == measure && s.case.variant == variant).map(|s| s.value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_people_say_them() {
        let said = [12.4, 999.6, 1800.0, 25_340.0, 1_800_000.0, 72_750_000_000.0].map(time);
        assert_eq!(said, ["12 ns", "1.00 us", "1.80 us", "25.3 us", "1.80 ms", "72.8 s"]);
        assert_eq!(times(72_750.0, 1_110.0), "66 times as long");
        assert_eq!(times(110.0, 100.0), "about the same");
        assert_eq!(times(10.0, 40.0), "4.0 times as fast");
        assert_eq!(times(1.0, 0.0), "not comparable");
    }

    #[test]
    fn percents_add_up() {
        // 33.33 each: one of them gets what is missing.
        assert_eq!(percents([1, 1, 1]), Some([34, 33, 33]));
        // 99.4 and 0.6: each rounded for itself would be 99 and 1; 98.5, 0.5 and 1 would be 99, 1 and 1.
        assert_eq!(percents([994, 6]), Some([99, 1]));
        assert_eq!(percents([985, 5, 10]), Some([99, 0, 1]));
        assert_eq!(percents([u64::MAX, u64::MAX, 0]), Some([50, 50, 0]));
        assert_eq!(percents([0, 0]), None);
    }

    #[test]
    fn rounds_are_counted_whatever_their_numbers() {
        let of = |round| Sample {
            round,
            wall_ns: 4_000_000_000,
            case: crate::Case::of("x").at(1.0),
            ..Sample::default()
        };
        let samples = [of(3), of(u32::MAX), of(u32::MAX)];
        assert_eq!((rounds(&samples), rounds(&[])), (2.0, 1.0));
        for probe in crate::probes::ALL {
            let _ = (probe.conclude)(&samples);
        }
        let search = crate::probes::ALL.iter().find(|probe| probe.name == "name-search").unwrap();
        let said = (search.conclude)(&samples);
        // Three samples of 4 s in two rounds.
        assert!(said[0].contains("all of them together took 6.00 s"), "{said:?}");
    }

    #[test]
    fn medians() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(median([4.0, 1.0].into_iter()), Some(2.5));
        assert_eq!(median([f64::NAN].into_iter()), None);
    }
}
