//! What writes into event logs, over time and in sum: by kind of event, process and account.
//!
//! # How it is computed
//!
//! Records of `log_record`, in buckets of a round width of which at most 240 cover the log. The process is the one that the record
//! names (`NewProcessName`, `ProcessName`, `CallerProcessName`, `Image`, `SourceImage`, `Application`; without its folder), else the
//! process id that wrote it. The account is the record's subject, else its target, else `User`, else the user's SID. The 200 costliest
//! combinations of a log are named in `log_rate`; in the others process and account are `(others)`, and kinds of event beyond the 40
//! costliest are. `log_party` has the exact sums of each process and account.
//!
//! # What fools it
//!
//! The process that a record names caused it or is its subject; it did not write it: that is the provider's. One record with a wrong
//! time makes the buckets wide.

use crate::derive::DerivedSpec;
use crate::fold::freeze_plain;
use crate::logs::{OTHERS, process_and_account, round_width};
use crate::operators::add;
use etwhy_evtx::tables::LogRecordRow;
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, define_table, reads};
use foldhash::fast::RandomState;
use foldhash::{HashMap, HashSet};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::hash::BuildHasher;

define_table! {
    /// What was written into a log in each bucket of time, by kind of event, process and account.
    pub table LOG_RATE: LogRateRow = "log_rate" {
        version: 1,
        /// The log, as in `log_file`.
        log: i32 [None, Other],
        /// Begin of the bucket, since the trace's start or the earliest record.
        start_ns: i64 [Ns, Time],
        /// The same since 1970 (UTC); a multiple of the width.
        start_utc_ns: i64 [Ns, Other],
        /// Width of the buckets of this log.
        bucket_ns: i64 [Ns, Duration],
        /// Provider; `(others)` for kinds that are not named.
        provider: Sym [None, Name],
        /// Event id; null for kinds that are not named.
        event_id: Option<i32> [None, Other],
        /// Task; null for kinds that are not named.
        task: Option<i32> [None, Other],
        /// Process that the record names, else `pid N`; null where there is none.
        process: Option<Sym> [None, Name],
        /// Account that the record names, else the user's SID; null where there is none.
        account: Option<Sym> [None, Name],
        /// Records.
        records: i64 [Count, Count],
        /// Bytes of the records in the file.
        bytes: i64 [Bytes, Bytes],
    }
}

define_table! {
    /// What each process and each account is named in: exact sums, the largest first.
    pub table LOG_PARTY: LogPartyRow = "log_party" {
        version: 1,
        /// The log, as in `log_file`.
        log: i32 [None, Other],
        /// process or account.
        kind: Sym [None, Kind],
        /// Name; `(none)` for records without one, `(others)` for those beyond the first thousand.
        name: Sym [None, Name],
        /// Records.
        records: i64 [Count, Count],
        /// Bytes of the records in the file.
        bytes: i64 [Bytes, Bytes],
        /// Bytes by those of all records of the log.
        share: f64 [None, Other],
        /// Provider of the kind of event that most of the bytes are of.
        top_provider: Sym [None, Name],
        /// Its event id.
        top_event_id: i32 [None, Other],
        /// Its records.
        top_records: i64 [Count, Count],
        /// Its task.
        top_task: i32 [None, Other],
    }
}

/// Declaration.
pub static DERIVED: DerivedSpec =
    DerivedSpec { tables: &[&LOG_RATE, &LOG_PARTY], reads: reads::<LogRecordRow>, on_demand: false, make };

/// Buckets of a log.
const BUCKETS: i64 = 240;
/// Kinds of event that are named in `log_rate`.
const KINDS: usize = 40;
/// Combinations of kind, process and account that are named in `log_rate`.
const COMBINATIONS: usize = 200;
/// Processes, and accounts, that `log_party` names.
const PARTIES: usize = 1_000;

/// Texts as numbers.
#[derive(Default)]
struct Names {
    numbers: HashMap<String, u32>,
    texts: Vec<String>,
    /// Numbers of `pid N`.
    pids: HashMap<i64, u32>,
}

