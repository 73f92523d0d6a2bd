//! Pivot tables and windows of rows say what SQL says: on all tables of a scenario, and of a real trace where `ETWHY_CORPUS` is set.

use etwhy_analysis::pivot::{Answer, Condition, Function, Op, Pivot, Rows, Value, pivot, rows};
use etwhy_export::extract::{Folder, Limits};
use etwhy_sql::Engine;
use etwhy_table::{ColumnType, Database, Memory, Role, Strings, Table, Value as Cell};
use etwhy_testkit::{Program, Str as _};
use serde_json::json;
use std::path::Path;

/// The program.
const ETWHY: Program = crate::ETWHY.partly();

/// All tables of a trace.
fn tables(trace: &str) -> Database {
    let folder = tempfile::tempdir().unwrap();
    let extract = folder.path().join("x");
    ETWHY.run(&["extract", trace, "-q", "-o", extract.str()]);
    read(&extract)
}

fn read(extract: &Path) -> Database {
    let limits = Limits { bytes: 1 << 36, ratio: 1 << 20, free_bytes: 1 << 36, options: ["--a", "--b"] };
    let mut folder = Folder::open(extract, limits).unwrap();
    let traced = etwhy_trace::catalog::ALL.iter().flat_map(|analysis| analysis.tables.iter().copied());
    let derived = etwhy_analysis::derived::ALL.iter().flat_map(|derived| derived.tables.iter().copied());
    let (mut strings, memory) = (Strings::new(), Memory::unlimited());
    let mut loaders = Vec::new();
    for spec in traced.chain(derived) {
        if folder.has(&spec.name) {
            loaders.push(folder.load(spec, &mut strings, &memory).unwrap());
        }
    }
    let texts = strings.freeze().unwrap();
    let mut db = Database::new();
    for loader in loaders {
        db.insert(loader.finish(&texts).unwrap());
    }
    db
}

/// Equal, but for the last digits of fractions and for how true and false are written.
fn same(ours: Cell<'_>, theirs: Cell<'_>) -> bool {
    match (ours, theirs) {
        (Cell::Text(a), Cell::Text(b)) => a == b,
        (Cell::Null, Cell::Null) => true,
        (Cell::I64(a), Cell::I64(b)) => a == b,
        (a, b) => match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1e-9),
            _ => false,
        },
    }
}

fn compare(engine: &Engine, ours: &Table, sql: &str, ordered: bool) -> usize {
    let theirs = engine.query("answer", sql).unwrap_or_else(|error| panic!("{error}\n{sql}"));
    assert_eq!(ours.rows(), theirs.rows(), "{sql}");
    for column in theirs.spec().columns.iter().map(|column| column.name.as_ref()) {
        if !ordered {
            continue;
        }
        for row in 0..ours.rows() as u32 {
            let (a, b) = (ours.value(row, column), theirs.value(row, column));
            assert!(same(a, b), "{column}, row {row}: {a:?} is not {b:?}\n{sql}");
        }
    }
    theirs.rows()
}

/// Keys of a table: its columns, and columns behind ids.
fn keys(db: &Database, table: &Table) -> Vec<String> {
    let mut out = Vec::new();
    for column in table.spec().columns.iter() {
        out.push(column.name.to_string());
        let behind = match column.role {
            Role::Process => ["name", "category"].as_slice(),
            Role::Thread => &["name", "upid.name"],
            Role::Stack => &["leaf", "leaf_frame_id.module"],
            Role::Frame => &["label"],
            Role::Image => &["name"],
            Role::Id if column.name == "file_id" => &["extension"],
            Role::Id if column.name == "event_type_id" => &["provider"],
            _ => &[],
        };
        for name in behind {
            let target = match column.role {
                Role::Process => "process",
                Role::Thread => "thread",
                Role::Stack => "stack",
                Role::Frame => "frame",
                Role::Image => "image",
                _ => "file",
            };
            if db.get(target).is_some() {
                out.push(format!("{}.{name}", column.name));
            }
        }
    }
    out
}

