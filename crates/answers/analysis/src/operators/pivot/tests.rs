//! Groups and rows of small tables, counted by hand.

use super::*;
use crate::fold::tests::table;
use etwhy_table::ColumnType::{F64, I32, I64, Text};
use etwhy_table::Value as Cell;
use serde_json::json;

/// Seven operations: when, id of the process, what, how long, how large.
fn db() -> Database {
    let mut db = Database::new();
    let process = |upid, name| vec![Cell::I64(upid), Cell::Text(name), Cell::I64(4 * upid)];
    let processes = [process(0, "a.exe"), process(1, "b.exe"), process(2, "a.exe")];
    db.insert(table("process", &[("upid", I32), ("name", Text), ("pid", I32)], &processes));
    let row = |ts, upid: Option<i64>, op, dur: Option<i64>, size| {
        let number = |n: Option<i64>| n.map_or(Cell::Null, Cell::I64);
        vec![Cell::I64(ts), number(upid), Cell::Text(op), number(dur), Cell::F64(size)]
    };
    let rows = [
        row(10, Some(0), "read", Some(5), 1.5),
        row(20, Some(1), "read", Some(7), 2.5),
        row(30, Some(0), "write", None, 0.5),
        row(40, None, "read", Some(-3), 1.0),
        row(50, Some(2), "write", Some(11), 4.0),
        row(60, Some(9), "read", Some(1), 8.0),
        row(70, Some(0), "read", Some(2), 1.0),
    ];
    let columns = [("ts_ns", I64), ("upid", I32), ("op", Text), ("dur_ns", I64), ("size", F64)];
    db.insert(table("io", &columns, &rows));
    db
}

fn ask(json: serde_json::Value) -> Answer {
    let ask: Pivot = serde_json::from_value(json).unwrap();
    let spark = Spark { column: "ts_ns".to_owned(), range: [10, 70], parts: 3 };
    pivot(&db(), &ask, Some(&spark), &|| false).unwrap()
}

/// The cells of some columns, as people read them.
fn cells(table: &Table, columns: &[&str]) -> Vec<String> {
    let cell = |row: u32, name: &str| match table.value(row, name) {
        Cell::Null => "-".to_owned(),
        Cell::I64(n) => n.to_string(),
        Cell::F64(n) => n.to_string(),
        Cell::Bool(b) => b.to_string(),
        Cell::Text(text) => text.to_owned(),
    };
    let row = |row| columns.iter().map(|name| cell(row, name)).collect::<Vec<_>>().join(" | ");
    (0..table.rows() as u32).map(row).collect()
}

#[test]
fn groups_of_an_id_have_labels_sums_and_lines() {
    let values = json!([
        { "column": "dur_ns", "fn": "sum" }, { "fn": "count" }, { "column": "op", "fn": "unique" },
        { "column": "dur_ns", "fn": "avg" }, { "column": "size", "fn": "max" }
    ]);
    let found = ask(json!({ "table": "io", "group": ["upid"], "values": values, "share": [1] }));
    let columns =
        ["upid", "upid.label", "sum(dur_ns)", "count", "unique(op)", "avg(dur_ns)", "max(size)", "spark"];
    // Range 10 to 70 in three parts: 10 to 30, 30 to 50, 50 to 70; the row at 70 is beyond.
    let expected = [
        "2 | a.exe (8) | 11 | 1 | 1 | 11 | 4 | - - 11",
        "0 | a.exe (0) | 7 | 3 | 2 | 3.5 | 1.5 | 5 - -",
        "1 | b.exe (4) | 7 | 1 | 1 | 7 | 2.5 | 7 - -",
        "9 | - | 1 | 1 | 1 | 1 | 8 | - - 1",
        "- | - | -3 | 1 | 1 | -3 | 1 | - -3 -",
    ];
    assert_eq!(cells(&found.table, &columns), expected);
    assert_eq!((found.groups, found.rows, found.spark), (5, 7, true));
    assert_eq!(found.totals, [json!(23), json!(7), json!(2), json!(23.0 / 6.0), json!(8.0)]);
    let share = found.table.f64(1, "share(count)").unwrap();
    assert!((share - 300.0 / 7.0).abs() < 1e-12);
}

