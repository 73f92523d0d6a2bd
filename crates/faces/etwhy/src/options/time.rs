//! Times as people write them: `--from` and `--to` (or `--since` and `--until`) of all commands.

use anyhow::{Context as _, bail};
use etwhy_counters::tables::CounterMachineRow;
use etwhy_table::Database;
use etwhy_trace::catalog::trace::TraceRow;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

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

/// A length of time such as `1.5s` or `200ms`, seconds without a unit: nanoseconds.
///
/// # Errors
/// If it is no number, its unit is not known, or it is longer than 292 years.
pub fn duration(text: &str) -> anyhow::Result<i64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == 'µ');
    let number: f64 =
        digits.trim().parse().with_context(|| format!("invalid time `{text}`; try 1.5s or 200ms"))?;
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

/// From when to when.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct TimeArgs {
    /// Start of the time range: 1.5s after the start, -2h before the end, "2026-11-24 10:00" (local time), 2026-11-24T09:00Z,
    /// 2026-11-24T10:00+01:00, today, yesterday
    #[arg(long, visible_alias = "since", value_name = "TIME", allow_hyphen_values = true, value_parser = When::parse)]
    pub from: Option<When>,
    /// End of the time range (exclusive)
    #[arg(long, visible_alias = "until", value_name = "TIME", allow_hyphen_values = true, value_parser = When::parse)]
    pub to: Option<When>,
}

/// A time as it was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Nanoseconds after the start: `1.5s`, `+200ms`, `3`.
    AfterStart(i64),
    /// Nanoseconds before the end: `-2h`.
    BeforeEnd(i64),
    /// Local time, in nanoseconds since 1970 as if it were UTC: `2026-03-04`, `2026-03-04 05:06:07`.
    Local(i64),
    /// The beginning of the local day so many days ago: `today`, `yesterday`.
    DaysAgo(i64),
    /// Nanoseconds since 1970 in UTC: `2026-03-04T05:06:07Z`, with an offset, `now`.
    Utc(i64),
}

impl When {
    /// Reads one.
    ///
    /// # Errors
    /// If it is none, or there is no such day or time of day.
    pub fn parse(text: &str) -> anyhow::Result<When> {
        let text = text.trim();
        let wrong = || {
            anyhow::anyhow!(
                "invalid time `{text}`; try 1.5s, -2h, \"2026-11-24 10:00\", 2026-11-24T09:00Z or 2026-11-24T10:00+01:00"
            )
        };
        let ns = |at: Timestamp| i64::try_from(at.as_nanosecond()).map_err(|_| wrong());
        let length = |text: &str| duration(text).ok().filter(|ns| *ns >= 0).ok_or_else(wrong);
        Ok(match text {
            "now" => When::Utc(ns(Timestamp::now())?),
            "today" => When::DaysAgo(0),
            "yesterday" => When::DaysAgo(1),
            _ if text.starts_with('-') => When::BeforeEnd(length(text.trim_start_matches('-'))?),
            _ if text.starts_with('+') => When::AfterStart(length(text.trim_start_matches('+'))?),
            _ => match (text.parse::<Timestamp>(), text.parse::<DateTime>()) {
                (Ok(at), _) => When::Utc(ns(at)?),
                // An offset that makes no sense would be read and passed over.
                (_, Ok(date)) if !text.get(10..).is_some_and(|time| time.contains(['+', '-', '['])) => {
                    When::Local(ns(date.to_zoned(TimeZone::UTC).map_err(|_| wrong())?.timestamp())?)
                }
                _ => When::AfterStart(length(text)?),
            },
        })
    }
}

impl When {
    /// Nanoseconds since the start of a trace; for all but [`When::AfterStart`] its table `trace` is read.
    ///
    /// # Errors
    /// If it is not there.
    pub fn in_trace(self, db: &Database) -> anyhow::Result<i64> {
        if let When::AfterStart(ns) = self {
            return Ok(ns);
        }
        let span = Span::of_trace(db)?;
        Ok(span.utc_ns(self)?.saturating_sub(span.start_ns.unwrap_or(0)))
    }
}

/// What times are relative to. UTC is nanoseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Start in UTC; `None` if there is none that a time could count from.
    pub start_ns: Option<i64>,
    /// End in UTC.
    pub end_ns: i64,
    /// Local time minus UTC.
    pub offset_ns: i64,
}

const DAY_NS: i64 = 86_400_000_000_000;

impl Span {
    /// Of event logs: they go on, so that their end is now, and do not say their zone.
    pub fn of_logs() -> Span {
        Span { start_ns: None, end_ns: now_ns(), offset_ns: 0 }
    }

