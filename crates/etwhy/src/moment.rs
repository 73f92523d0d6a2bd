//! Moments as people write them.

use anyhow::{Context as _, bail};

/// A moment such as `1.5s` or `200ms`, seconds without a unit: nanoseconds.
///
/// # Errors
/// If it is no number, or its unit is not known.
pub fn moment(text: &str) -> anyhow::Result<i64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == 'µ');
    let number: f64 =
        digits.trim().parse().with_context(|| format!("`{text}` is no time; try 1.5s or 200ms"))?;
    let factor = match text.get(digits.len()..).unwrap_or("") {
        "" | "s" => 1e9,
        "ms" => 1e6,
        "us" | "µs" => 1e3,
        "ns" => 1.0,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        unit => bail!("unknown unit `{unit}` in `{text}`; known: ns us ms s m h"),
    };
    Ok((number * factor) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        assert_eq!(moment("1.5s").ok(), Some(1_500_000_000));
        assert_eq!(moment("200ms").ok(), Some(200_000_000));
        assert_eq!(moment("2").ok(), Some(2_000_000_000));
        assert!(moment("soon").is_err());
    }
}
