//! Bursts above the usual rate of a log, and storms that come again and again.
//!
//! # How it is computed
//!
//! Bursts: records in buckets of a round width, at most 2,000 over the log. Usual is the median of the buckets (of those with records, if
//! most are empty). A burst is a run of buckets with at least 20 records each, more than four times the usual number, and more than
//! six deviations of a Poisson process above it.
//!
//! Periods: for each of the twelve most frequent kinds of event, autocorrelation of its records in 2,048 buckets over the whole log,
//! over the busiest day and over the busiest hour, each from the kind's first record to its last. The records have to repeat themselves in
//! all parts of that time (of three or four parts one may pause).
//!
//! # What fools it
//!
//! A working day is a period of a day, and Monday morning is a burst. Exported logs may be parts.

use crate::derive::DerivedSpec;
use crate::fold::freeze_plain;
use crate::logs::{SECOND_NS, round_width};
use etwhy_evtx::tables::LogRecordRow;
use etwhy_stats::periodic;
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, define_table, reads};
use foldhash::HashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;

define_table! {
    /// Bursts and periodic storms of logs.
    pub table LOG_BURST: LogBurstRow = "log_burst" {
        version: 1,
        /// The log, as in `log_file`.
        log: i32 [None, Other],
        /// burst, or periodic.
        kind: Sym [None, Kind],
        /// Begin, of a burst or of the time in which the period was seen; since the trace's start or the earliest record.
        start_ns: i64 [Ns, Time],
        /// End.
        end_ns: i64 [Ns, Time],
        /// The begin since 1970 (UTC).
        start_utc_ns: i64 [Ns, Other],
        /// Records, of a burst all, else those of the kind.
        records: i64 [Count, Count],
        /// Bytes of these records.
        bytes: i64 [Bytes, Bytes],
        /// Records that are usual in a time as long as the burst.
        usual_records: Option<f64> [None, Other],
        /// Records by what is usual; null if nothing is usual.
        times: Option<f64> [None, Other],
        /// Period of a periodic storm.
        period_ns: Option<i64> [Ns, Duration],
        /// Autocorrelation at the period, 0 to 1.
        strength: Option<f64> [None, Other],
        /// Provider: of a burst the one of the kind with most records in it.
        provider: Sym [None, Name],
        /// Event id of that kind.
        event_id: i32 [None, Other],
        /// Records of that kind.
        kind_records: i64 [Count, Count],
    }
}

/// Declaration.
pub static DERIVED: DerivedSpec =
    DerivedSpec { tables: &[&LOG_BURST], reads: reads::<LogRecordRow>, on_demand: false, make };

const BUCKETS: i64 = 2_000;
/// Fewer records than these in a bucket are no burst.
const LEAST: f64 = 20.0;
/// Times the usual.
const TIMES: f64 = 4.0;
/// Deviations of a Poisson process: 6 of 2,000 buckets by chance is one in 500,000 logs.
const DEVIATIONS: f64 = 6.0;
/// Bursts that are kept per log, the largest.
const BURSTS: usize = 100;
/// Kinds whose periods are looked for.
const KINDS: usize = 12;
/// Fewer records than these show no period.
const LEAST_OF_KIND: usize = 30;
/// Buckets for a period.
const PERIOD_BUCKETS: usize = 2_048;
/// Stretches in which periods are looked for beside the whole log.
const STRETCHES_NS: [i64; 2] = [86_400 * SECOND_NS, 3_600 * SECOND_NS];

struct Record {
    utc: i64,
    kind: u32,
    bytes: i64,
}

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    let mut logs: BTreeMap<i64, Vec<Record>> = BTreeMap::new();
    let mut kinds: HashMap<(&str, i64), u32> = HashMap::default();
    let mut list: Vec<(&str, i64)> = Vec::new();
    let mut zero = 0_i64;
    let all = db.read_or_empty::<LogRecordRow>();
    for row in &all {
        let key = (row.provider(), row.event_id());
        let kind = *kinds.entry(key).or_insert_with(|| {
            list.push(key);
            list.len() as u32 - 1
        });
        zero = row.utc_ns().saturating_sub(row.ts_ns());
        logs.entry(row.log()).or_default().push(Record { utc: row.utc_ns(), kind, bytes: row.bytes() });
    }
    let mut strings = Strings::new();
    let mut rows = TableBuilder::<LogBurstRow>::new(memory);
    for (log, mut records) in logs {
        records.sort_by_key(|r| r.utc);
        let mut found = bursts(&records);
        found.extend(periods(&records));
        for one in found {
            let (provider, id) = list.get(one.top as usize).copied().unwrap_or(("", 0));
            rows.push(LogBurstRow {
                log: i32::try_from(log).unwrap_or(-1),
                kind: strings.intern(if one.period_ns.is_some() { "periodic" } else { "burst" }),
                start_ns: one.start.saturating_sub(zero),
                end_ns: one.end.saturating_sub(zero),
                start_utc_ns: one.start,
                records: one.records,
                bytes: one.bytes,
                usual_records: one.usual,
                times: one.usual.filter(|u| *u > 0.0).map(|u| one.records as f64 / u),
                period_ns: one.period_ns,
                strength: one.strength,
                provider: strings.intern(provider),
                event_id: id as i32,
                kind_records: one.top_records,
            });
        }
    }
    Ok(vec![rows.finish(&freeze_plain(strings)?)?])
}

