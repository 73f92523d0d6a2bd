//! Numbers with their units as columns of tables have them: as many digits as the neighbours. [`crate::prose`] has those of sentences.

/// A number with `,` between thousands.
pub fn thousands(number: i128) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3 + 1);
    if number < 0 {
        out.push('-');
    }
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A share of a whole in per cent, 0 if there is none.
pub fn percent(part: i64, whole: i64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// A number with so many decimals and `,` between thousands.
pub fn decimal(number: f64, decimals: usize) -> String {
    if !number.is_finite() || number.abs() >= 1e18 {
        return format!("{number}");
    }
    let text = format!("{:.decimals$}", number.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let sign = if number < 0.0 && text.contains(|c: char| matches!(c, '1'..='9')) { "-" } else { "" };
    let whole = thousands(whole.parse::<i128>().unwrap_or(0));
    if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

/// A span of time in the unit that leaves three to four digits: `950 ns`, `1.50 ms`, `12.3 s`, `8 min 9 s`.
pub fn duration_ns(ns: i64) -> String {
    let magnitude = ns.unsigned_abs();
    let sign = if ns < 0 { "-" } else { "" };
    let scaled = |unit: &str, scale: u64| {
        let value = magnitude as f64 / scale as f64;
        let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
        format!("{sign}{value:.decimals$} {unit}")
    };
    match magnitude {
        0..1_000 => format!("{sign}{magnitude} ns"),
        1_000..999_500 => scaled("µs", 1_000),
        999_500..999_500_000 => scaled("ms", 1_000_000),
        999_500_000..119_500_000_000 => scaled("s", 1_000_000_000),
        _ => {
            let seconds = (magnitude + 500_000_000) / 1_000_000_000;
            let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
            if hours > 0 {
                format!("{sign}{hours} h {minutes} min")
            } else {
                format!("{sign}{minutes} min {seconds} s")
            }
        }
    }
}

/// A size in the binary unit that leaves one to four digits: `512 B`, `4.0 KiB`, `1.5 GiB`.
pub fn bytes(count: i64) -> String {
    let magnitude = count.unsigned_abs() as f64;
    let sign = if count < 0 { "-" } else { "" };
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    for (unit, power) in units {
        let value = magnitude / (1u64 << power) as f64;
        if value >= 1.0 {
            let decimals = usize::from(value < 99.95);
            return format!("{sign}{value:.decimals$} {unit}");
        }
    }
    format!("{sign}{} B", count.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(-1_234_567), "-1,234,567");
        assert_eq!(thousands(i128::from(i64::MIN)), "-9,223,372,036,854,775,808");
        assert_eq!(decimal(1234.5678, 2), "1,234.57");
        assert_eq!(decimal(-0.0001, 2), "0.00");
        assert_eq!(decimal(-1.5, 0), "-2");
        assert_eq!(decimal(f64::NAN, 2), "NaN");
    }

    #[test]
    fn spans() {
        let texts: Vec<String> = [
            0,
            999,
            1_500,
            999_499,
            999_500,
            12_345_678,
            999_500_000,
            75_000_000_000,
            489_000_000_000,
            i64::MIN,
        ]
        .map(duration_ns)
        .to_vec();
        let wanted =
            ["0 ns", "999 ns", "1.50 µs", "999 µs", "1.00 ms", "12.3 ms", "1.00 s", "75.0 s", "8 min 9 s"];
        assert_eq!(texts[..9], wanted);
        assert_eq!(texts[9], "-2562047 h 47 min");
    }

    #[test]
    fn sizes() {
        let texts = [0, 1023, 4096, 1 << 20, 1_610_612_736, -2048, 200 << 20].map(bytes);
        assert_eq!(texts, ["0 B", "1023 B", "4.0 KiB", "1.0 MiB", "1.5 GiB", "-2.0 KiB", "200 MiB"]);
    }
}
