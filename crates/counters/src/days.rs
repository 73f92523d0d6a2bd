//! Days of the Gregorian calendar.

/// Days since 1970-01-01. `None` if there is no such day, or it is not between 1900 and 2200.
///
/// After Hinnant, "chrono-Compatible Low-Level Date Algorithms", `days_from_civil`.
pub fn days_of(year: u32, month: u32, day: u32) -> Option<i64> {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let last = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u32::from(leap),
        1..=12 => 31,
        _ => return None,
    };
    if !(1900..=2200).contains(&year) || day == 0 || day > last {
        return None;
    }
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, of_era) = (y / 400, y % 400);
    let of_year = (153 * m + 2) / 5 + day - 1;
    let days = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    Some(i64::from(era) * 146_097 + i64::from(days) - 719_468)
}

#[cfg(test)]
mod tests {
    use super::days_of;

    #[test]
    fn days_by_date() {
        // `date -u -d DATE +%s` / 86400.
        for (date, days) in [
            ((1970, 1, 1), 0),
            ((2000, 2, 29), 11_016),
            ((2012, 2, 27), 15_397),
            ((2024, 12, 31), 20_088),
            ((1900, 3, 1), -25_508),
        ] {
            assert_eq!(days_of(date.0, date.1, date.2), Some(days), "{date:?}");
        }
        for date in [
            (2023, 2, 29),
            (1900, 2, 29),
            (2024, 4, 31),
            (2024, 0, 1),
            (2024, 13, 1),
            (2024, 1, 0),
            (1899, 1, 1),
            (2201, 1, 1),
        ] {
            assert_eq!(days_of(date.0, date.1, date.2), None, "{date:?}");
        }
    }
}