fn value(column: Option<&str>, function: Function) -> Value {
    Value { column: column.map(str::to_owned), function }
}

fn condition(column: &str, op: Op, value: serde_json::Value) -> Condition {
    Condition { column: column.to_owned(), or: Vec::new(), op, value, not: false }
}

fn ask(db: &Database, ask: &Pivot) -> Answer {
    pivot(db, ask, None, &|| false).unwrap_or_else(|error| panic!("{error}: {ask:?}"))
}

/// Conditions that some rows of a table fulfil, of every kind.
fn conditions(table: &Table) -> Vec<Vec<Condition>> {
    let mut out = vec![Vec::new()];
    let middle = table.rows() as u32 / 2;
    for column in table.spec().columns.iter() {
        let name = column.name.as_ref();
        match table.value(middle, name) {
            Cell::I64(n) => {
                out.push(vec![
                    condition(name, Op::Ge, json!(n)),
                    condition(name, Op::Lt, json!(n.saturating_add(1 << 20))),
                ]);
                out.push(vec![condition(name, Op::Ne, json!(n))]);
                out.push(vec![condition(name, Op::In, json!([n, -1, 0]))]);
            }
            Cell::Text(text) => {
                let part: String = text.chars().skip(1).take(3).collect();
                out.push(vec![condition(name, Op::Contains, json!(part.to_uppercase()))]);
                out.push(vec![condition(name, Op::Eq, json!(text))]);
                out.push(vec![Condition { not: true, ..condition(name, Op::Contains, json!(part)) }]);
            }
            Cell::Bool(flag) => out.push(vec![condition(name, Op::Eq, json!(flag))]),
            Cell::F64(n) => out.push(vec![condition(name, Op::Gt, json!(n))]),
            Cell::Null => out.push(vec![condition(name, Op::IsNull, json!(null))]),
        }
        out.push(vec![condition(name, Op::NotNull, json!(null))]);
    }
    out
}

/// Pivot tables that are asked of each table.
const QUESTIONS: usize = 9;

fn check(db: &Database) -> (usize, usize) {
    let engine = Engine::new(db).unwrap();
    let (mut questions, mut compared) = (0, 0);
    for table in db.tables().filter(|table| table.rows() > 0) {
        let keys = keys(db, table);
        let numbers: Vec<&str> = table
            .spec()
            .columns
            .iter()
            .filter(|c| matches!(c.ty, ColumnType::I32 | ColumnType::I64 | ColumnType::F64))
            // SQLite gives up on sums of addresses and of absolute times.
            .filter(|c| !c.unit.is_hex() && !c.name.contains("unix"))
            .map(|c| c.name.as_ref())
            .collect();
        let wheres = conditions(table);
        // SQLite is what takes time: some questions of each kind for every table, few for long ones.
        let most = if table.rows() > 10_000 { 3 } else { QUESTIONS };
        let step = keys.len().div_ceil(most).max(1);
        for (at, key) in keys.iter().enumerate().step_by(step).take(most) {
            let at = at / step;
            let number = numbers.get(at % numbers.len().max(1)).copied();
            let mut values = vec![value(None, Function::Count), value(Some(key), Function::Unique)];
            values.push(value(Some(key), Function::Count));
            values.push(value(Some(key), Function::Min));
            if let Some(number) = number {
                let all = [Function::Sum, Function::Max, Function::Avg, Function::Min];
                values.extend(all.map(|function| value(Some(number), function)));
            }
            let next = &keys[(at + 1) % keys.len()];
            let first = &keys[0];
            let group = match at % 4 {
                0 => vec![key.clone()],
                1 => vec![key.clone(), next.clone()],
                2 => vec![next.clone(), key.clone(), first.clone()],
                _ => Vec::new(),
            };
            let question = Pivot {
                table: table.name().to_owned(),
                conditions: wheres[(at * 5) % wheres.len()].clone(),
                group,
                values,
                limit: Some(300),
                offset: at % 3,
                share: vec![0],
                ..Pivot::default()
            };
            let answer = ask(db, &question);
            compared += compare(&engine, &answer.table, &answer.sql, true);
            questions += 1;
        }
        let step = wheres.len().div_ceil(most / 2).max(1);
        for conditions in wheres.into_iter().step_by(step) {
            let sort = table.spec().columns[0].name.to_string();
            let question = Rows {
                table: table.name().to_owned(),
                conditions,
                columns: keys.clone(),
                sort: vec![(sort.clone(), true)],
                limit: Some(50),
                offset: 2,
            };
            let (ours, sql, _) = rows(db, &question, &|| false).unwrap();
            // Rows that are equal in the order's column may stand in any order.
            compared += compare(&engine, &ours, &sql, false);
            let theirs = engine.query("answer", &sql).unwrap();
            for row in 0..ours.rows() as u32 {
                assert!(same(ours.value(row, &sort), theirs.value(row, &sort)), "{sql}");
            }
            let natural = Rows { sort: Vec::new(), ..question };
            let (ours, sql, _) = rows(db, &natural, &|| false).unwrap();
            // SQLite may look values of a list up one after the other.
            let natural = !sql.contains("JOIN") && !sql.contains(" IN (");
            compared += compare(&engine, &ours, &sql, natural);
            questions += 2;
        }
    }
    (questions, compared)
}

