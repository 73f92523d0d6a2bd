//! Numbers with their units as sentences have them: about three digits that count, no zeros behind them. [`crate::units`] has those of
//! columns.

use crate::units::thousands;

/// About three significant digits, with thousands apart.
pub fn digits(n: f64) -> String {
    let size = n.abs();
    if !n.is_finite() {
        "unknown".to_owned()
    } else if size >= 100.0 {
        thousands((n.round() as i64).into())
    } else if size >= 10.0 {
        trimmed(format!("{n:.1}"))
    } else if size >= 1.0 {
        trimmed(format!("{n:.2}"))
    } else if size == 0.0 {
        "0".to_owned()
    } else {
        trimmed(format!("{n:.*}", (2 - size.log10().floor() as i32).clamp(2, 9) as usize))
    }
}

fn trimmed(text: String) -> String {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Nanoseconds in the unit that a person would choose.
pub fn duration(ns: f64) -> String {
    let size = ns.abs();
    let (n, unit) = if size < 1e3 {
        (ns, "ns")
    } else if size < 1e6 {
        (ns / 1e3, "µs")
    } else if size < 1e9 {
        (ns / 1e6, "ms")
    } else if size < 180e9 {
        (ns / 1e9, "s")
    } else if size < 2.0 * 3600e9 {
        (ns / 60e9, "min")
    } else if size < 72.0 * 3600e9 {
        (ns / 3600e9, "h")
    } else {
        (ns / 86_400e9, "days")
    };
    format!("{} {unit}", digits(n))
}

/// Bytes in binary units.
pub fn bytes(n: f64) -> String {
    let mut n = n;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if n.abs() < 1024.0 {
            return format!("{} {unit}", digits(n));
        }
        n /= 1024.0;
    }
    format!("{} TiB", digits(n))
}

/// Two digits, because no more are known.
fn two_digits(n: f64) -> String {
    if n == 0.0 || !n.is_finite() {
        return if n == 0.0 { "0" } else { "unknown" }.to_owned();
    }
    let places = 1 - n.abs().log10().floor() as i32;
    if places > 0 {
        return trimmed(format!("{n:.*}", places.min(9) as usize));
    }
    let step = 10f64.powi(-places);
    thousands((((n / step).round() * step) as i64).into())
}

/// The unit for an energy: joules for little, watt-hours from a tenth of one on.
fn energy_unit(joules: f64) -> (f64, &'static str) {
    if joules.abs() < 360.0 { (1.0, "J") } else { (3600.0, "Wh") }
}

/// Joules, as watt-hours where there are many.
pub fn energy(joules: f64) -> String {
    let (factor, unit) = energy_unit(joules);
    format!("{} {unit}", two_digits(joules / factor))
}

/// An energy with its bounds, all in one unit: `0.11 Wh (0.039 to 0.3)`.
pub fn energy_range(joules: f64, low: f64, high: f64) -> String {
    let (factor, unit) = energy_unit(joules);
    let text = |joules: f64| two_digits(joules / factor);
    format!("{} {unit} ({} to {})", text(joules), text(low), text(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        for (n, text) in
            [(0.0, "0"), (0.1234, "0.123"), (1.5, "1.5"), (33.123, "33.1"), (1234.5, "1,235"), (-5.0, "-5")]
        {
            assert_eq!(digits(n), text);
        }
        assert_eq!(duration(36_800_000_000.0), "36.8 s");
        assert_eq!(duration(225_448.0), "225 µs");
        assert_eq!((duration(71.0 * 3600e9), duration(73.2 * 3600e9)), ("71 h".into(), "3.05 days".into()));
        assert_eq!(bytes(10_422_591_488.0), "9.71 GiB");
        assert_eq!(energy(12.345), "12 J");
        assert_eq!(energy(9_500.0), "2.6 Wh");
        assert_eq!(energy(1_234_567.0), "340 Wh");
        assert_eq!(energy_range(400.0, 140.0, 1090.0), "0.11 Wh (0.039 to 0.3)");
    }
}
