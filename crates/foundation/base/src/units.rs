//! Numbers with their units as people read them: one form for sentences and columns, in the terminal and on the page.
//!
//! About three digits count, zeros behind them are left out. `web/src/lib/format.ts` follows the same rules; `web/test/formats.json` is
//! written here and holds both to them.

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

/// A number with the word for what it counts: `1 event`, `2,000 events`.
pub fn counted(number: impl Into<i128>, one: &str, many: &str) -> String {
    let number = number.into();
    format!("{} {}", thousands(number), if number == 1 { one } else { many })
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

/// About three significant digits, with thousands apart: `0.123`, `1.5`, `33.1`, `1,235`.
pub fn digits(number: f64) -> String {
    significant(number, 3)
}

/// So many significant digits; whole numbers are kept whole.
fn significant(number: f64, wanted: i32) -> String {
    let size = number.abs();
    if !number.is_finite() {
        return "unknown".to_owned();
    }
    if size == 0.0 {
        return "0".to_owned();
    }
    let decimals = (wanted - 1 - size.log10().floor() as i32).clamp(0, 9);
    // Rounded before it is written: then the page, whose way with halves is another one, writes the same.
    let scale = 10f64.powi(decimals);
    let text = decimal((size * scale).round() / scale, decimals as usize);
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if number < 0.0 && text != "0" { format!("-{text}") } else { text.to_owned() }
}

/// A span of time in the unit that a person would choose: `950 ns`, `1.5 ms`, `12.3 s`, `8 min 09 s`, `2 h 05 min`, `3 d 4 h`.
pub fn duration(ns: f64) -> String {
    let size = ns.abs();
    if !ns.is_finite() {
        return "unknown".to_owned();
    }
    for (unit, scale, end) in [("ns", 1.0, 999.5), ("µs", 1e3, 999.5), ("ms", 1e6, 999.5), ("s", 1e9, 59.95)]
    {
        if size < end * scale {
            return format!("{} {unit}", digits(ns / scale));
        }
    }
    let sign = if ns < 0.0 { "-" } else { "" };
    let rounded = |unit: f64| (size / unit).round() as i128;
    let pair = |number: i128, per: i128, large: &str, small: String| {
        let whole = thousands(number / per);
        if number % per == 0 {
            format!("{sign}{whole} {large}")
        } else {
            format!("{sign}{whole} {large} {small}")
        }
    };
    match (rounded(1e9), rounded(60e9), rounded(3600e9)) {
        (seconds, ..) if seconds < 3600 => pair(seconds, 60, "min", format!("{:02} s", seconds % 60)),
        (_, minutes, _) if minutes < 24 * 60 => pair(minutes, 60, "h", format!("{:02} min", minutes % 60)),
        (.., hours) => pair(hours, 24, "d", format!("{} h", hours % 24)),
    }
}

/// [`duration`] of whole nanoseconds.
pub fn duration_ns(ns: i64) -> String {
    duration(ns as f64)
}

/// A size in the binary unit that leaves one to four digits: `512 B`, `4 KiB`, `2.54 GiB`.
pub fn bytes(count: i64) -> String {
    let mut size = count as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if size.abs() < 1023.5 {
            return format!("{} {unit}", digits(size));
        }
        size /= 1024.0;
    }
    format!("{} TiB", digits(size))
}

/// The unit for an energy: watt-hours from a tenth of one on. Of a list: that of its largest.
pub fn energy_unit(joules: f64) -> (f64, &'static str) {
    match joules.abs() {
        0.0..1.0 => (1e-3, "mJ"),
        1.0..360.0 => (1.0, "J"),
        _ => (3600.0, "Wh"),
    }
}

/// An estimated energy, of which two digits are known: `12 J`, `0.11 Wh`.
pub fn energy(joules: f64) -> String {
    let (factor, unit) = energy_unit(joules);
    format!("{} {unit}", estimate(joules / factor))
}

/// A measured energy.
pub fn measured_energy(joules: f64) -> String {
    let (factor, unit) = energy_unit(joules);
    format!("{} {unit}", digits(joules / factor))
}

