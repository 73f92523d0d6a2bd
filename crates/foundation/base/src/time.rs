//! The civil calendar, and the clock of Windows: a FILETIME counts 100 ns since 1601-01-01 (UTC).

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

/// 1970-01-01 as a FILETIME.
pub const UNIX_EPOCH: i64 = 116_444_736_000_000_000;
/// Days from 1601-01-01 to 1970-01-01.
const DAYS_TO_1970: i64 = 134_774;

/// Nanoseconds since 1970 of a FILETIME; of one that does not fit, the nearest that does.
#[inline]
pub fn unix_ns(filetime: i64) -> i64 {
    filetime.saturating_sub(UNIX_EPOCH).saturating_mul(100)
}

/// The FILETIME of nanoseconds since 1970. It is after 1601 for all of them.
#[inline]
pub fn filetime(unix_ns: i64) -> i64 {
    unix_ns.div_euclid(100) + UNIX_EPOCH
}

/// Days since 1970-01-01. `None` if there is no such day, or it is after 9999.
pub fn days(year: u32, month: u32, day: u32) -> Option<i64> {
    let date = Date::new(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?).ok()?;
    Some(date.duration_since(Date::constant(1970, 1, 1)).as_hours() / 24)
}

/// A moment in UTC such as `2021-03-04T05:06:07.1234567Z`; the fraction, the time of day and `Z` may be missing. `None` if there is no such
/// day or time of day.
pub fn parse_utc(text: &str) -> Option<jiff::Timestamp> {
    let date: DateTime = text.trim().trim_end_matches(['Z', 'z']).parse().ok()?;
    Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

/// [`parse_utc`] as a FILETIME, which is negative before 1601.
pub fn parse_filetime(text: &str) -> Option<i64> {
    let ticks = parse_utc(text)?.as_nanosecond().div_euclid(100) + i128::from(UNIX_EPOCH);
    i64::try_from(ticks).ok()
}

/// A FILETIME in UTC with up to seven decimals of the second: `2020-07-29 00:07:00.6236167`.
pub fn filetime_text(filetime: i64, decimals: usize) -> String {
    let Civil { year, month, day, hour, minute, second, ticks } = Civil::of_filetime(filetime);
    let mut text = format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{ticks:07}");
    text.truncate(text.len() - if decimals == 0 { 8 } else { 7_usize.saturating_sub(decimals) });
    text
}

/// A date and time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// Year of the Gregorian calendar, also before it was in use.
    pub year: i64,
    /// From 1.
    pub month: u32,
    /// From 1.
    pub day: u32,
    /// To 23.
    pub hour: u32,
    /// To 59.
    pub minute: u32,
    /// To 59.
    pub second: u32,
    /// 100 ns of the second.
    pub ticks: u32,
}

impl Civil {
    /// What a FILETIME means.
    #[inline]
    pub fn of_filetime(filetime: i64) -> Civil {
        Civil::new(filetime.div_euclid(10_000_000), filetime.rem_euclid(10_000_000) as u32)
    }

    /// The second after so many since 1601, and 100 ns of it.
    #[inline]
    pub fn new(seconds: i64, ticks: u32) -> Civil {
        let (year, month, day) = date(seconds.div_euclid(86_400) - DAYS_TO_1970);
        let second = seconds.rem_euclid(86_400) as u32;
        Civil { year, month, day, hour: second / 3600, minute: second / 60 % 60, second: second % 60, ticks }
    }

    /// Appends `2021-03-04T05:06:07.1234567Z`.
    pub fn push_iso(&self, out: &mut String) {
        let stamp = self.iso();
        // FILETIMEs reach the year 60,000.
        let from = if self.year > 9999 {
            out.push_str(&self.year.to_string());
            4
        } else {
            0
        };
        out.push_str(std::str::from_utf8(stamp.get(from..).unwrap_or(&[])).unwrap_or(""));
    }

    /// `2021-03-04T05:06:07.1234567Z`; a year beyond 9999 has its last four digits' place, but says 9999.
    #[inline]
    pub fn iso(&self) -> [u8; 28] {
        let year = self.year.clamp(0, 9999) as u32;
        let ticks = self.ticks % 10_000_000;
        let [y0, y1] = two_digits(year / 100);
        let [y2, y3] = two_digits(year);
        let [mo0, mo1] = two_digits(self.month);
        let [d0, d1] = two_digits(self.day);
        let [h0, h1] = two_digits(self.hour);
        let [mi0, mi1] = two_digits(self.minute);
        let [s0, s1] = two_digits(self.second);
        let [_, t0] = two_digits(ticks / 1_000_000);
        let [t1, t2] = two_digits(ticks / 10_000);
        let [t3, t4] = two_digits(ticks / 100);
        let [t5, t6] = two_digits(ticks);
        [
            y0, y1, y2, y3, b'-', mo0, mo1, b'-', d0, d1, b'T', h0, h1, b':', mi0, mi1, b':', s0, s1, b'.',
            t0, t1, t2, t3, t4, t5, t6, b'Z',
        ]
    }
}

