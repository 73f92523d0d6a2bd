//! `log_record` and `event_<id>` hold the records of all logs in order of time, whatever the order of the logs and of their chunks.

use crate::common;
use etwhy_evtx::filter::Filter;
use etwhy_evtx::read::LogFile;
use etwhy_evtx::tables::{Fields, Options, make};
use etwhy_table::{Memory, Table, Value};

/// Time, log, record id and fields of each row.
fn rows(table: &Table) -> Vec<(i64, i64, i64, Option<String>)> {
    let at = |name: &str| table.spec().columns.iter().position(|c| c.name == name);
    let [time, log, record] = ["utc_ns", "log", "record_id"].map(|name| at(name).unwrap());
    let fields = at("fields");
    let number = |row, column| match table.cell(row, column) {
        Value::I64(n) => n,
        other => panic!("{other:?}"),
    };
    let text = |row| match table.cell(row, fields?) {
        Value::Text(text) => Some(text.to_owned()),
        _ => None,
    };
    (0..table.rows() as u32)
        .map(|row| (number(row, time), number(row, log), number(row, record), text(row)))
        .collect()
}

#[test]
fn all_logs_at_once_are_in_order_of_time() {
    let logs: Vec<LogFile> =
        common::logs().iter().filter_map(|path| LogFile::open(path, path).ok()).collect();
    if logs.is_empty() {
        return;
    }
    let tables = |threads: usize, fields: Fields, budget: u64| {
        let options = Options {
            threads,
            zero_utc_ns: None,
            records: true,
            fields,
            ids: vec![4624, 7036],
            filter: Filter::default(),
            memory: Memory::with_budget(budget, None),
        };
        let made = make(&logs, &options).unwrap();
        // Records that cannot be read are in no output; the ledger has them.
        let expected: u64 = made.counts.iter().map(|counts| counts.all.records - counts.unread).sum();
        let chunks: usize = made.counts.iter().map(|counts| counts.starts.len()).sum();
        assert_eq!(chunks, logs.iter().map(|log| log.chunks.len()).sum::<usize>());
        let get = |name: &str| made.tables.iter().find(|table| table.name() == name).map(rows).unwrap();
        let spilled = options.memory.spilled();
        (get("log_record"), get("event_4624"), get("event_7036"), expected, spilled)
    };
    let one = tables(1, Fields::All, 1 << 30);
    assert_eq!(one.0.len() as u64, one.3);
    for rows in [&one.0, &one.1, &one.2] {
        assert!(rows.len() > 100, "{}", rows.len());
        assert!(rows.windows(2).all(|pair| pair[0].0 <= pair[1].0));
    }
    // The logs are not one behind the other.
    assert!(one.0.windows(2).any(|pair| pair[0].1 > pair[1].1));
    // Neither threads nor little memory change anything.
    let three = tables(3, Fields::All, 1 << 20);
    assert!(one.4 == 0 && three.4 > 0);
    assert!((&one.0, &one.1, &one.2) == (&three.0, &three.1, &three.2));
    // Fields that nobody asks for are left out, and nothing else.
    let without = tables(2, Fields::None, 1 << 30);
    assert!(one.0.iter().any(|row| row.3.is_some()) && without.0.iter().all(|row| row.3.is_none()));
    assert!(one.0.iter().zip(&without.0).all(|(a, b)| (a.0, a.1, a.2) == (b.0, b.1, b.2)));
    // Those of some names are what all of them have under these names, with and without a name in the record.
    const NAMES: &[&str] = &["SubjectUserName", "Data2", "param1", "ProcessName"];
    let some = tables(2, Fields::Named(NAMES), 1 << 30);
    let mut seen = [0; NAMES.len()];
    for (all, some) in one.0.iter().zip(&some.0) {
        let parse = |text: &Option<String>| -> Option<serde_json::Map<String, serde_json::Value>> {
            serde_json::from_str(text.as_deref()?).ok()
        };
        let mut all = parse(&all.3).unwrap_or_default();
        all.retain(|name, _| NAMES.contains(&name.as_str()));
        assert_eq!(all, parse(&some.3).unwrap_or_default());
        for (name, seen) in NAMES.iter().zip(&mut seen) {
            *seen += usize::from(all.contains_key(*name));
        }
    }
    assert!(seen.iter().all(|seen| *seen > 0), "{seen:?}");
}