/// An energy with its bounds, all in one [`energy_unit`]: `0.11 Wh (0.039 to 0.3)`.
pub fn energy_range([joules, low, high]: [f64; 3], (factor, unit): (f64, &str)) -> String {
    let text = |joules: f64| estimate(joules / factor);
    format!("{} {unit} ({} to {})", text(joules), text(low), text(high))
}

/// Two digits, because no more are known: `340`, `1,200`.
fn estimate(number: f64) -> String {
    let size = number.abs();
    if !number.is_finite() || size < 100.0 {
        return significant(number, 2);
    }
    let step = 10f64.powi(size.log10().floor() as i32 - 1);
    thousands(((number / step).round() * step) as i128)
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
        for (n, text) in
            [(0.0, "0"), (0.1234, "0.123"), (1.5, "1.5"), (33.123, "33.1"), (1234.5, "1,235"), (-5.0, "-5")]
        {
            assert_eq!(digits(n), text);
        }
        assert_eq!(digits(f64::NAN), "unknown");
    }

    #[test]
    fn spans() {
        let texts = [
            0,
            999,
            1_500,
            225_448,
            999_499,
            999_500,
            12_345_678,
            999_500_000,
            36_800_000_000,
            59_949_000_000,
            59_950_000_000,
            489_000_000_000,
            3_599_600_000_000,
            7_512_000_000_000,
            72 * 3_600_000_000_000,
            i64::MIN,
        ]
        .map(duration_ns);
        let wanted = [
            "0 ns",
            "999 ns",
            "1.5 µs",
            "225 µs",
            "999 µs",
            "1 ms",
            "12.3 ms",
            "1 s",
            "36.8 s",
            "59.9 s",
            "1 min",
            "8 min 09 s",
            "1 h",
            "2 h 05 min",
            "3 d",
            "-106,752 d",
        ];
        assert_eq!(texts, wanted);
    }

    #[test]
    fn sizes() {
        let texts = [0, 1023, 4096, 1 << 20, 1_610_612_736, -2048, 200 << 20, (1 << 20) - 1].map(bytes);
        assert_eq!(texts, ["0 B", "1,023 B", "4 KiB", "1 MiB", "1.5 GiB", "-2 KiB", "200 MiB", "1 MiB"]);
        assert_eq!(bytes(10_422_591_488), "9.71 GiB");
    }

    #[test]
    fn energies() {
        assert_eq!(
            [0.00366, 12.345, 9_500.0, 1_234_567.0].map(energy),
            ["3.7 mJ", "12 J", "2.6 Wh", "340 Wh"]
        );
        assert_eq!([36.0, 1_970.0].map(measured_energy), ["36 J", "0.547 Wh"]);
        assert_eq!(energy_range([400.0, 140.0, 1090.0], energy_unit(400.0)), "0.11 Wh (0.039 to 0.3)");
        assert_eq!(energy_range([0.029, 0.0093, 0.089], energy_unit(110.0)), "0.029 J (0.0093 to 0.089)");
    }

    /// What the page must write too: `web/test/format.test.mjs` reads it. `BLESS=1` writes the file.
    #[test]
    fn the_page_has_the_same_rules() {
        let mut numbers = vec![0.0, 0.5, 0.125, 2.5, 1.125, 9.995, 99.95, 999.5, 1023.0, 1023.5, 1024.0];
        for power in -4..18 {
            numbers.extend([1.0, 1.2345, 3.5996, 5.995, 9.9949, -7.25].map(|n| n * 10f64.powi(power)));
        }
        let table = |name: &str, text: &dyn Fn(f64) -> String| {
            let lines: Vec<String> =
                numbers.iter().map(|n| format!("    [{n:?}, \"{}\"]", text(*n))).collect();
            format!("  \"{name}\": [\n{}\n  ]", lines.join(",\n"))
        };
        let tables = [
            table("number", &digits),
            table("duration", &duration),
            table("bytes", &|n| bytes(n as i64)),
            table("energy", &energy),
            table("measuredEnergy", &measured_energy),
            table("count", &|n| thousands(n.abs().round() as i128)),
        ];
        let text = format!("{{\n{}\n}}\n", tables.join(",\n"));
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../web/test/formats.json");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        let found = std::fs::read_to_string(path).unwrap_or_default().replace('\r', "");
        assert!(found == text, "web/test/formats.json is stale: BLESS=1 cargo test -p etwhy-base units::");
    }
}