    /// Of a trace, from its table `trace`.
    ///
    /// # Errors
    /// If the table is not there.
    pub fn of_trace(db: &Database) -> anyhow::Result<Span> {
        let trace = db.read_or_empty::<TraceRow>();
        let first = trace
            .first()
            .context("the start of the trace is not known; give times since the start, such as 1.5s")?;
        let start = trace.iter().map(|row| row.start_unix_ns()).filter(|ns| *ns > 0).min().unwrap_or(0);
        let end_ns = start.saturating_add(trace.iter().map(|row| row.last_ns()).max().unwrap_or(0));
        Ok(Span { start_ns: Some(start), end_ns, offset_ns: offset_ns(Some(first.time_zone_bias_min())) })
    }

    /// Of counter logs, from their table `counter_machine`.
    pub fn of_counters(db: &Database) -> Span {
        let machines = db.read_or_empty::<CounterMachineRow>();
        Span {
            start_ns: machines.iter().map(|row| row.first_utc_ns()).min(),
            end_ns: machines.iter().map(|row| row.last_utc_ns()).max().unwrap_or(0),
            offset_ns: offset_ns(machines.iter().find_map(|row| row.bias_min())),
        }
    }

    /// A time in UTC.
    ///
    /// # Errors
    /// If it counts from a start that is not known.
    pub fn utc_ns(&self, when: When) -> anyhow::Result<i64> {
        Ok(match when {
            When::AfterStart(ns) => {
                let start = self.start_ns.context(
                    "event logs have no start that times could count from; try -2h (before now), 2026-11-24 or 2026-11-24T09:00Z",
                )?;
                start.saturating_add(ns)
            }
            When::BeforeEnd(ns) => self.end_ns.saturating_sub(ns),
            When::Local(ns) => ns.saturating_sub(self.offset_ns),
            When::DaysAgo(days) => {
                let today = now_ns().saturating_add(self.offset_ns).div_euclid(DAY_NS);
                today.saturating_sub(days).saturating_mul(DAY_NS).saturating_sub(self.offset_ns)
            }
            When::Utc(ns) => ns,
        })
    }
}

/// A moment that a file covers: a time of day (`14:03`, `14:03:20`) on any day, or a whole time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeOfDay {
    /// Nanoseconds since local midnight.
    Daily(i64),
    /// One moment.
    Once(When),
}

impl TimeOfDay {
    /// Reads one.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse(text: &str) -> anyhow::Result<TimeOfDay> {
        let text = text.trim();
        match text.parse::<jiff::civil::Time>() {
            Ok(time) if text.contains(':') && !text.contains('-') => {
                let midnight = jiff::civil::Time::midnight();
                let since = time.duration_since(midnight).as_nanos();
                Ok(TimeOfDay::Daily(i64::try_from(since).unwrap_or(0)))
            }
            _ => match When::parse(text)? {
                When::AfterStart(_) | When::BeforeEnd(_) => {
                    bail!("`{text}` is no moment; try 14:03, 14:03:20 or \"2026-11-24 14:03\"")
                }
                when => Ok(TimeOfDay::Once(when)),
            },
        }
    }

    /// That moment, in nanoseconds since 1970 (UTC), if it lies between two others: on the last day that has it.
    pub fn within(self, (first, last): (i64, i64), offset_ns: i64) -> Option<i64> {
        let at = match self {
            TimeOfDay::Daily(since_midnight) => {
                let local = last.saturating_add(offset_ns);
                let day = local.saturating_sub(since_midnight).div_euclid(DAY_NS);
                day.saturating_mul(DAY_NS).saturating_add(since_midnight).saturating_sub(offset_ns)
            }
            TimeOfDay::Once(when) => {
                Span { start_ns: Some(first), end_ns: last, offset_ns }.utc_ns(when).ok()?
            }
        };
        (first <= at && at <= last).then_some(at)
    }
}

/// Local time minus UTC, from Windows' bias in minutes.
pub fn offset_ns(bias_min: Option<i64>) -> i64 {
    bias_min.unwrap_or(0).saturating_mul(-60_000_000_000)
}

fn now_ns() -> i64 {
    i64::try_from(Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX)
}

impl TimeArgs {
    /// True if the start, the end or the zone of what is read has to be known.
    pub fn needs_span(&self) -> bool {
        [self.from, self.to].iter().flatten().any(|when| !matches!(when, When::AfterStart(_)))
    }

    /// Both in nanoseconds since the start of a trace; whoever [`TimeArgs::needs_span`] has its table `trace`.
    ///
    /// # Errors
    /// If it has not, or the end is not later than the begin.
    pub fn in_trace(&self, db: &Database) -> anyhow::Result<(Option<i64>, Option<i64>)> {
        let one = |when: Option<When>| when.map(|when| when.in_trace(db)).transpose();
        in_order(one(self.from)?, one(self.to)?)
    }
}