/// The last two digits of a number.
#[inline]
fn two_digits(n: u32) -> [u8; 2] {
    let n = (n % 100) as u8;
    [b'0' + n / 10, b'0' + n % 10]
}

/// Year, month and day of days since 1970-01-01, by Hinnant's `civil_from_days`
/// (<https://howardhinnant.github.io/date_algorithms.html>): FILETIMEs go beyond the years that jiff has, and it is on the way of each record.
#[inline]
fn date(days: i64) -> (i64, u32, u32) {
    let z = days + 719_468;
    let (era, doe) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + i64::from(month <= 2), month as u32, (doy - (153 * mp + 2) / 5 + 1) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_those_of_the_calendar() {
        // `date -u -d DATE +%s` / 86400.
        for (at, wanted) in [
            ((1970, 1, 1), 0),
            ((2000, 2, 29), 11_016),
            ((2012, 2, 27), 15_397),
            ((2024, 12, 31), 20_088),
            ((1900, 3, 1), -25_508),
        ] {
            assert_eq!(days(at.0, at.1, at.2), Some(wanted), "{at:?}");
        }
        for at in [
            (2023, 2, 29),
            (1900, 2, 29),
            (2024, 4, 31),
            (2024, 0, 1),
            (2024, 13, 1),
            (2024, 1, 0),
            (10_000, 1, 1),
        ] {
            assert_eq!(days(at.0, at.1, at.2), None, "{at:?}");
        }
        // Every day from 1601 to 2401, which is two cycles of the calendar.
        let mut day = Date::constant(1601, 1, 1);
        for n in -DAYS_TO_1970..157_420 {
            assert_eq!(date(n), (day.year().into(), day.month() as u32, day.day() as u32));
            day = day.tomorrow().unwrap();
        }
        assert_eq!(day, Date::constant(2401, 1, 1));
    }

    #[test]
    fn filetimes_as_text() {
        let iso = |ticks| {
            let mut out = String::new();
            Civil::of_filetime(ticks).push_iso(&mut out);
            out
        };
        assert_eq!(iso(0), "1601-01-01T00:00:00.0000000Z");
        // date -u -d @1583020799.9999999
        assert_eq!(iso(UNIX_EPOCH + 15_830_207_999_999_999), "2020-02-29T23:59:59.9999999Z");
        assert_eq!(iso(i64::MAX), "30828-09-14T02:48:05.4775807Z");
        assert_eq!(filetime_text(132_404_548_206_236_167, 7), "2020-07-29 00:07:00.6236167");
        assert_eq!(filetime_text(125_962_560_000_000_000 + 12_345_670_000, 3), "2000-02-29 00:20:34.567");
        assert_eq!(filetime_text(filetime(1_330_367_760_000_000_000), 0), "2012-02-27 18:36:00");
        assert_eq!(filetime_text(filetime(951_825_599_000_000_000), 0), "2000-02-29 11:59:59");
        assert_eq!(filetime_text(-1, 7), "1600-12-31 23:59:59.9999999");
        assert!(!filetime_text(i64::MIN, 7).is_empty());
    }

    #[test]
    fn texts_as_filetimes() {
        for ticks in [UNIX_EPOCH, 132_223_104_000_000_017, 131_000_000_123_456_789, 0] {
            assert_eq!(parse_filetime(&filetime_text(ticks, 7)), Some(ticks));
        }
        assert_eq!(parse_filetime("2020-02-29T23:59:58.5Z"), Some(filetime(1_583_020_798_500_000_000)));
        assert_eq!(parse_filetime("2025-03-01"), Some(UNIX_EPOCH + 1_740_787_200 * 10_000_000));
        for text in ["2020-13-01T00:00:00Z", "soon", "", "2023-02-29", "2020-01-01T24:00:00"] {
            assert_eq!(parse_filetime(text), None, "{text}");
        }
    }

    #[test]
    fn nanoseconds_of_1970() {
        assert_eq!((unix_ns(UNIX_EPOCH + 1), unix_ns(0), unix_ns(i64::MAX)), (100, i64::MIN, i64::MAX));
        assert_eq!(unix_ns(filetime(-100)), -100);
        assert!(filetime(i64::MIN) > 0);
    }
}
