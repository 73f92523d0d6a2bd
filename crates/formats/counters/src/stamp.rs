//! Stamps of samples: local time in one of several styles.
//!
//! PDH writes `MM/DD/YYYY HH:MM:SS.mmm` whatever the language of Windows. Other programs write as their locale does.

use etwhy_base::time::days;

/// In which order a date has its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Month, day, year.
    Mdy,
    /// Day, month, year.
    Dmy,
    /// Year, month, day.
    Ymd,
}

/// The numbers of a stamp, and what stands between the first two.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    numbers: [u32; 7],
    count: usize,
    /// Digits of the last number.
    digits: usize,
    separator: u8,
    half: Option<bool>,
}

fn parts(bytes: &[u8]) -> Option<Parts> {
    let mut parts = Parts::default();
    let (mut inside, mut number, mut digits) = (false, 0u32, 0usize);
    let bytes = bytes.trim_ascii();
    for (at, &byte) in bytes.iter().enumerate() {
        if byte.is_ascii_digit() {
            inside = true;
            digits += 1;
            if digits <= 9 {
                number = number * 10 + u32::from(byte - b'0');
            }
            continue;
        }
        if inside {
            *parts.numbers.get_mut(parts.count)? = number;
            parts.count += 1;
            parts.digits = digits.min(9);
            (inside, number, digits) = (false, 0, 0);
            if parts.count == 1 {
                parts.separator = byte;
            }
        }
        match byte {
            b'/' | b'.' | b'-' | b':' | b',' | b' ' | b'T' => {}
            b'A' | b'a' | b'P' | b'p' if parts.count >= 5 => {
                // AM and PM, `a. m.` in some locales.
                let rest = bytes.get(at + 1..).unwrap_or(&[]);
                if !rest.iter().all(|b| matches!(b, b'm' | b'M' | b'.' | b' ')) {
                    return None;
                }
                parts.half = Some(matches!(byte, b'P' | b'p'));
                return Some(parts);
            }
            // A narrow blank of newer locales, in front of AM.
            0xC2 | 0xA0 | 0xE2 | 0x80 | 0xAF => {}
            _ => return None,
        }
    }
    if inside {
        *parts.numbers.get_mut(parts.count)? = number;
        parts.count += 1;
        parts.digits = digits.min(9);
    }
    Some(parts)
}

/// Nanoseconds since 1970 of a stamp, as if it were UTC. `None` if it is no stamp.
pub fn parse(bytes: &[u8], order: Order) -> Option<i64> {
    let Parts { numbers: [a, b, c, hour, minute, second, fraction], count, digits, half, .. } = parts(bytes)?;
    if count < 5 {
        return None;
    }
    let (year, month, day) = match order {
        Order::Mdy => (c, a, b),
        Order::Dmy => (c, b, a),
        Order::Ymd => (a, b, c),
    };
    let hour = match half {
        Some(_) if hour > 12 || hour == 0 => return None,
        Some(afternoon) => hour % 12 + if afternoon { 12 } else { 0 },
        None => hour,
    };
    let second = if count > 5 { second } else { 0 };
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let nanos = if count > 6 { u64::from(fraction) * 10u64.pow(9 - digits as u32) } else { 0 };
    let days = days(year, month, day).filter(|_| (1900..=2200).contains(&year))?;
    let seconds = days * 86_400 + i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second);
    Some(seconds * 1_000_000_000 + nanos as i64)
}

/// The order of the dates of a file, by some of its stamps, and whether it had to be assumed. `pdh`: its header is PDH's.
pub fn order_of<'a>(stamps: impl Iterator<Item = &'a [u8]>, pdh: bool) -> (Order, bool) {
    let mut dotted = false;
    let mut month_first = false;
    for parts in stamps.filter_map(parts).filter(|p| p.count >= 3) {
        let [a, b, ..] = parts.numbers;
        if a > 31 {
            return (Order::Ymd, false);
        }
        if a > 12 {
            return (Order::Dmy, false);
        }
        month_first |= b > 12;
        dotted |= parts.separator == b'.';
    }
    match (month_first, dotted) {
        (true, _) => (Order::Mdy, false),
        (false, true) => (Order::Dmy, false),
        (false, false) => (Order::Mdy, !pdh),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `date -u -d "2012-02-27 18:36:00" +%s` = 1330367760.
    const S: i64 = 1_330_367_760;

    #[test]
    fn stamps_of_several_styles() {
        let cases: [(&str, Order, i64); 10] = [
            ("02/27/2012 18:36:00.000", Order::Mdy, S * 1_000_000_000),
            ("02/27/2012 18:36:00.25", Order::Mdy, S * 1_000_000_000 + 250_000_000),
            ("27.02.2012 18:36:00", Order::Dmy, S * 1_000_000_000),
            ("2012-02-27T18:36:00,5", Order::Ymd, S * 1_000_000_000 + 500_000_000),
            ("2012/2/27 18:36", Order::Ymd, S * 1_000_000_000),
            ("2/27/2012 6:36:00 PM", Order::Mdy, S * 1_000_000_000),
            ("27/02/2012 6:36:00 p. m.", Order::Dmy, S * 1_000_000_000),
            ("2/27/2012 6:36:00\u{202f}PM", Order::Mdy, S * 1_000_000_000),
            ("27-02-2012 18.36.00", Order::Dmy, S * 1_000_000_000),
            ("2/27/2012 12:36:00 AM", Order::Mdy, (S - 18 * 3600) * 1_000_000_000),
        ];
        for (text, order, wanted) in cases {
            assert_eq!(parse(text.as_bytes(), order), Some(wanted), "{text}");
        }
    }

    #[test]
    fn what_is_no_stamp() {
        for text in [
            "",
            "Exiting, please wait...",
            "02/30/2012 1:00:00",
            "13/13/2012 1:00",
            "02/27/2012",
            "02/27/2012 25:00:00",
            "02/27/2012 13:00 PM",
            "1/1/1500 0:00",
            "1/1/99999 0:00",
            "1.2.3.4.5.6.7.8",
            "The command completed",
        ] {
            assert_eq!(parse(text.as_bytes(), Order::Mdy), None, "{text}");
        }
    }

    #[test]
    fn orders() {
        let order = |stamps: &[&str], pdh| order_of(stamps.iter().map(|s| s.as_bytes()), pdh);
        assert_eq!(order(&["02/03/2012 1:00:00", "02/13/2012 1:00:00"], true), (Order::Mdy, false));
        assert_eq!(order(&["02/03/2012 1:00:00", "13/03/2012 1:00:00"], true), (Order::Dmy, false));
        assert_eq!(order(&["02/03/2012 1:00:00"], true), (Order::Mdy, false));
        assert_eq!(order(&["02/03/2012 1:00:00"], false), (Order::Mdy, true));
        assert_eq!(order(&["02.03.2012 1:00:00"], false), (Order::Dmy, false));
        assert_eq!(order(&["2012-03-02 1:00:00"], false), (Order::Ymd, false));
    }
}