#[test]
fn all_tables_of_scenarios_say_what_sql_says() {
    let folder = tempfile::tempdir().unwrap();
    for story in ["syscall_hook", "event_log", "dpc_flood"] {
        let trace = ETWHY.story(story, "0.002", folder.path());
        let (questions, compared) = check(&tables(trace.str()));
        println!("{story}: {questions} questions, {compared} rows are the same in SQL");
        assert!(questions > 200 && compared > 2000, "{story}: {questions}, {compared}");
    }
}

#[test]
fn a_real_trace_says_what_sql_says() {
    let Some(trace) = etwhy_testkit::corpus_file("etl/microsoft+perfview/net.4.5.x86_PerfViewData.etl")
    else {
        return;
    };
    let (questions, compared) = check(&tables(trace.str()));
    println!("{questions} questions, {compared} rows are the same in SQL");
    assert!(questions > 200 && compared > 2000, "{questions}, {compared}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let mut db = Database::new();
    let spec = etwhy_trace::catalog::ALL.iter().flat_map(|a| a.tables).find(|t| t.name == "mark").unwrap();
    db.insert(etwhy_table::AdHocBuilder::new((*spec).clone(), &Memory::unlimited()).finish().unwrap());
    let wrong = |question: Pivot| pivot(&db, &question, None, &|| false).unwrap_err().to_string();
    let of = |group: &str| Pivot { table: "mark".into(), group: vec![group.to_owned()], ..Pivot::default() };
    assert_eq!(wrong(Pivot { table: "marks".into(), ..Pivot::default() }), "there is no table `marks`");
    assert_eq!(wrong(of("ts")), "table `mark` has no column `ts`");
    assert_eq!(wrong(of("text.name")), "`text` refers to no table, so there is no `text.name`");
    assert_eq!(wrong(of("upid.name")), "there is no table `process`");
    let sum = Pivot { values: vec![value(Some("text"), Function::Sum)], ..of("cpu") };
    assert_eq!(wrong(sum), "`text` holds texts: they have no sum");
    let text = Pivot { conditions: vec![condition("cpu", Op::Eq, json!("a"))], ..of("cpu") };
    assert_eq!(wrong(text), "`cpu` holds numbers: \"a\" is none");
    let gone = pivot(&db, &of("cpu"), None, &|| true);
    assert!(gone.is_ok(), "an empty table has no batch to give up at");
}