impl Names {
    fn number(&mut self, text: &str) -> u32 {
        if let Some(n) = self.numbers.get(text) {
            return *n;
        }
        let n = self.texts.len() as u32;
        self.numbers.insert(text.to_owned(), n);
        self.texts.push(text.to_owned());
        n
    }

    fn pid(&mut self, pid: i64) -> u32 {
        if let Some(n) = self.pids.get(&pid) {
            return *n;
        }
        let n = self.number(&format!("pid {pid}"));
        self.pids.insert(pid, n);
        n
    }

    fn text(&self, number: u32) -> &str {
        self.texts.get(number as usize).map_or("", String::as_str)
    }
}

/// Fields that are remembered, by some bits of their hash.
const RECENT: usize = 4_096;

/// Process and account that fields name, by the fields: most records have those of one before, and finding that out costs less than reading
/// JSON.
struct Parties<'f> {
    hasher: RandomState,
    recent: Box<[(&'f str, Party)]>,
}

/// Process and account.
type Party = (Option<u32>, Option<u32>);

impl Default for Parties<'_> {
    fn default() -> Self {
        // No fields name nobody.
        Parties { hasher: RandomState::default(), recent: vec![("", (None, None)); RECENT].into() }
    }
}

impl<'f> Parties<'f> {
    /// The process that the fields name, else the one that wrote the record, and the account that they name.
    fn of(
        &mut self,
        fields: &'f str,
        names: &mut Names,
        writer: impl FnOnce(&mut Names) -> Option<u32>,
    ) -> Party {
        let at = self.hasher.hash_one(fields) as usize % RECENT;
        let Some((known, party)) = self.recent.get_mut(at) else { return (None, None) };
        if *known == fields {
            return (party.0.or_else(|| writer(names)), party.1);
        }
        let (process, account) = process_and_account(fields);
        let process = process.map(|process| names.number(&process));
        let shown = process.or_else(|| writer(names));
        let account = account.map(|account| names.number(&account));
        (*known, *party) = (fields, (process, account));
        (shown, account)
    }
}

/// Provider, event id, task.
type Kind = (u32, i64, i64);
/// Kind, process, account.
type Combination = (Kind, Option<u32>, Option<u32>);

/// Begin of a bucket, kind, process, account.
type Cell = (i64, Option<Kind>, Option<u32>, Option<u32>);

#[derive(Clone, Copy, Default)]
struct Sum {
    records: i64,
    bytes: i64,
}

impl Sum {
    fn add(&mut self, other: Sum) {
        add(&mut self.records, other.records);
        add(&mut self.bytes, other.bytes);
    }
}

/// One log's records before they are summed.
#[derive(Default)]
struct Log {
    records: Vec<(i64, u32, i64)>,
    /// All of them, by combination.
    sums: HashMap<u32, Sum>,
    first: Option<i64>,
    last: Option<i64>,
}

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    let mut names = Names::default();
    let mut combinations: HashMap<Combination, u32> = HashMap::default();
    let mut list: Vec<Combination> = Vec::new();
    let mut logs: BTreeMap<i64, Log> = BTreeMap::new();
    let mut zero = 0;
    let mut named = Parties::default();
    for row in &db.read_or_empty::<LogRecordRow>() {
        let kind = (names.number(row.provider()), row.event_id(), row.task());
        let (process, account) = named.of(row.fields().unwrap_or(""), &mut names, |names| {
            // Classic providers write process 0.
            row.pid().filter(|pid| *pid != 0).map(|pid| names.pid(pid))
        });
        let account = account.or_else(|| row.user_sid().map(|user| names.number(user)));
        let key = (kind, process, account);
        let number = *combinations.entry(key).or_insert_with(|| {
            list.push(key);
            list.len() as u32 - 1
        });
        let at = row.utc_ns();
        zero = at.saturating_sub(row.ts_ns());
        let of_log = logs.entry(row.log()).or_default();
        of_log.records.push((at, number, row.bytes()));
        of_log.sums.entry(number).or_default().add(Sum { records: 1, bytes: row.bytes() });
        of_log.first = Some(of_log.first.map_or(at, |first| first.min(at)));
        of_log.last = Some(of_log.last.map_or(at, |last| last.max(at)));
    }
    let mut strings = Strings::new();
    let mut rates = TableBuilder::<LogRateRow>::new(memory);
    let mut parties = TableBuilder::<LogPartyRow>::new(memory);
    for (number, log) in logs {
        let whole = Whole { log: i32::try_from(number).unwrap_or(-1), zero, list: &list, names: &names };
        whole.rates(&log, &mut rates, &mut strings);
        whole.parties(&log, &mut parties, &mut strings);
    }
    let texts = freeze_plain(strings)?;
    Ok(vec![rates.finish(&texts)?, parties.finish(&texts)?])
}

