//! Which columns a query reads, and what happens if it reads others.

use etwhy_sql::{Engine, Limits, columns_read};
use etwhy_table::{Database, Memory, Strings, TableBuilder, TableLoader, TableSpec, define_table};

define_table! {
    /// Samples.
    pub table SAMPLE: SampleRow = "sample" {
        sorted_by: "ts_ns", version: 1,
        /// When.
        ts_ns: i64 [Ns, Time],
        /// Where.
        cpu: i32 [None, Cpu],
        /// Weight.
        weight_ns: i64 [Ns, Weight],
    }
}

define_table! {
    /// Processors.
    pub table PLACE: PlaceRow = "place" {
        version: 1,
        /// Number.
        cpu: i32 [None, Cpu],
        /// Socket.
        socket: i32 [None, Id],
    }
}

/// The columns, as `table.column` or `table` where rows are counted.
fn read(sql: &str) -> Option<Vec<String>> {
    let read = columns_read([&SAMPLE, &PLACE].into_iter(), sql)?;
    let mut all = Vec::new();
    for (table, columns) in read {
        match columns.is_empty() {
            true => all.push(table),
            false => all.extend(columns.iter().map(|column| format!("{table}.{column}"))),
        }
    }
    Some(all)
}

#[test]
fn a_query_tells_its_columns() {
    for (sql, expected) in [
        ("SELECT count(*) FROM sample", vec!["sample"]),
        ("SELECT max(CPU) FROM Sample s WHERE s.ts_ns > 5", vec!["sample.cpu", "sample.ts_ns"]),
        ("SELECT * FROM place", vec!["place.cpu", "place.socket"]),
        (
            "WITH a AS (SELECT cpu AS x FROM sample) SELECT count(*) FROM a WHERE EXISTS (SELECT 1 FROM place WHERE socket = x)",
            vec!["place.socket", "sample.cpu"],
        ),
    ] {
        assert_eq!(read(sql).unwrap(), expected, "{sql}");
    }
    for sql in [
        "SELECT count(*) FROM nothing",
        "SELECT nothing FROM sample",
        "SELECT * FROM aggregate('sample', 'cpu')",
    ] {
        assert_eq!(read(sql), None, "{sql}");
    }
}

/// The tables with these columns alone.
fn database(sql: &str) -> Database {
    let read = columns_read([&SAMPLE, &PLACE].into_iter(), sql).unwrap();
    let texts = || Strings::new().freeze().unwrap();
    let (mut samples, mut places) =
        (TableBuilder::new(&Memory::default()), TableBuilder::new(&Memory::default()));
    for n in 0..5000 {
        samples.push(SampleRow { ts_ns: n, cpu: (n % 4) as i32, weight_ns: n });
    }
    (0..4).for_each(|cpu| places.push(PlaceRow { cpu, socket: cpu / 2 }));
    let mut db = Database::new();
    for table in [samples.finish(&texts()).unwrap(), places.finish(&texts()).unwrap()] {
        let spec: &TableSpec = table.spec();
        let is_read = |column: &str| read.get(&*spec.name).is_some_and(|columns| columns.contains(column));
        let places: Vec<usize> =
            (0..spec.columns.len()).filter(|at| is_read(&spec.columns[*at].name)).collect();
        let (mut loader, mut strings) =
            (TableLoader::of_columns(spec, &is_read, &Memory::default()), Strings::new());
        for batch in table.batches() {
            loader.push(&batch.project(&places).unwrap(), &mut strings).unwrap();
        }
        db.insert(loader.finish(&strings.freeze().unwrap()).unwrap());
    }
    db
}

#[test]
fn what_is_read_is_enough_and_nothing_else_is_null() {
    for (sql, answer) in [
        ("SELECT count(*) FROM sample", 5000),
        ("SELECT sum(weight_ns) FROM sample WHERE cpu = 1", 1250 * 2499),
        (
            "SELECT sum(s.weight_ns) FROM sample s JOIN place p ON p.cpu = s.cpu WHERE p.socket = 0",
            2500 * 4997 / 2,
        ),
        ("SELECT max(n) FROM (SELECT row_number() OVER (PARTITION BY cpu) AS n FROM sample)", 1250),
    ] {
        let engine = Engine::new(&database(sql)).unwrap();
        let table = engine.query("t", sql).unwrap();
        assert_eq!(table.cell(0, 0).as_i64(), Some(answer), "{sql}");
        assert!(!engine.missed_a_column());
        let other = "SELECT sum(ts_ns) FROM sample";
        for sql in [
            other,
            "SELECT count(*) FROM sample WHERE ts_ns IS NULL",
            "SELECT ts_ns FROM sample GROUP BY ts_ns",
        ] {
            let error = engine.query("t", sql).unwrap_err().to_string();
            assert_eq!(error, "column sample.ts_ns was not read", "{sql}");
            assert!(engine.missed_a_column());
        }
    }
    // Joins by equal names: whatever SQLite says of them, null is no answer.
    for sql in [
        "SELECT count(*) FROM sample JOIN place USING (cpu)",
        "SELECT count(*) FROM sample NATURAL JOIN place",
    ] {
        let engine = Engine::new(&database(sql)).unwrap();
        let answer = engine.query("t", sql).map(|table| table.cell(0, 0).as_i64());
        assert!(engine.missed_a_column() || answer.unwrap() == Some(5000), "{sql}");
    }
}

#[test]
fn a_join_by_a_kind_and_a_number_looks_up_the_number() {
    let mut places = TableBuilder::<PlaceRow>::new(&Memory::default());
    let count = 40_000;
    for cpu in 0..count {
        places.push(PlaceRow { cpu, socket: 1 });
    }
    let mut db = Database::new();
    db.insert(places.finish(&Strings::new().freeze().unwrap()).unwrap());
    let engine = Engine::new(&db).unwrap();
    // All rows are of the one kind: going through them for each row takes minutes.
    let sql = "SELECT count(b.cpu) AS n FROM place a LEFT JOIN place b ON b.socket = 1 AND b.cpu = a.cpu + 0";
    let limits = Limits { time: Some(std::time::Duration::from_secs(20)), ..Limits::PAGE };
    let (found, _) = engine.query_within("t", sql, 10, &limits).unwrap();
    assert_eq!(found.cell(0, 0).as_i64(), Some(i64::from(count)));
}
