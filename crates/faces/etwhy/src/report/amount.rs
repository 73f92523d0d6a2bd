//! Weights of a metric in one unit, so that a column of them can be compared at a glance.

use etwhy_base::units::{bytes, decimal, duration_ns, energy, percent};
use etwhy_table::Unit;

/// A unit with as many decimals as the whole needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The unit's name; empty for counts.
    pub unit: &'static str,
    per_unit: f64,
    decimals: usize,
}

impl Scale {
    /// The unit for parts of `total`.
    pub fn for_total(unit: Unit, total: i64) -> Scale {
        let total = total.unsigned_abs() as f64;
        let scale = |unit, per_unit, decimals| Scale { unit, per_unit, decimals };
        match unit {
            // Investigators think in milliseconds, as the viewers do.
            Unit::Ns if total >= 10e9 => scale("ms", 1e6, 0),
            Unit::Ns if total >= 100e6 => scale("ms", 1e6, 1),
            Unit::Ns if total >= 1e6 => scale("ms", 1e6, 3),
            Unit::Ns => scale("µs", 1e3, 1),
            Unit::Bytes if total >= 10.0 * f64::from(1 << 30) => scale("MiB", f64::from(1 << 20), 0),
            Unit::Bytes if total >= f64::from(1 << 20) => scale("MiB", f64::from(1 << 20), 2),
            Unit::Bytes if total >= 1024.0 => scale("KiB", 1024.0, 2),
            Unit::Bytes => scale("B", 1.0, 0),
            Unit::MicroJoules if total >= 1e8 => scale("J", 1e6, 1),
            Unit::MicroJoules => scale("J", 1e6, 3),
            Unit::Count | Unit::None => scale("", 1.0, 0),
            other => scale(other.name(), 1.0, 0),
        }
    }

    /// A weight without its unit.
    pub fn number(&self, weight: i64) -> String {
        decimal(weight as f64 / self.per_unit, self.decimals)
    }

    /// A weight with its unit.
    pub fn text(&self, weight: i64) -> String {
        let number = self.number(weight);
        if self.unit.is_empty() { number } else { format!("{number} {}", self.unit) }
    }
}

/// A weight in a sentence: with as many digits as are known of it. Columns, which are compared, have a [`Scale`].
pub fn amount(unit: Unit, weight: i64) -> String {
    match unit {
        Unit::Ns => duration_ns(weight),
        Unit::Bytes => bytes(weight),
        // What a model says.
        Unit::MicroJoules => energy(weight as f64 / 1e6),
        unit => Scale::for_total(unit, weight).text(weight),
    }
}

/// A share in per cent with three digits at most: `100`, `12.3`, `0.04`.
pub fn percent_text(part: i64, whole: i64) -> String {
    let value = percent(part, whole);
    let decimals = if value >= 99.95 {
        0
    } else if value >= 0.095 || value == 0.0 {
        1
    } else {
        2
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_fit_the_whole() {
        let of = |unit, total, part| Scale::for_total(unit, total).text(part);
        assert_eq!(of(Unit::Ns, 2_522_541_000_000, 41_649_000_000), "41,649 ms");
        assert_eq!(of(Unit::Ns, 250_000_000, 1_270_000), "1.3 ms");
        assert_eq!(of(Unit::Ns, 5_000_000, 1_250_000), "1.250 ms");
        assert_eq!(of(Unit::Bytes, 3 << 20, 1 << 19), "0.50 MiB");
        assert_eq!(of(Unit::Count, 1_000_000, 12_345), "12,345");
        assert_eq!(of(Unit::MicroJoules, 5_000_000, 1_500_000), "1.500 J");
        assert_eq!(amount(Unit::Ns, 7_051_300_000), "7.05 s");
        assert_eq!(amount(Unit::MicroJoules, 157_512_345), "160 J");
        assert_eq!(amount(Unit::Count, 12_345), "12,345");
        assert_eq!(
            (percent_text(1, 3), percent_text(1, 3000), percent_text(5, 5)),
            ("33.3".into(), "0.03".into(), "100".into())
        );
    }
}
