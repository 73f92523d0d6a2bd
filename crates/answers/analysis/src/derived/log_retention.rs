//! How far back event logs reach, and how far they would if one kind of event were not written.
//!
//! # How it is computed
//!
//! Rows of `log_file` and `log_type`. A log that has wrapped reaches back as far as it covers. One that has not is filled at its rate
//! so far: the time that it covers, by the part of its size that has records. Without a kind of event that has the part p of the bytes
//! the same room lasts 1/(1-p) times as long.
//!
//! # What fools it
//!
//! The largest size that a log may have is a setting (`wevtutil gl`, MaxSize) that is not in the file: a file that has not wrapped grows
//! beyond its present size, so its rollover is a lower bound. Exported logs have been filtered. A log of a storm shows the storm's rate.

use crate::derive::DerivedSpec;
use crate::fold::freeze_plain;
use crate::logs::per_day;
use crate::operators::add;
use etwhy_evtx::tables::{LogFileRow, LogTypeRow};
use etwhy_knowledge::audit_subcategory_of_task;
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, define_table, reads};
use std::cmp::Reverse;
use std::collections::BTreeMap;

define_table! {
    /// How far back a log reaches: for the log, for each kind of event without it, and for each audit subcategory without it.
    pub table LOG_RETENTION: LogRetentionRow = "log_retention" {
        version: 1,
        /// The log, as in `log_file`.
        log: i32 [None, Other],
        /// log: the whole log; kind: provider, event id and task; subcategory: audit subcategory; provider: all of a provider.
        scope: Sym [None, Kind],
        /// Provider; null for the whole log.
        provider: Option<Sym> [None, Name],
        /// Event id, of kinds.
        event_id: Option<i32> [None, Other],
        /// Task, of kinds and subcategories.
        task: Option<i32> [None, Other],
        /// Audit subcategory in English, where the task names one.
        subcategory: Option<Sym> [None, Name],
        /// Records.
        records: i64 [Count, Count],
        /// Bytes of the records in the file.
        bytes: i64 [Bytes, Bytes],
        /// Bytes by those of all records of the log.
        share: f64 [None, Other],
        /// Time from the earliest to the latest record of the log.
        span_ns: Option<i64> [Ns, Duration],
        /// Records per day; null if the log covers less than ten minutes.
        records_per_day: Option<f64> [None, Other],
        /// Bytes of records per day; null if the log covers less than ten minutes.
        bytes_per_day: Option<f64> [None, Other],
        /// The log has wrapped: what it covers is what it keeps.
        wrapped: bool [None, Other],
        /// How far back it reaches when the file is full at its present size and rate; null if it covers less than ten minutes.
        rollover_ns: Option<i64> [Ns, Duration],
        /// The same without these records.
        rollover_without_ns: Option<i64> [Ns, Duration],
        /// The same for each MiB that the file may have.
        rollover_per_mib_ns: Option<i64> [Ns, Duration],
    }
}

/// Declaration.
pub static DERIVED: DerivedSpec = DerivedSpec {
    tables: &[&LOG_RETENTION],
    reads: reads::<(LogFileRow, LogTypeRow)>,
    on_demand: false,
    make,
};

/// Size of a chunk, which a log is made of (`[MS-EVEN6]` does not say; Schuster, "Introducing the Microsoft Vista event log file format").
const CHUNK_BYTES: i64 = 65_536;

struct Log {
    size: i64,
    chunks: i64,
    wrapped: bool,
    span: Option<i64>,
    bytes: i64,
    records: i64,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    records: i64,
    bytes: i64,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    Log,
    Provider(String),
    Subcategory(String, i64),
    Kind(String, i64, i64),
}