#[test]
fn what_ids_refer_to_groups_too_and_nothing_is_a_group() {
    let question = json!({
        "table": "io", "group": ["upid.name", "op"], "values": [{ "fn": "count" }],
        "sort": [{ "key": 0 }, { "value": 0, "down": true }],
    });
    let found = ask(question);
    let expected = ["a.exe | read | 2", "a.exe | write | 2", "b.exe | read | 1", "- | read | 2"];
    assert_eq!(cells(&found.table, &["upid.name", "op", "count"]), expected);
    assert!(found.sql.contains("LEFT JOIN \"process\" AS j1 ON j1.\"upid\" = t.\"upid\""), "{}", found.sql);
}

#[test]
fn conditions_mind_nulls_negative_numbers_and_the_case_of_letters() {
    let count = |conditions: serde_json::Value| {
        ask(json!({ "table": "io", "where": conditions, "values": [{ "fn": "count" }] })).totals[0]
            .as_i64()
            .unwrap()
    };
    assert_eq!(count(json!([{ "column": "dur_ns", "op": "lt", "value": 2 }])), 2);
    assert_eq!(count(json!([{ "column": "dur_ns", "op": "lt", "value": 2, "not": true }])), 5);
    assert_eq!(count(json!([{ "column": "dur_ns", "op": "ne", "value": 5 }])), 6);
    assert_eq!(count(json!([{ "column": "dur_ns", "op": "is_null" }])), 1);
    assert_eq!(count(json!([{ "column": "upid.name", "op": "is_null" }])), 2);
    assert_eq!(count(json!([{ "column": "op", "op": "contains", "value": "RIT" }])), 2);
    assert_eq!(count(json!([{ "column": "op", "or": ["upid.name"], "op": "contains", "value": "b" }])), 1);
    assert_eq!(count(json!([{ "column": "upid", "op": "in", "value": [0, 9] }])), 4);
    assert_eq!(count(json!([{ "column": "size", "op": "ge", "value": 2.5 }])), 3);
    assert_eq!(count(json!([{ "column": "dur_ns", "op": "eq", "value": "0xfffffffffffffffd" }])), 1);
    assert_eq!(count(json!([{ "column": "ts_ns", "op": "gt", "value": 100 }])), 0);
}

#[test]
fn rows_come_in_order_and_in_windows() {
    let window = |sort: serde_json::Value, offset: usize| {
        let question = json!({ "table": "io", "columns": ["ts_ns", "upid.name"], "sort": sort, "limit": 3, "offset": offset });
        let question: Rows = serde_json::from_value(question).unwrap();
        let (table, _, count) = rows(&db(), &question, &|| false).unwrap();
        assert_eq!(count, 7);
        cells(&table, &["ts_ns", "upid.name"])
    };
    assert_eq!(window(json!([]), 2), ["30 | a.exe", "40 | -", "50 | a.exe"]);
    assert_eq!(window(json!([["dur_ns", true]]), 0), ["50 | a.exe", "20 | b.exe", "10 | a.exe"]);
    // Null comes last, whichever way.
    assert_eq!(window(json!([["dur_ns", false]]), 5), ["50 | a.exe", "30 | a.exe"]);
    assert_eq!(
        window(json!([["upid.name", false], ["ts_ns", true]]), 3),
        ["10 | a.exe", "20 | b.exe", "60 | -"]
    );
}

#[test]
fn threads_find_the_same_as_one() {
    let rows = (0..700_000i64).map(|n| {
        let text = if n % 5 == 0 { "x" } else { "y" };
        vec![Cell::I64(n), Cell::I64((n * 7919) % 1000), Cell::Text(text), Cell::I64(n % 13 - 6)]
    });
    let rows: Vec<Vec<Cell<'_>>> = rows.collect();
    let columns = [("ts_ns", I64), ("number", I64), ("text", Text), ("value", I64)];
    let mut db = Database::new();
    db.insert(table("t", &columns, &rows));
    let question = json!({
        "table": "t", "group": ["number", "text"], "limit": 5000,
        "values": [{ "column": "value", "fn": "sum" }, { "column": "value", "fn": "unique" }, { "column": "ts_ns", "fn": "min" }],
    });
    let question: Pivot = serde_json::from_value(question).unwrap();
    let found = pivot(&db, &question, None, &|| false).unwrap();
    let engine = etwhy_sql::Engine::new(&db).unwrap();
    let theirs = engine.query("answer", &found.sql).unwrap();
    let names = ["number", "text", "sum(value)", "unique(value)", "min(ts_ns)"];
    assert_eq!(cells(&found.table, &names), cells(&theirs, &names));
    assert_eq!(found.totals[1], json!(13));
}