/// A burst or a period.
struct Found {
    start: i64,
    end: i64,
    records: i64,
    bytes: i64,
    usual: Option<f64>,
    period_ns: Option<i64>,
    strength: Option<f64>,
    top: u32,
    top_records: i64,
}

/// The records from one time to another, of sorted ones.
fn within(records: &[Record], from: i64, to: i64) -> &[Record] {
    let low = records.partition_point(|r| r.utc < from);
    let high = records.partition_point(|r| r.utc < to);
    records.get(low..high.max(low)).unwrap_or(&[])
}

fn bursts(records: &[Record]) -> Vec<Found> {
    let (Some(first), Some(last)) = (records.first(), records.last()) else { return Vec::new() };
    let width = round_width(last.utc.saturating_sub(first.utc), BUCKETS);
    let bucket = |utc: i64| utc.div_euclid(width);
    let base = bucket(first.utc);
    let n = usize::try_from(bucket(last.utc).saturating_sub(base)).unwrap_or(0).min(BUCKETS as usize + 1) + 1;
    let mut counts = vec![0_u32; n];
    for record in records {
        let at = usize::try_from(bucket(record.utc).saturating_sub(base)).unwrap_or(0);
        if let Some(count) = counts.get_mut(at) {
            *count = count.saturating_add(1);
        }
    }
    let mut sorted: Vec<u32> = counts.clone();
    sorted.sort_unstable();
    let median = |of: &[u32]| of.get(of.len() / 2).copied().map_or(0.0, f64::from);
    let mut usual = median(&sorted);
    if usual == 0.0 {
        usual = median(sorted.get(sorted.partition_point(|c| *c == 0)..).unwrap_or(&[]));
    }
    let limit = LEAST.max(TIMES * usual).max(usual + DEVIATIONS * usual.sqrt());
    let mut found = Vec::new();
    let mut at = 0;
    while at < n {
        let is_high = |at: usize| counts.get(at).is_some_and(|c| f64::from(*c) > limit);
        if !is_high(at) {
            at += 1;
            continue;
        }
        let end = (at..n).find(|i| !is_high(*i)).unwrap_or(n);
        let time = |i: usize| base.saturating_add(i as i64).saturating_mul(width);
        let inside = within(records, time(at), time(end));
        let (top, top_records) = top(inside);
        found.push(Found {
            start: time(at),
            end: time(end),
            records: inside.len() as i64,
            bytes: inside.iter().fold(0, |sum, r| sum.saturating_add(r.bytes)),
            usual: Some(usual * (end - at) as f64),
            period_ns: None,
            strength: None,
            top,
            top_records,
        });
        at = end;
    }
    found.sort_by_key(|f| (Reverse(f.records), f.start));
    found.truncate(BURSTS);
    found
}

/// The kind with most records, and how many.
fn top(records: &[Record]) -> (u32, i64) {
    let mut sums: BTreeMap<u32, i64> = BTreeMap::new();
    for record in records {
        *sums.entry(record.kind).or_default() += 1;
    }
    sums.into_iter().max_by_key(|(kind, n)| (*n, Reverse(*kind))).unwrap_or((0, 0))
}

