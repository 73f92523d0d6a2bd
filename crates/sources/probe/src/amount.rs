//! Values with their units, as people read them.

use etwhy_base::units::{decimal, duration, thousands};
use etwhy_stats::Interval;

/// A value: times in the unit that suits them, everything else with three digits.
pub fn value(value: f64, unit: &str) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    if unit == "ns" {
        return time(value);
    }
    let number = digits(value);
    if unit.is_empty() { number } else { format!("{number} {unit}") }
}

/// A span of time of `ns` nanoseconds.
pub fn time(ns: f64) -> String {
    if !ns.is_finite() {
        return "–".to_owned();
    }
    // Below what any clock shows.
    if ns.abs() < 0.0995 {
        return if ns == 0.0 { "0 ns" } else { "<0.1 ns" }.to_owned();
    }
    duration(ns)
}

/// A number with three digits that count.
pub fn digits(value: f64) -> String {
    let magnitude = value.abs();
    let decimals = match magnitude {
        m if m == 0.0 || m >= 99.95 => 0,
        m if m >= 9.995 => 1,
        m if m >= 0.0995 => 2,
        m if m >= 0.000_995 => 4,
        _ => return "<0.001".to_owned(),
    };
    decimal(value, decimals)
}

/// How many: `10`, `2,000`, `0.5`.
pub fn size(n: f64) -> String {
    if n.fract() == 0.0 && n.abs() < 1e15 { thousands(n as i128) } else { digits(n) }
}

/// A factor as people say it: `850 times`, `2.1 times`, `12 % more`, `3 % less`.
pub fn factor(ratio: f64) -> String {
    if !ratio.is_finite() {
        return "beyond measure".to_owned();
    }
    if ratio >= 1.95 {
        return format!("{} times", digits(ratio));
    }
    let percent = (ratio - 1.0) * 100.0;
    let (size, word) = (percent.abs(), if percent >= 0.0 { "more" } else { "less" });
    format!("{} % {word}", if size < 9.95 { format!("{size:.1}") } else { format!("{size:.0}") })
}

/// A ratio, `2.13` or `850`, with its interval.
pub fn ratio(interval: &Interval) -> String {
    if interval.low.is_finite() && interval.high.is_finite() {
        format!("{} ({}–{})", digits(interval.value), digits(interval.low), digits(interval.high))
    } else {
        format!("{} (?)", digits(interval.value))
    }
}

/// How much more, with its interval: `+2.00 % (+1.50 % to +2.40 %)`.
pub fn difference(interval: &Interval, unit: &str) -> String {
    let signed = |v: f64| format!("{}{}", if v < 0.0 { "−" } else { "+" }, value(v.abs(), unit));
    if interval.low.is_finite() && interval.high.is_finite() {
        format!("{} ({} to {})", signed(interval.value), signed(interval.low), signed(interval.high))
    } else {
        format!("{} (?)", signed(interval.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_well() {
        let of = |ns: f64| time(ns);
        assert_eq!((of(2.13), of(1_900_000.0), of(19e9)), ("2.13 ns".into(), "1.9 ms".into(), "19 s".into()));
        assert_eq!((value(1234.6, "files/s"), value(f64::NAN, "ns")), ("1,235 files/s".into(), "–".into()));
        assert_eq!(
            (factor(850.3), factor(1.12), factor(0.97)),
            ("850 times".into(), "12 % more".into(), "3.0 % less".into())
        );
        assert_eq!((of(0.0), of(0.058), of(0.16)), ("0 ns".into(), "<0.1 ns".into(), "0.16 ns".into()));
        assert_eq!(
            (digits(8.54e-4), digits(0.0123), size(10.0)),
            ("<0.001".into(), "0.0123".into(), "10".into())
        );
        assert_eq!(ratio(&Interval { value: 2.0, low: 1.5, high: f64::NAN }), "2.00 (?)");
    }
}