/// A begin and an end, if they are in this order.
///
/// # Errors
/// If they are not: an answer about nothing would look like one about the trace.
pub fn in_order(from: Option<i64>, to: Option<i64>) -> anyhow::Result<(Option<i64>, Option<i64>)> {
    if let (Some(from), Some(to)) = (from, to) {
        anyhow::ensure!(from < to, "--to must be later than --from");
    }
    Ok((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_later_than_its_begin() {
        assert_eq!(in_order(Some(1), Some(2)).unwrap(), (Some(1), Some(2)));
        assert_eq!(in_order(Some(2), None).unwrap(), (Some(2), None));
        for wrong in [2, 1] {
            assert!(in_order(Some(2), Some(wrong)).unwrap_err().to_string().contains("--from"));
        }
    }

    #[test]
    fn lengths() {
        assert_eq!(duration("1.5s").ok(), Some(1_500_000_000));
        assert_eq!(duration("200ms").ok(), Some(200_000_000));
        assert_eq!(duration("2").ok(), Some(2_000_000_000));
        for none in ["soon", "NaN", "inf", "99999999999d", "1parsec"] {
            assert!(duration(none).is_err(), "{none}");
        }
    }

    const SECOND: i64 = 1_000_000_000;
    /// `date -u -d 2024-02-29T05:06:07 +%s`
    const LEAP: i64 = 1_709_183_167 * SECOND;
    /// A trace of ten seconds in Central Europe.
    const SPAN: Span = Span { start_ns: Some(LEAP), end_ns: LEAP + 10 * SECOND, offset_ns: 3600 * SECOND };

    #[test]
    fn all_forms_of_a_time() {
        let utc = |text: &str| When::parse(text).and_then(|when| SPAN.utc_ns(when)).ok();
        for text in [
            "2024-02-29T06:06:07",
            "2024-02-29 06:06:07.0",
            " 2024-02-29 06:06:07",
            "2024-02-29T05:06:07Z",
            "2024-02-29T07:06:07+02:00",
            "0",
            "+0s",
            "-10s",
        ] {
            assert_eq!(utc(text), Some(LEAP), "{text}");
        }
        let midnight = LEAP - (6 * 3600 + 6 * 60 + 7) * SECOND;
        assert_eq!((utc("2024-02-29"), utc("2024-02-29T00:00")), (Some(midnight), Some(midnight)));
        assert_eq!(
            (utc("+1.5s"), utc("2min"), utc("-2h")),
            (Some(LEAP + 1_500_000_000), Some(LEAP + 120 * SECOND), Some(LEAP - 7190 * SECOND))
        );
        let (today, yesterday) = (utc("today").unwrap(), utc("yesterday").unwrap());
        assert_eq!(((today + 3600 * SECOND) % DAY_NS, today - yesterday), (0, DAY_NS));
        assert!(utc("now").unwrap() > today);
    }

    #[test]
    fn a_time_of_day_is_that_of_the_last_day_that_has_it() {
        let at =
            |text: &str| TimeOfDay::parse(text).unwrap().within((LEAP, LEAP + 2 * DAY_NS), 3600 * SECOND);
        assert_eq!(at("06:06:07"), Some(LEAP + 2 * DAY_NS));
        assert_eq!(at("06:06:08"), Some(LEAP + DAY_NS + SECOND));
        assert_eq!(at("2024-02-29 06:06:08"), Some(LEAP + SECOND));
        assert_eq!(at("2024-03-04"), None);
        for none in ["25:00", "5s", "-2h", "noon"] {
            assert!(TimeOfDay::parse(none).is_err(), "{none}");
        }
    }

    /// What people mistype, and what a reader that looks at columns of digits takes for a date.
    const IMPOSSIBLE: [&str; 16] = [
        "2015-13-45",
        "2015-08-41",
        "2015-02-31T99:99:99",
        "2023-02-29",
        "2015-00-10",
        "2015-01-00",
        "2015-01-01T24:00:00",
        "2015-01-01T12:60",
        "2015-1-1x",
        "15-01-01T",
        "soon",
        "",
        "2015-01-01T12:00:00+99:00",
        "-soon",
        "-99999999999d",
        "+-2s",
    ];

    #[test]
    fn impossible_times_are_refused_with_an_example() {
        for text in IMPOSSIBLE {
            let error = When::parse(text).unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}`")) && error.contains("2026-11-24T09:00Z"), "{error}");
        }
        let error = Span::of_logs().utc_ns(When::AfterStart(0)).unwrap_err().to_string();
        assert!(error.contains("try -2h"), "{error}");
    }
}
