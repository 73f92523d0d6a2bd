//! Figures of probes in sentences.

use crate::sample::Sample;

/// A time as people say it: `1.80 ms`.
pub fn time(ns: f64) -> String {
    crate::amount::time(ns)
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

#[cfg(test)]
mod tests {
    use super::*;

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
            case: crate::Case::new("new file").at(1.0),
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
        assert!(said[0].contains("all of them together took 6 s"), "{said:?}");
    }
}
