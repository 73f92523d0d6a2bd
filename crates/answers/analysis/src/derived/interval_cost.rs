//! Operations by what they took: rows of `interval`, summed by provider, name and process.
//!
//! # How it is computed
//!
//! Sums, percentiles (by nearest rank) and the longest are of intervals in state `complete`. Those in state `doubtful` have both ends but
//! perhaps not of the same operation, since buffers are missing between them; they have no duration and are only counted, as are those
//! with one end (`unfinished`, `no_start`). `per_second` is starts by the time from the first to the last event of the trace.
//!
//! # What fools it
//!
//! Intervals of one kind overlap: `total_ns` may be more than the trace's length. An operation that waits for another one holds its time
//! too. Unfinished ones may be the longest of all.

use crate::derive::DerivedSpec;
use crate::fold::{freeze, id};
use crate::operators::{ProcessRow, TraceRow, add, span};
use etwhy_stats::percentile::weighted_percentile;
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, define_table, reads};
use etwhy_trace::catalog::interval::IntervalRow;
use std::cmp::Reverse;
use std::collections::HashMap;

define_table! {
    /// Operations (start and stop events) by provider, name and process: how many, how long.
    pub table INTERVAL_COST: IntervalCostRow = "interval_cost" {
        version: 1,
        /// Provider.
        provider: Sym [None, Name],
        /// Operation: task, or the common name of the two events.
        name: Sym [None, Name],
        /// Process of the starts.
        upid: Option<i32> [None, Process],
        /// Intervals, whatever their state.
        count: i64 [Count, Count],
        /// With both ends.
        complete: i64 [Count, Count],
        /// Without an end: still going on, or the end was not recorded.
        unfinished: i64 [Count, Count],
        /// Without a start: begun before the recording, or the start was lost.
        no_start: i64 [Count, Count],
        /// With both ends, between which buffers are missing.
        doubtful: i64 [Count, Count],
        /// Starts per second of the recording; none if that has no length.
        per_second: Option<f64> [None, Other],
        /// Durations of complete ones, summed.
        total_ns: i64 [Ns, Duration],
        /// Half of the complete ones took no longer.
        median_ns: Option<i64> [Ns, Duration],
        /// 95 % of them took no longer.
        p95_ns: Option<i64> [Ns, Duration],
        /// The longest of them, the first one if there are several.
        longest_ns: Option<i64> [Ns, Duration],
        /// When that one began.
        longest_start_ns: Option<i64> [Ns, Time],
        /// Thread that began it.
        longest_utid: Option<i32> [None, Thread],
        /// Its activity, if its events have one.
        longest_activity: Option<Sym> [None, Guid],
    }
}

/// Declaration.
pub static DERIVED: DerivedSpec = DerivedSpec {
    tables: &[&INTERVAL_COST],
    reads: reads::<(IntervalRow, ProcessRow, TraceRow)>,
    on_demand: true,
    make,
};

/// Intervals of one kind.
#[derive(Default)]
struct Kind {
    durations: Vec<i64>,
    unfinished: i64,
    no_start: i64,
    doubtful: i64,
    longest: Option<Longest>,
}

#[derive(Clone, Copy)]
struct Longest {
    dur: i64,
    start: i64,
    utid: i64,
    activity: Sym,
}

impl Kind {
    fn complete(&mut self, one: Longest) {
        self.durations.push(one.dur);
        // Rows stand in no particular order.
        let rank = |l: &Longest| (l.dur, Reverse(l.start), Reverse(l.utid));
        if self.longest.is_none_or(|old| rank(&old) < rank(&one)) {
            self.longest = Some(one);
        }
    }
}

