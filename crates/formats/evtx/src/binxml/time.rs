//! FILETIME and SYSTEMTIME.

use super::out::Out;
use etwhy_base::Bytes as _;
use etwhy_base::time::{self, Civil};

/// Nanoseconds since 1970-01-01 (UTC) of a FILETIME; those of times that do not fit are the nearest that do.
#[inline]
pub fn utc_ns(ticks: u64) -> i64 {
    time::unix_ns(i64::try_from(ticks).unwrap_or(i64::MAX))
}

/// The FILETIME of nanoseconds since 1970-01-01 (UTC).
pub fn file_time(utc_ns: i64) -> u64 {
    time::filetime(utc_ns).cast_unsigned()
}

/// `2021-03-04T05:06:07.1234567Z`.
pub fn push_file_time(out: &mut impl Out, ticks: u64) {
    push_iso(out, Civil::new((ticks / 10_000_000) as i64, (ticks % 10_000_000) as u32));
}

fn push_iso(out: &mut impl Out, civil: Civil) {
    if civil.year > 9999 {
        let mut text = String::new();
        civil.push_iso(&mut text);
        return out.text(&text);
    }
    out.ascii(&civil.iso());
}

/// The FILETIME of `2021-03-04T05:06:07.1234567Z`; the fraction may be missing. `None` if there is no such day or time of day.
pub fn parse(text: &str) -> Option<u64> {
    u64::try_from(time::parse_filetime(text)?).ok()
}

/// The time of nanoseconds since 1970-01-01 (UTC).
pub fn push_utc_ns(out: &mut impl Out, utc_ns: i64) {
    push_file_time(out, file_time(utc_ns));
}

/// A SYSTEMTIME: year, month, day of the week, day, hour, minute, second, milliseconds.
pub fn push_system_time(out: &mut impl Out, bytes: &[u8; 16]) {
    let [year, month, _, day, hour, minute, second, ms] =
        std::array::from_fn(|n| u32::from(bytes.u16_at(n * 2).unwrap_or(0)));
    let ticks = ms.saturating_mul(10_000);
    push_iso(out, Civil { year: year.into(), month, day, hour, minute, second, ticks });
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