/// What rows of one log are made from.
struct Whole<'a> {
    log: i32,
    zero: i64,
    list: &'a [Combination],
    names: &'a Names,
}

/// The keys of the largest sums.
fn largest<K: Copy + Ord + std::hash::Hash>(sums: &HashMap<K, Sum>, most: usize) -> Vec<K> {
    let mut all: Vec<(Reverse<i64>, K)> = sums.iter().map(|(k, s)| (Reverse(s.bytes), *k)).collect();
    all.sort_unstable();
    all.into_iter().take(most).map(|(_, key)| key).collect()
}

impl Whole<'_> {
    fn rates(&self, log: &Log, table: &mut TableBuilder<LogRateRow>, strings: &mut Strings) {
        let span = log.last.unwrap_or(0).saturating_sub(log.first.unwrap_or(0));
        let width = round_width(span, BUCKETS);
        let mut by_kind: HashMap<Kind, Sum> = HashMap::default();
        for (combination, sum) in &log.sums {
            if let Some((kind, ..)) = self.list.get(*combination as usize) {
                by_kind.entry(*kind).or_default().add(*sum);
            }
        }
        let kinds: HashSet<Kind> = largest(&by_kind, KINDS).into_iter().collect();
        let named: HashSet<u32> = largest(&log.sums, COMBINATIONS).into_iter().collect();
        let others = self.names.texts.len() as u32;
        let mut in_buckets: HashMap<(i64, u32), Sum> = HashMap::default();
        for (utc, combination, bytes) in &log.records {
            let key = (utc.div_euclid(width), *combination);
            in_buckets.entry(key).or_default().add(Sum { records: 1, bytes: *bytes });
        }
        let mut sums: BTreeMap<Cell, Sum> = BTreeMap::new();
        for ((bucket, combination), sum) in in_buckets {
            let Some((kind, process, account)) = self.list.get(combination as usize).copied() else {
                continue;
            };
            let start = bucket.saturating_mul(width);
            let rest = (process.map(|_| others), account.map(|_| others));
            let key = match (kinds.contains(&kind), named.contains(&combination)) {
                (true, true) => (start, Some(kind), process, account),
                (true, false) => (start, Some(kind), rest.0, rest.1),
                (false, _) => (start, None, Some(others), Some(others)),
            };
            sums.entry(key).or_default().add(sum);
        }
        for ((start, kind, process, account), sum) in sums {
            let mut word = |n: u32| strings.intern(if n == others { OTHERS } else { self.names.text(n) });
            table.push(LogRateRow {
                log: self.log,
                start_ns: start.saturating_sub(self.zero),
                start_utc_ns: start,
                bucket_ns: width,
                provider: word(kind.map_or(others, |(provider, ..)| provider)),
                event_id: kind.map(|(_, id, _)| id as i32),
                task: kind.map(|(.., task)| task as i32),
                process: process.map(&mut word),
                account: account.map(&mut word),
                records: sum.records,
                bytes: sum.bytes,
            });
        }
    }

    fn parties(&self, log: &Log, table: &mut TableBuilder<LogPartyRow>, strings: &mut Strings) {
        let all: i64 = log.sums.values().fold(0, |all, sum| all.saturating_add(sum.bytes));
        for (word, is_process) in [("process", true), ("account", false)] {
            let mut sums: HashMap<Option<u32>, Sum> = HashMap::default();
            let mut kinds: HashMap<(Option<u32>, Kind), Sum> = HashMap::default();
            for (combination, sum) in &log.sums {
                let Some((kind, process, account)) = self.list.get(*combination as usize) else { continue };
                let party = if is_process { *process } else { *account };
                sums.entry(party).or_default().add(*sum);
                kinds.entry((party, *kind)).or_default().add(*sum);
            }
            let mut named = largest(&sums, sums.len());
            let rest = named.split_off(PARTIES.min(named.len()));
            let place: HashMap<Option<u32>, usize> = named.iter().enumerate().map(|(n, p)| (*p, n)).collect();
            let mut tops: Vec<Option<(Kind, Sum)>> = vec![None; named.len() + 1];
            let mut sorted: Vec<_> = kinds.into_iter().collect();
            sorted.sort_unstable_by_key(|(key, _)| *key);
            for ((party, kind), sum) in sorted {
                let at = place.get(&party).copied().unwrap_or(named.len());
                if let Some(top) = tops.get_mut(at)
                    && top.is_none_or(|(_, best)| sum.bytes > best.bytes)
                {
                    *top = Some((kind, sum));
                }
            }
            let of = |party: &Option<u32>| sums.get(party).copied().unwrap_or_default();
            let mut rows: Vec<(&str, Sum, usize)> = named
                .iter()
                .enumerate()
                .map(|(n, party)| (party.map_or("(none)", |p| self.names.text(p)), of(party), n))
                .collect();
            if !rest.is_empty() {
                let mut sum = Sum::default();
                rest.iter().for_each(|party| sum.add(of(party)));
                rows.push((OTHERS, sum, named.len()));
            }
            for (name, sum, at) in rows {
                let Some(((provider, id, task), top)) = tops.get(at).copied().flatten() else { continue };
                table.push(LogPartyRow {
                    log: self.log,
                    kind: strings.intern(word),
                    name: strings.intern(name),
                    records: sum.records,
                    bytes: sum.bytes,
                    share: if all > 0 { sum.bytes as f64 / all as f64 } else { 0.0 },
                    top_provider: strings.intern(self.names.text(provider)),
                    top_event_id: id as i32,
                    top_records: top.records,
                    top_task: task as i32,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::tests::{derived, shown, table};
    use etwhy_table::Value;
    use etwhy_testkit::Are as _;

    #[test]
    fn what_is_remembered_of_fields_changes_nothing() {
        use Value::{I64 as N, Null, Text as T};
        // More different fields than are remembered, again and again, and records of several writers that name no process.
        let said = |n: usize| {
            let (user, program) = (n * 31 % 800, n % 7);
            let process =
                if program == 0 { String::new() } else { format!(",\"Image\":\"C:\\\\p{program}.exe\"") };
            (!n.is_multiple_of(9)).then(|| format!("{{\"User\":\"u{user}\"{process}}}"))
        };
        let fields: Vec<Option<String>> = (0..20_000).map(said).collect();
        assert!(fields.iter().collect::<HashSet<_>>().len() > RECENT);
        let mut expected: BTreeMap<(&str, String), i64> = BTreeMap::new();
        let mut rows = Vec::new();
        for (n, fields) in (0..).zip(&fields) {
            let pid = n % 4;
            rows.push(vec![
                N(n),
                N(n),
                N(0),
                T("P"),
                N(1),
                N(0),
                N(pid),
                T("S-1-5-18"),
                N(10),
                fields.as_deref().map_or(Null, T),
            ]);
            let (process, account) = fields.as_deref().map(process_and_account).unwrap_or_default();
            let writer = if pid == 0 { "(none)".to_owned() } else { format!("pid {pid}") };
            let process = process.map_or(writer, |process| process.into_owned());
            let account = account.map_or("S-1-5-18".to_owned(), |account| account.into_owned());
            *expected.entry(("process", process)).or_default() += 1;
            *expected.entry(("account", account)).or_default() += 1;
        }
        let mut db = Database::new();
        db.insert(table(
            "log_record",
            "ts_ns utc_ns log provider event_id task pid user_sid bytes fields",
            &rows,
        ));
        derived(&mut db, &["log_party"]);
        let party = db.get("log_party").unwrap();
        let found: BTreeMap<(&str, String), i64> = (0..party.rows() as u32)
            .map(|row| {
                let text = |column| party.text(row, column).unwrap();
                ((text("kind"), text("name").to_owned()), party.i64(row, "records").unwrap())
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn buckets_and_parties() {
        use Value::{I64 as N, Null, Text as T};
        let columns = "ts_ns utc_ns log provider event_id task pid user_sid bytes fields";
        const S: i64 = 1_000_000_000;
        let row = |s: i64, id: i64, bytes: i64, sid: Value<'static>, fields: Value<'static>| {
            vec![N((s - 1_000) * S), N(s * S), N(0), T("P"), N(id), N(7), N(4), sid, N(bytes), fields]
        };
        let mut db = Database::new();
        let rows = [
            row(1_000, 1, 100, Null, T(r#"{"ProcessName":"C:\\a.exe","SubjectUserName":"u"}"#)),
            row(1_003, 1, 100, Null, T(r#"{"ProcessName":"D:\\a.exe","SubjectUserName":"u"}"#)),
            row(1_004, 2, 50, T("S-1-5-18"), Null),
            // An hour later: 30 s are the smallest round width of which 240 cover it.
            row(4_600, 2, 50, Null, T(r#"{"SubjectUserName":"-"}"#)),
        ];
        db.insert(table("log_record", columns, &rows));
        derived(&mut db, &["log_rate", "log_party"]);
        let rate = db.get("log_rate").unwrap();
        shown(rate, "start_ns start_utc_ns event_id process account records bytes", S).are(&[
            "-10 990 1 a.exe u 2 200",
            "-10 990 2 pid 4 S-1-5-18 1 50",
            "3590 4590 2 pid 4 - 1 50",
        ]);
        assert_eq!(rate.i64(0, "bucket_ns"), Some(30 * S));
        let party = db.get("log_party").unwrap();
        let [half, third, two] = [50.0, 100.0, 200.0].map(|bytes| bytes / 300.0);
        shown(party, "kind name records bytes share top_event_id", 1).are(&[
            format!("process a.exe 2 200 {two} 1"),
            format!("process pid 4 2 100 {third} 2"),
            format!("account u 2 200 {two} 1"),
            format!("account (none) 1 50 {half} 2"),
            format!("account S-1-5-18 1 50 {half} 2"),
        ]);
    }

    #[test]
    fn many_combinations_stay_few_rows_and_lose_nothing() {
        use Value::{I64 as N, Text as T};
        let columns = "ts_ns utc_ns log provider event_id task pid user_sid bytes fields";
        let rows: Vec<Vec<Value<'_>>> = (0..6_000)
            .map(|n| {
                vec![N(n), N(n), N(0), T("P"), N(n % 60), N(0), N(n % 2_000), Value::Null, N(10), Value::Null]
            })
            .collect();
        let mut db = Database::new();
        db.insert(table("log_record", columns, &rows));
        derived(&mut db, &["log_rate", "log_party"]);
        for name in ["log_rate", "log_party"] {
            let table = db.get(name).unwrap();
            let of = |row| name == "log_rate" || table.text(row, "kind") == Some("process");
            let sum: i64 =
                (0..table.rows() as u32).filter(|r| of(*r)).map(|r| table.i64(r, "bytes").unwrap()).sum();
            assert_eq!(sum, 60_000, "{name}");
        }
        let rate = db.get("log_rate").unwrap();
        assert!(rate.rows() <= COMBINATIONS + KINDS + 1, "{}", rate.rows());
        let party = db.get("log_party").unwrap();
        assert!((0..party.rows() as u32).any(|r| party.text(r, "name") == Some(OTHERS)));
    }
}