/// From the first to the last event of the trace.
pub(crate) fn recorded_ns(db: &Database) -> i64 {
    span(db).map_or(0, |(first, last)| last.saturating_sub(first))
}

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    let mut strings = Strings::new();
    let mut kinds: HashMap<(Sym, Sym, i64), Kind> = HashMap::new();
    for row in &db.read_or_empty::<IntervalRow>() {
        let key = (strings.intern(row.provider()), strings.intern(row.name()), row.upid().unwrap_or(-1));
        let kind = kinds.entry(key).or_default();
        match row.state() {
            "complete" => kind.complete(Longest {
                dur: row.dur_ns().unwrap_or(0),
                start: row.start_ns().unwrap_or(0),
                utid: row.utid().unwrap_or(-1),
                activity: strings.intern(row.activity().unwrap_or("")),
            }),
            "unfinished" => kind.unfinished += 1,
            "no_start" => kind.no_start += 1,
            _ => kind.doubtful += 1,
        }
    }
    let seconds = recorded_ns(db) as f64 / 1e9;
    let mut list: Vec<((Sym, Sym, i64), IntervalCostRow)> = kinds
        .into_iter()
        .map(|((provider, name, upid), kind)| {
            let complete = kind.durations.len() as i64;
            let started = complete + kind.unfinished + kind.doubtful;
            let weighted: Vec<(f64, f64)> = kind.durations.iter().map(|&dur| (dur as f64, 1.0)).collect();
            let [median, p95] = [0.5, 0.95].map(|share| weighted_percentile(&weighted, share));
            let mut total_ns = 0;
            kind.durations.iter().for_each(|dur| add(&mut total_ns, *dur));
            let row = IntervalCostRow {
                provider,
                name,
                upid: id(upid),
                count: started + kind.no_start,
                complete,
                unfinished: kind.unfinished,
                no_start: kind.no_start,
                doubtful: kind.doubtful,
                per_second: (seconds > 0.0).then(|| started as f64 / seconds),
                total_ns,
                median_ns: median.map(|ns| ns as i64),
                p95_ns: p95.map(|ns| ns as i64),
                longest_ns: kind.longest.map(|l| l.dur),
                longest_start_ns: kind.longest.map(|l| l.start),
                longest_utid: kind.longest.and_then(|l| id(l.utid)),
                longest_activity: kind.longest.map(|l| l.activity).filter(|a| *a != Sym::EMPTY),
            };
            ((provider, name, upid), row)
        })
        .collect();
    let place = |(provider, name, upid): &(Sym, Sym, i64)| {
        (strings.get(*provider).to_owned(), strings.get(*name).to_owned(), *upid)
    };
    list.sort_by_cached_key(|(key, row)| (Reverse((row.total_ns, row.count)), place(key)));
    let mut rows = TableBuilder::<IntervalCostRow>::new(memory);
    for (_, row) in list {
        rows.push(row);
    }
    Ok(vec![rows.finish(&freeze(strings, db)?)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::tests::{derived, table};
    use etwhy_table::Value;

    #[test]
    fn what_is_doubtful_or_has_one_end_is_counted_and_not_measured() {
        use Value::{I64 as N, Null, Text as T};
        let columns = "provider name upid state dur_ns start_ns utid activity";
        let row = |state, dur: Option<i64>, start: Option<i64>, upid| {
            let number = |n: Option<i64>| n.map_or(Null, N);
            let activity = if dur == Some(40) { T("a") } else { Null };
            vec![T("P"), T("Request"), N(upid), T(state), number(dur), number(start), N(7), activity]
        };
        let mut rows: Vec<Vec<Value<'_>>> =
            (1..=20).map(|n| row("complete", Some(n), Some(n * 100), 0)).collect();
        rows.push(row("complete", Some(40), Some(9_000), 0));
        rows.push(row("complete", Some(40), Some(8_000), 0));
        rows.push(row("doubtful", None, Some(1), 0));
        rows.push(row("unfinished", None, Some(2), 0));
        rows.push(row("no_start", None, None, 0));
        rows.push(row("unfinished", None, Some(3), 1));
        let mut db = Database::new();
        db.insert(table("interval", columns, &rows));
        let span = "first_ns last_ns";
        db.insert(table("trace", span, &[vec![N(0), N(2_000_000_000)], vec![N(1), N(1)]]));
        derived(&mut db, &["interval_cost"]);
        let t = db.get("interval_cost").unwrap();
        let n = |row, column| t.i64(row, column);
        assert_eq!(t.rows(), 2);
        let counts = ["count", "complete", "unfinished", "no_start", "doubtful"].map(|c| n(0, c).unwrap());
        assert_eq!(counts, [25, 22, 1, 1, 1]);
        assert_eq!(n(0, "total_ns"), Some(210 + 80));
        // Ranks 11 and 21 of 22.
        assert_eq!((n(0, "median_ns"), n(0, "p95_ns")), (Some(11), Some(40)));
        assert_eq!((n(0, "longest_ns"), n(0, "longest_start_ns")), (Some(40), Some(8_000)));
        assert_eq!(t.text(0, "longest_activity"), Some("a"));
        assert!((t.f64(0, "per_second").unwrap() - 12.0).abs() < 1e-9, "24 starts in 2 s");
        assert_eq!((n(1, "median_ns"), n(1, "longest_ns"), n(1, "total_ns")), (None, None, Some(0)));
    }
}
