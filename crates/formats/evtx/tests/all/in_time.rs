//! `log_record` and `event_<id>` hold the records of all logs in order of time, whatever the order of the logs and of their chunks.

use crate::common;
use etwhy_evtx::binxml::{Value as Field, time};
use etwhy_evtx::filter::{Filter, time_of};
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

/// All cells of these columns, as texts.
fn cells(table: &Table, columns: &[&str]) -> Vec<Vec<String>> {
    let place = |name: &&str| table.spec().columns.iter().position(|c| c.name == **name).unwrap();
    let places: Vec<usize> = columns.iter().map(place).collect();
    let shown = |row, at: &usize| match table.cell(row, *at) {
        Value::I64(n) => n.to_string(),
        Value::Text(text) => text.to_owned(),
        Value::Null => String::new(),
        other => panic!("{other:?}"),
    };
    (0..table.rows() as u32).map(|row| places.iter().map(|at| shown(row, at)).collect()).collect()
}

#[test]
fn records_are_those_of_a_plain_walk_for_any_number_of_threads() {
    const COLUMNS: &[&str] = &[
        "utc_ns",
        "record_id",
        "channel",
        "provider",
        "computer",
        "user_sid",
        "activity_id",
        "related_activity_id",
        "event_id",
        "qualifiers",
        "version",
        "level",
        "task",
        "opcode",
        "keywords",
        "pid",
        "tid",
        "bytes",
    ];
    let mut records = 0;
    for path in common::logs() {
        let Ok(log) = LogFile::open(&path, &path) else { continue };
        let mut expected: Vec<Vec<String>> = Vec::new();
        common::each(&path, |decoder, record, event| {
            let Ok(event) = event else { return };
            let system = decoder.system(&event);
            let text = |value: &Field<'_>| {
                let mut text = String::new();
                value.push_text(&mut text);
                text
            };
            let number = |n: Option<u32>| n.map_or(String::new(), |n| (n as i32).to_string());
            expected.push(vec![
                time::utc_ns(time_of(&system, record)).to_string(),
                (system.record_id.unwrap_or(record.id) as i64).to_string(),
                text(&system.channel),
                text(&system.provider),
                text(&system.computer),
                text(&system.user),
                text(&system.activity),
                text(&system.related_activity),
                system.event_id.to_string(),
                number(system.qualifiers.map(u32::from)),
                system.version.to_string(),
                system.level.to_string(),
                system.task.to_string(),
                system.opcode.to_string(),
                (system.keywords as i64).to_string(),
                number(system.process),
                number(system.thread),
                record.size.to_string(),
            ]);
        });
        let [one, two, seven] = [1, 2, 7].map(|threads| {
            let options = Options {
                threads,
                zero_utc_ns: None,
                records: true,
                fields: Fields::All,
                ids: Vec::new(),
                filter: Filter::default(),
                memory: Memory::with_budget(1 << 30, None),
            };
            let made = make(std::slice::from_ref(&log), &options).unwrap();
            let table = made.tables.iter().find(|table| table.name() == "log_record").unwrap();
            (cells(table, COLUMNS), cells(table, &["ts_ns", "log", "fields"]))
        });
        assert!(one == two && one == seven, "{}", path.display());
        let mut found = one.0;
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{}", path.display());
        records += found.len();
    }
    assert!(records > 20_000 || common::logs().is_empty(), "{records}");
}