/// The provider of audit records.
const AUDITING: &str = "Microsoft-Windows-Security-Auditing";

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    let mut logs: BTreeMap<i64, Log> = BTreeMap::new();
    for row in &db.read_or_empty::<LogFileRow>() {
        let span = row.first_utc_ns().zip(row.last_utc_ns()).map(|(first, last)| last.saturating_sub(first));
        let new = Log {
            size: row.size_bytes(),
            chunks: row.chunks(),
            wrapped: row.wrapped(),
            span,
            bytes: 0,
            records: 0,
        };
        logs.insert(row.log(), new);
    }
    let mut sums: BTreeMap<(i64, Scope), Sum> = BTreeMap::new();
    for row in &db.read_or_empty::<LogTypeRow>() {
        let Some(of_log) = logs.get_mut(&row.log()) else { continue };
        add(&mut of_log.bytes, row.bytes());
        add(&mut of_log.records, row.records());
        let name = row.provider().to_owned();
        let is_audit = name.eq_ignore_ascii_case(AUDITING) && audit_subcategory_of_task(row.task()).is_some();
        let scopes = [
            Some(Scope::Log),
            is_audit.then(|| Scope::Subcategory(name.clone(), row.task())),
            Some(Scope::Provider(name.clone())),
            Some(Scope::Kind(name, row.event_id(), row.task())),
        ];
        for scope in scopes.into_iter().flatten() {
            let sum = sums.entry((row.log(), scope)).or_default();
            add(&mut sum.records, row.records());
            add(&mut sum.bytes, row.bytes());
        }
    }
    let mut strings = Strings::new();
    let mut rows = TableBuilder::<LogRetentionRow>::new(memory);
    let mut sorted: Vec<_> = sums.into_iter().collect();
    let rank = |scope: &Scope| match scope {
        Scope::Log => 0,
        Scope::Provider(_) => 1,
        Scope::Subcategory(..) => 2,
        Scope::Kind(..) => 3,
    };
    sorted.sort_by(|((a_log, a), x), ((b_log, b), y)| {
        (a_log, rank(a), Reverse(x.bytes), a).cmp(&(b_log, rank(b), Reverse(y.bytes), b))
    });
    for ((number, scope), sum) in sorted {
        let Some(log) = logs.get(&number) else { continue };
        let share = if log.bytes > 0 { sum.bytes as f64 / log.bytes as f64 } else { 0.0 };
        let rate = |amount: i64| log.span.and_then(|span| per_day(amount, span));
        let rollover = rollover_ns(log);
        let (word, provider, event_id, task) = match &scope {
            Scope::Log => ("log", None, None, None),
            Scope::Provider(p) => ("provider", Some(p), None, None),
            Scope::Subcategory(p, task) => ("subcategory", Some(p), None, Some(*task)),
            Scope::Kind(p, id, task) => ("kind", Some(p), Some(*id), Some(*task)),
        };
        let subcategory = task
            .filter(|_| provider.is_some_and(|p| p.eq_ignore_ascii_case(AUDITING)))
            .and_then(audit_subcategory_of_task)
            .map(|s| strings.intern(s.name));
        rows.push(LogRetentionRow {
            log: i32::try_from(number).unwrap_or(-1),
            scope: strings.intern(word),
            provider: provider.map(|p| strings.intern(p)),
            event_id: event_id.map(|id| id as i32),
            task: task.map(|t| t as i32),
            subcategory,
            records: sum.records,
            bytes: sum.bytes,
            share,
            span_ns: log.span,
            records_per_day: rate(sum.records),
            bytes_per_day: rate(sum.bytes),
            wrapped: log.wrapped,
            rollover_ns: rollover.map(|ns| ns as i64),
            // Without everything it lasts for ever.
            rollover_without_ns: rollover.filter(|_| share < 1.0).map(|ns| (ns / (1.0 - share)) as i64),
            rollover_per_mib_ns: per_mib(log).map(|ns| ns as i64),
        });
    }
    Ok(vec![rows.finish(&freeze_plain(strings)?)?])
}

/// Time that a MiB of file lasts.
fn per_mib(log: &Log) -> Option<f64> {
    let span = log.span.filter(|span| *span >= crate::logs::SHORTEST_NS)?;
    // Of a file with few chunks the last is empty in part; what records take is the better measure then.
    let used = if log.chunks >= 8 { log.chunks.saturating_mul(CHUNK_BYTES) } else { log.bytes };
    (used > 0).then(|| span as f64 * f64::from(1 << 20) / used as f64)
}

fn rollover_ns(log: &Log) -> Option<f64> {
    let span = log.span.filter(|span| *span >= crate::logs::SHORTEST_NS)?;
    if log.wrapped {
        return Some(span as f64);
    }
    Some(per_mib(log)? * (log.size.saturating_sub(4_096).max(0) as f64 / f64::from(1 << 20)).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::tests::{derived, shown, table};
    use etwhy_table::Value;
    use etwhy_testkit::Are as _;

    #[test]
    fn half_of_a_full_log_removed_doubles_it() {
        use Value::{Bool as B, I64 as N, Text as T};
        const DAY: i64 = 86_400_000_000_000;
        let mut db = Database::new();
        let columns = "log size_bytes chunks wrapped first_utc_ns last_utc_ns";
        let rows = [
            vec![N(0), N(20 << 20), N(320), B(true), N(0), N(10 * DAY)],
            // 16 of 32 chunks (and a header page): half of the file took five days.
            vec![N(1), N(32 * 65_536 + 4_096), N(16), B(false), N(0), N(5 * DAY)],
            vec![N(2), N(69_632), N(1), B(false), N(0), N(1)],
        ];
        db.insert(table("log_file", columns, &rows));
        let columns = "log provider event_id task records bytes";
        let rows = [
            vec![N(0), T(AUDITING), N(5156), N(12_810), N(1_000), N(5_000_000)],
            vec![N(0), T(AUDITING), N(4624), N(12_544), N(500), N(2_500_000)],
            vec![N(0), T(AUDITING), N(4625), N(12_544), N(100), N(2_500_000)],
            vec![N(1), T("P"), N(1), N(0), N(10), N(100)],
            vec![N(2), T("P"), N(1), N(0), N(10), N(100)],
        ];
        db.insert(table("log_type", columns, &rows));
        derived(&mut db, &["log_retention"]);
        let t = db.get("log_retention").unwrap();
        shown(t, "log scope subcategory bytes rollover_ns rollover_without_ns", DAY).are(&[
            "0 log - 10000000 10 -",
            "0 provider - 10000000 10 -",
            "0 subcategory Logon 5000000 10 20",
            "0 subcategory Filtering Platform Connection 5000000 10 20",
            "0 kind Filtering Platform Connection 5000000 10 20",
            "0 kind Logon 2500000 10 13",
            "0 kind Logon 2500000 10 13",
            "1 log - 100 10 -",
            "1 provider - 100 10 -",
            "1 kind - 100 10 -",
            "2 log - 100 - -",
            "2 provider - 100 - -",
            "2 kind - 100 - -",
        ]);
        assert_eq!(t.f64(0, "bytes_per_day"), Some(1_000_000.0));
        assert_eq!(t.f64(4, "records_per_day"), Some(100.0));
        assert_eq!(t.i64(0, "rollover_per_mib_ns"), Some(DAY / 2), "20 MiB in ten days");
    }
}
