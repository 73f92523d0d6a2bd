//! Numbers of counter logs, with a decimal point or comma.

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Field {
    /// A number.
    Value(f64),
    /// Nothing: PDH writes one blank where a sample has no value, as for the first of a rate.
    Missing,
    /// Something else.
    Wrong,
}

/// No counter is larger: behind this sums and figures are cut off.
const LARGEST: f64 = 9e18;

impl Field {
    /// What it holds of a counter, which `known` ones cannot have below zero. Differences of clocks may be a little below, and -1 has a
    /// meaning of its own.
    pub fn of_counter(self, known: bool) -> Field {
        match self {
            Field::Value(value) if value.abs() > LARGEST || (known && value < -1.0) => Field::Wrong,
            field => field,
        }
    }
}

/// Powers of ten that a double holds exactly.
const TENS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// Integers up to here are exact in a double.
const EXACT: u64 = 1 << 53;

/// Digits that are counted exactly: 10^19 fits 64 bits.
const MOST_DIGITS: usize = 19;

/// Reads a field, without its quotes.
///
/// Digits with at most one point or comma are read as a whole number over a power of ten, which is rounded once and
/// therefore right where both are exact (Clinger, "How to Read Floating Point Numbers Accurately", 1990). More digits, as PDH
/// writes them, are the standard library's. All else goes the long way.
pub fn field(bytes: &[u8]) -> Field {
    let bytes = bytes.trim_ascii();
    if bytes.is_empty() {
        return Field::Missing;
    }
    let (negative, digits) = match bytes.split_first() {
        Some((b'-', rest)) => (true, rest),
        _ => (false, bytes),
    };
    let (mut number, mut count, mut separator) = (0u64, 0usize, None);
    for (at, &byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                number = number.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
                count += 1;
            }
            b'.' | b',' if separator.is_none() => separator = Some(at),
            _ => return slow(bytes),
        }
    }
    if count == 0 {
        return Field::Wrong;
    }
    let places = separator.map_or(0, |at| digits.len() - at - 1);
    match TENS.get(places) {
        Some(power) if count <= MOST_DIGITS && number <= EXACT => {
            let value = number as f64 / power;
            Field::Value(if negative { -value } else { value })
        }
        _ => long(bytes),
    }
}

/// Many digits with at most one point or comma.
fn long(bytes: &[u8]) -> Field {
    let mut copy = [0u8; 64];
    let Some(copy) = copy.get_mut(..bytes.len()) else { return slow(bytes) };
    for (to, from) in copy.iter_mut().zip(bytes) {
        *to = if *from == b',' { b'.' } else { *from };
    }
    match std::str::from_utf8(copy).ok().and_then(|text| text.parse::<f64>().ok()) {
        Some(value) if value.is_finite() => Field::Value(value),
        _ => Field::Wrong,
    }
}

/// Exponents, many digits, several commas: `1.234.567,8` in the style of a locale.
#[cold]
fn slow(bytes: &[u8]) -> Field {
    // Longer than any number that PDH writes.
    let Some(text) = std::str::from_utf8(bytes).ok().filter(|t| t.len() <= 400) else { return Field::Wrong };
    let is_number = |c: char| {
        c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | '+' | 'e' | 'E' | '\'' | '\u{a0}' | '\u{202f}')
    };
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | ','))
        || !text.chars().all(is_number)
    {
        return Field::Wrong;
    }
    let mut plain: String = text.chars().filter(|c| !matches!(c, '\'' | '\u{a0}' | '\u{202f}')).collect();
    let (points, commas) = (plain.matches('.').count(), plain.matches(',').count());
    match (points, commas) {
        (_, 0) if points <= 1 => {}
        (0, 1) => plain = plain.replace(',', "."),
        // Both: the later one is the decimal sign.
        (p, c) if p > 0 && c > 0 => {
            let point_last = plain.rfind('.') > plain.rfind(',');
            let (decimal, other) = if point_last { ('.', ',') } else { (',', '.') };
            if plain.matches(decimal).count() > 1 {
                return Field::Wrong;
            }
            plain = plain.replace(other, "").replace(decimal, ".");
        }
        _ => plain = plain.replace(['.', ','], ""),
    }
    match plain.parse::<f64>() {
        Ok(value) if value.is_finite() => Field::Value(value),
        _ => Field::Wrong,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_base::rng::Rng;

    #[test]
    fn numbers_as_logs_have_them() {
        let value = |text: &str| field(text.as_bytes());
        assert_eq!(value("0.15360983102918"), Field::Value(0.15360983102918));
        assert_eq!(value(" 12,5"), Field::Value(12.5));
        assert_eq!(value("-1"), Field::Value(-1.0));
        assert_eq!(value("20261367808.000000"), Field::Value(20_261_367_808.0));
        assert_eq!(value("9.9991234567890123456"), Field::Value(9.999_123_456_789_012));
        assert_eq!(value("1.2e-005"), Field::Value(1.2e-5));
        assert_eq!(value("1,2E+3"), Field::Value(1200.0));
        assert_eq!(value("1.234.567,8"), Field::Value(1_234_567.8));
        assert_eq!(value("1,234,567.8"), Field::Value(1_234_567.8));
        assert_eq!(value("1,234,567"), Field::Value(1_234_567.0));
        assert_eq!(value("184467440737095516150"), Field::Value(184_467_440_737_095_516_150.0));
    }

    #[test]
    fn what_no_counter_has() {
        for (text, known, expected) in [
            ("-5", true, Field::Wrong),
            ("-5", false, Field::Value(-5.0)),
            ("-1", true, Field::Value(-1.0)),
            ("-0.25", true, Field::Value(-0.25)),
            ("1e308", false, Field::Wrong),
            ("-1e308", false, Field::Wrong),
            ("9e18", true, Field::Value(9e18)),
        ] {
            assert_eq!(field(text.as_bytes()).of_counter(known), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_number() {
        for missing in ["", " ", "\t "] {
            assert_eq!(field(missing.as_bytes()), Field::Missing);
        }
        for wrong in ["N/A", "1-2", ".", ",", "-", "nan", "inf", "1e999", "--1", "1.2.3,4,5", "\u{fffd}"] {
            assert_eq!(field(wrong.as_bytes()), Field::Wrong, "{wrong}");
        }
        assert_eq!(field(&[0xFF, 0x31]), Field::Wrong);
        assert_eq!(field(&[b'1'; 500]), Field::Wrong);
    }

    #[test]
    fn the_short_way_gives_what_the_standard_library_gives() {
        let mut rng = Rng::new(1);
        for _ in 0..200_000 {
            let seed = rng.bits();
            let text = format!(
                "{}.{:0width$}",
                seed >> 40,
                (seed >> 4) & 0xFFFF_FFFF,
                width = (seed % 9) as usize + 7
            );
            assert_eq!(field(text.as_bytes()), Field::Value(text.parse().unwrap()), "{text}");
        }
    }
}
