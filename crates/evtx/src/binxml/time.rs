//! FILETIME and SYSTEMTIME.

use super::value::part;

/// 100 ns from 1601-01-01 to 1970-01-01.
const TICKS_TO_1970: i128 = 116_444_736_000_000_000;

/// Nanoseconds since 1970-01-01 (UTC) of a FILETIME; those of times that do not fit are the nearest that do.
#[inline]
pub fn utc_ns(ticks: u64) -> i64 {
    let ns = (i128::from(ticks) - TICKS_TO_1970) * 100;
    i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX })
}

/// The FILETIME of nanoseconds since 1970-01-01 (UTC).
pub fn file_time(utc_ns: i64) -> u64 {
    u64::try_from(i128::from(utc_ns).div_euclid(100) + TICKS_TO_1970).unwrap_or(0)
}

/// Year, month, day of days since 1970-01-01, by Hinnant's `civil_from_days`
/// (<https://howardhinnant.github.io/date_algorithms.html>).
fn civil(days: i64) -> (i64, u32, u32) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + i64::from(month <= 2), month as u32, (doy - (153 * mp + 2) / 5 + 1) as u32)
}

/// `2021-03-04T05:06:07.1234567Z`.
pub fn push_file_time(out: &mut String, ticks: u64) {
    let seconds = (ticks / 10_000_000) as i64 - (TICKS_TO_1970 / 10_000_000) as i64;
    let (year, month, day) = civil(seconds.div_euclid(86_400));
    let of_day = seconds.rem_euclid(86_400) as u32;
    push_stamp(
        out,
        year,
        [month, day, of_day / 3600, of_day / 60 % 60, of_day % 60],
        (ticks % 10_000_000) as u32,
    );
}

/// The FILETIME of `2021-03-04T05:06:07.1234567Z`; the fraction may be missing. `None` if there is no such day or time of day.
pub fn parse(text: &str) -> Option<u64> {
    let date: jiff::civil::DateTime = text.trim_end_matches(['Z', 'z']).parse().ok()?;
    let at = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp();
    u64::try_from(at.as_nanosecond().div_euclid(100) + TICKS_TO_1970).ok()
}

/// The time of nanoseconds since 1970-01-01 (UTC).
pub fn push_utc_ns(out: &mut String, utc_ns: i64) {
    push_file_time(out, file_time(utc_ns));
}

/// A SYSTEMTIME: year, month, day of the week, day, hour, minute, second, milliseconds.
pub fn push_system_time(out: &mut String, bytes: &[u8; 16]) {
    let n = |at| u32::from(part(bytes, at));
    push_stamp(out, i64::from(part(bytes, 0)), [n(1), n(3), n(4), n(5), n(6)], n(7).saturating_mul(10_000));
}

fn push_stamp(out: &mut String, year: i64, parts: [u32; 5], ticks: u32) {
    let mut stamp = *b"0000-00-00T00:00:00.0000000Z";
    let mut put = |range: std::ops::Range<usize>, mut n: u32| {
        for digit in stamp.get_mut(range).unwrap_or(&mut []).iter_mut().rev() {
            *digit = b'0' + (n % 10) as u8;
            n /= 10;
        }
    };
    put(0..4, (year.clamp(0, 9999)) as u32);
    for (range, n) in [5..7, 8..10, 11..13, 14..16, 17..19].into_iter().zip(parts) {
        put(range, n);
    }
    put(20..27, ticks);
    // FILETIMEs reach the year 60,000.
    if year > 9999 {
        out.push_str(&year.to_string());
        out.push_str(std::str::from_utf8(stamp.get(4..).unwrap_or(&[])).unwrap_or(""));
    } else {
        out.push_str(std::str::from_utf8(&stamp).unwrap_or(""));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        let text = |ticks| {
            let mut out = String::new();
            push_file_time(&mut out, ticks);
            out
        };
        assert_eq!(text(0), "1601-01-01T00:00:00.0000000Z");
        assert_eq!(text(116_444_736_000_000_000), "1970-01-01T00:00:00.0000000Z");
        // date -u -d @1583020799.9999999
        assert_eq!(text(116_444_736_000_000_000 + 15_830_207_999_999_999), "2020-02-29T23:59:59.9999999Z");
        assert!(text(u64::MAX).starts_with("60056-05-28T05:36:10"));
        assert_eq!(utc_ns(116_444_736_000_000_001), 100);
        for ticks in [116_444_736_000_000_000, 132_223_104_000_000_017, 131_000_000_123_456_789] {
            assert_eq!(parse(&text(ticks)), Some(ticks));
        }
        assert_eq!(parse("1970-01-01T00:00:01Z"), Some(116_444_736_010_000_000));
        assert_eq!(
            (parse("2015-13-45"), parse("2015-02-31T99:99:99"), parse("2023-02-29T00:00:00Z")),
            (None, None, None)
        );
        assert_eq!(file_time(utc_ns(132_223_104_000_000_017)), 132_223_104_000_000_017);
    }
}