fn periods(records: &[Record]) -> Vec<Found> {
    let (Some(first), Some(last)) = (records.first(), records.last()) else { return Vec::new() };
    let span = last.utc.saturating_sub(first.utc);
    let mut of_kind: BTreeMap<u32, Vec<(i64, i64)>> = BTreeMap::new();
    for record in records {
        of_kind.entry(record.kind).or_default().push((record.utc, record.bytes));
    }
    let mut kinds: Vec<(u32, Vec<(i64, i64)>)> =
        of_kind.into_iter().filter(|(_, times)| times.len() >= LEAST_OF_KIND).collect();
    kinds.sort_by_key(|(kind, times)| (Reverse(times.len()), *kind));
    let mut found = Vec::new();
    for (kind, times) in kinds.into_iter().take(KINDS) {
        let mut seen: Vec<i64> = Vec::new();
        let shorter = STRETCHES_NS.into_iter().filter(|s| span > s.saturating_mul(2));
        for stretch in std::iter::once(span.max(1)).chain(shorter) {
            let begin = if stretch >= span { first.utc } else { busiest(&times, stretch) };
            // From the kind's first record to its last: what comes before and after says nothing of a period.
            let inside = |utc: &i64| utc.checked_sub(begin).is_some_and(|d| (0..=stretch).contains(&d));
            let mut of_stretch = times.iter().map(|(utc, _)| *utc).filter(inside);
            let Some(from) = of_stretch.next() else { continue };
            let to = of_stretch.next_back().unwrap_or(from);
            let width = to.saturating_sub(from) / PERIOD_BUCKETS as i64 + 1;
            let mut counts = vec![0_u32; PERIOD_BUCKETS];
            let (mut n, mut bytes) = (0_i64, 0_i64);
            for (utc, size) in &times {
                let at =
                    utc.checked_sub(from).filter(|d| *d >= 0).and_then(|d| usize::try_from(d / width).ok());
                if let Some(count) = at.and_then(|at| counts.get_mut(at)) {
                    *count = count.saturating_add(1);
                    n += 1;
                    bytes = bytes.saturating_add(*size);
                }
            }
            if n < LEAST_OF_KIND as i64 {
                continue;
            }
            let Some(period) = periodic::period(&counts) else { continue };
            let period_ns = (period.buckets * width as f64) as i64;
            // The same period seen in a shorter stretch, or a multiple of it, is no other one.
            if seen.iter().any(|old| (period_ns as f64 / *old as f64 - 1.0).abs() < 0.2) {
                continue;
            }
            seen.push(period_ns);
            found.push(Found {
                start: from,
                end: to.saturating_add(1),
                records: n,
                bytes,
                usual: None,
                period_ns: Some(period_ns),
                strength: Some(period.strength),
                top: kind,
                top_records: n,
            });
        }
    }
    found
}

/// Begin of the stretch of this length with most records, of sorted times.
fn busiest(times: &[(i64, i64)], stretch: i64) -> i64 {
    let (mut best, mut start, mut low) = (0, times.first().map_or(0, |(utc, _)| *utc), 0);
    for (high, (utc, _)) in times.iter().enumerate() {
        while times.get(low).is_some_and(|(t, _)| utc.saturating_sub(*t) >= stretch) {
            low += 1;
        }
        if high + 1 - low > best {
            best = high + 1 - low;
            start = times.get(low).map_or(*utc, |(t, _)| *t);
        }
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::tests::{derived, table};
    use etwhy_table::Value;

    fn made(rows: &[(i64, i64)]) -> Database {
        use Value::{I64 as N, Text as T};
        let columns = "ts_ns utc_ns log provider event_id bytes";
        let row = |&(ns, id): &(i64, i64)| vec![N(ns), N(ns), N(0), T("P"), N(id), N(100)];
        let mut db = Database::new();
        db.insert(table("log_record", columns, &rows.iter().map(row).collect::<Vec<_>>()));
        derived(&mut db, &["log_burst"]);
        db
    }

    #[test]
    fn a_burst_in_a_quiet_log() {
        // One record each 10 s over 2,000 s, so the buckets are 2 s... and 300 of another kind in 3 s from 1,000 s on.
        let mut rows: Vec<(i64, i64)> = (0..200).map(|n| (n * 10 * SECOND_NS, 1)).collect();
        rows.extend((0..300).map(|n| (1_000 * SECOND_NS + n * SECOND_NS / 100, 2)));
        let db = made(&rows);
        let t = db.get("log_burst").unwrap();
        let burst: Vec<u32> = (0..t.rows() as u32).filter(|r| t.text(*r, "kind") == Some("burst")).collect();
        assert_eq!(burst.len(), 1);
        let n = |c| t.i64(burst[0], c).unwrap();
        assert_eq!(
            (n("start_ns") / SECOND_NS, n("records"), n("event_id"), n("kind_records")),
            (1_000, 301, 2, 300)
        );
        assert_eq!(n("end_ns") / SECOND_NS, 1_003);
    }

    #[test]
    fn a_storm_every_five_minutes() {
        // 20 records every 300 s for 20 hours, and one of another kind now and then.
        let mut rows = Vec::new();
        for storm in 0..240_i64 {
            rows.extend((0..20).map(|n| (storm * 300 * SECOND_NS + n * 50_000_000, 7)));
            rows.push((storm * 300 * SECOND_NS + storm * storm % 291 * SECOND_NS, 8));
        }
        let db = made(&rows);
        let t = db.get("log_burst").unwrap();
        let periodic: Vec<u32> = (0..t.rows() as u32)
            .filter(|r| t.text(*r, "kind") == Some("periodic") && t.i64(*r, "event_id") == Some(7))
            .collect();
        assert_eq!(periodic.len(), 1, "one period, although it is seen in the day and in the hour");
        let period = t.i64(periodic[0], "period_ns").unwrap() as f64 / 1e9;
        assert!((period - 300.0).abs() < 10.0, "{period}");
        assert!(t.f64(periodic[0], "strength").unwrap() > 0.5);
    }
}
