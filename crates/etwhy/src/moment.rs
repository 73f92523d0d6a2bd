//! Times as people write them, for all commands.

use anyhow::{Context as _, bail};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// Nanoseconds of a unit.
fn unit_ns(unit: &str) -> Option<f64> {
    Some(match unit {
        "" | "s" => 1e9,
        "ms" => 1e6,
        "us" | "µs" => 1e3,
        "ns" => 1.0,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        "d" => 86_400e9,
        "w" => 7.0 * 86_400e9,
        _ => return None,
    })
}

/// A moment since the start such as `1.5s` or `200ms`, seconds without a unit: nanoseconds.
///
/// # Errors
/// If it is no number, its unit is not known, or it is longer than 292 years.
pub fn moment(text: &str) -> anyhow::Result<i64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == 'µ');
    let number: f64 =
        digits.trim().parse().with_context(|| format!("`{text}` is no time; try 1.5s or 200ms"))?;
    let unit = text.get(digits.len()..).unwrap_or("");
    let Some(factor) = unit_ns(unit) else {
        bail!("unknown unit `{unit}` in `{text}`; known: ns us ms s m h d w")
    };
    let ns = number * factor;
    // 292 years are what 64 bits of nanoseconds hold; NaN is no time either.
    if ns.is_nan() || ns.abs() >= i64::MAX as f64 {
        bail!("`{text}` is too long a time");
    }
    Ok(ns as i64)
}

/// The present, which relative times count from.
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// A date and time of day without a zone: `2026-03-04`, `2026-03-04 05:06`, `2026-03-04T05:06:07.5`. Nanoseconds since 1970 as if it were
/// UTC.
///
/// # Errors
/// If it is none, or there is no such day or time of day.
pub fn local_ns(text: &str) -> anyhow::Result<i64> {
    let text = text.trim();
    // An offset would be read and ignored.
    if text.get(10..).is_some_and(|time| time.contains(['+', '-', '['])) {
        return Err(wrong(text));
    }
    let date: DateTime = text.parse().map_err(|_| wrong(text))?;
    let at = date.to_zoned(TimeZone::UTC).map_err(|_| wrong(text))?.timestamp();
    i64::try_from(at.as_nanosecond()).map_err(|_| wrong(text))
}

fn wrong(text: &str) -> anyhow::Error {
    anyhow::anyhow!("invalid time `{text}`; expected e.g. 2026-03-04 or 2026-03-04T05:06:07")
}

/// A moment in UTC, in nanoseconds since 1970: as [`local_ns`], with an offset (`2026-03-04T05:06:07+02:00`, `Z`), or relative to `now`:
/// `-2h`, `now`, `today` and `yesterday` (their beginning in UTC).
///
/// # Errors
/// If it is none, or there is no such day or time of day.
pub fn utc_ns(text: &str, now: Timestamp) -> anyhow::Result<i64> {
    let text = text.trim();
    let days_ago = |days: i64| {
        let day = now.to_zoned(TimeZone::UTC).start_of_day().map_err(|_| wrong(text))?;
        day.timestamp().checked_sub(SignedDuration::from_hours(24 * days)).map_err(|_| wrong(text))
    };
    let at = match text {
        "now" => now,
        "today" => days_ago(0)?,
        "yesterday" => days_ago(1)?,
        _ if text.starts_with('-') => {
            let ago = moment(text.trim_start_matches('-')).map_err(|_| wrong(text))?;
            now.checked_sub(SignedDuration::from_nanos(ago)).map_err(|_| wrong(text))?
        }
        _ => match text.parse::<Timestamp>() {
            Ok(at) => at,
            Err(_) => return local_ns(text),
        },
    };
    i64::try_from(at.as_nanosecond()).map_err(|_| wrong(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        assert_eq!(moment("1.5s").ok(), Some(1_500_000_000));
        assert_eq!(moment("200ms").ok(), Some(200_000_000));
        assert_eq!(moment("2").ok(), Some(2_000_000_000));
        for none in ["soon", "NaN", "inf", "99999999999d", "1parsec"] {
            assert!(moment(none).is_err(), "{none}");
        }
    }

    /// `date -u -d 2024-02-29T05:06:07 +%s`
    const LEAP: i64 = 1_709_183_167;

    #[test]
    fn dates_of_the_calendar_and_no_others() {
        let now = Timestamp::from_second(LEAP).unwrap();
        let utc = |text: &str| utc_ns(text, now).ok().map(|ns| ns / 1_000_000_000);
        for text in [
            "2024-02-29T05:06:07",
            "2024-02-29 05:06:07.5",
            "2024-02-29T05:06:07Z",
            "2024-02-29T07:06:07+02:00",
            "now",
        ] {
            assert_eq!(utc(text), Some(LEAP), "{text}");
        }
        let midnight = LEAP - 5 * 3600 - 6 * 60 - 7;
        for text in ["2024-02-29", "2024-02-29T00:00", "today"] {
            assert_eq!(utc(text), Some(midnight), "{text}");
        }
        assert_eq!(utc("yesterday"), Some(midnight - 86_400));
        assert_eq!((utc("-2h"), utc("-1.5d")), (Some(LEAP - 7200), Some(LEAP - 129_600)));
        assert_eq!(local_ns(" 2024-02-29 05:06:07").ok(), Some(LEAP * 1_000_000_000));
    }

    /// What people mistype, and what a reader that looks at columns of digits takes for a date.
    pub const IMPOSSIBLE: [&str; 14] = [
        "2015-13-45",
        "2015-08-41",
        "2015-02-31T99:99:99",
        "2023-02-29",
        "2015-00-10",
        "2015-01-00",
        "2015-01-01T24:00:00",
        "2015-01-01T12:60",
        "2015-1-1x",
        "20150",
        "15-01-01T",
        "soon",
        "",
        "2015-01-01T12:00:00+99:00",
    ];

    #[test]
    fn impossible_dates_are_refused() {
        let now = Timestamp::from_second(LEAP).unwrap();
        for text in IMPOSSIBLE {
            let error = utc_ns(text, now).unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}`")), "{error}");
            assert!(local_ns(text).is_err(), "{text}");
        }
        for text in ["-soon", "-99999999999d", "-2parsecs"] {
            assert!(utc_ns(text, now).is_err(), "{text}");
        }
    }
}
