//! The kernel answers as SQLite does: the same queries over the same tables, with and without it.

use etwhy_base::rng::Rng;
use etwhy_sql::{Engine, Limits};
use etwhy_table::{
    AdHocBuilder, ColumnSpec, ColumnType, Database, Evidence, Memory, Role, Strings, Table, TableLoader,
    TableSpec, Unit, Value,
};
use std::borrow::Cow;
use std::fmt::Write as _;

type Columns = &'static [(&'static str, ColumnType)];

const FACTS: Columns = &[
    ("ts", ColumnType::I64),
    ("small", ColumnType::I32),
    ("big", ColumnType::I64),
    ("frac", ColumnType::F64),
    ("flag", ColumnType::Bool),
    ("name", ColumnType::Text),
    ("words", ColumnType::LongText),
    ("ref", ColumnType::I32),
    ("far", ColumnType::I64),
];
const THINGS: Columns = &[
    ("id", ColumnType::I32),
    ("kind", ColumnType::Text),
    ("weight", ColumnType::F64),
    ("parent", ColumnType::I64),
    ("title", ColumnType::Text),
];

fn spec(name: &'static str, columns: Columns) -> TableSpec {
    let column = |(name, ty): &(&'static str, ColumnType)| ColumnSpec {
        name: Cow::Borrowed(name),
        ty: *ty,
        unit: Unit::None,
        role: Role::Other,
        doc: Cow::Borrowed(""),
        nullable: *name != "ts",
    };
    TableSpec {
        name: Cow::Borrowed(name),
        title: Cow::Borrowed(""),
        doc: Cow::Borrowed(""),
        columns: columns.iter().map(column).collect(),
        sorted_by: columns.first().filter(|c| c.0 == "ts").map(|c| Cow::Borrowed(c.0)),
        version: 1,
        evidence: Evidence::Documented,
    }
}

const TEXTS: [&str; 9] = ["", "idle", "Idle", "system", "ÄÖ", "a\0b", "it's", "100%", "a_b"];

fn table(rng: &mut Rng, spec: TableSpec, rows: usize, unique: bool) -> Table {
    let mut builder = AdHocBuilder::new(spec.clone(), &Memory::default());
    for row in 0..rows {
        let cells: Vec<Value<'_>> = spec
            .columns
            .iter()
            .map(|c| match (&*c.name, rng.below(12)) {
                ("ts", _) => Value::I64(row as i64 * 10),
                ("id", _) if unique => Value::I64(row as i64 * 2 - 20),
                (_, 0) => Value::Null,
                ("small" | "parent", _) => Value::I64(rng.below(7) as i64 - 3),
                ("id", _) => Value::I64(rng.below(40) as i64),
                ("ref", _) => Value::I64(rng.below(500) as i64 - 30),
                ("big", n) => Value::I64([i64::MAX, i64::MIN, 0, -1, 1 << 53, (1 << 53) + 1][n as usize % 6]),
                ("far", _) => Value::I64(rng.below(3000) as i64 * 1_000_000_007),
                ("frac" | "weight", 1) => {
                    Value::F64([f64::NAN, -0.0, 0.0, 1e15, -1e15][rng.below(5) as usize])
                }
                ("frac" | "weight", _) => Value::F64(rng.below(1000) as f64 / 7.0 - 50.0),
                ("flag", n) => Value::Bool(n % 2 == 0),
                _ => Value::Text(TEXTS[rng.below(TEXTS.len() as u64) as usize]),
            })
            .collect();
        builder.push(&cells).unwrap();
    }
    builder.finish().unwrap()
}

/// Tables that share their texts.
fn database(seed: u64) -> Database {
    let mut rng: Rng = Rng::new(seed);
    let (mut strings, mut loaders) = (Strings::new(), Vec::new());
    for (name, columns, rows, unique) in [
        ("facts", FACTS, 70_000, false),
        ("things", THINGS, 200, true),
        ("doubles", THINGS, 60, false),
        ("nothing", THINGS, 0, true),
    ] {
        let rows = if name == "facts" { [4096, 5000, rows][seed as usize % 3] } else { rows };
        let table = table(&mut rng, spec(name, columns), rows, unique);
        let mut loader = TableLoader::new(table.spec(), &Memory::default());
        table.batches().iter().for_each(|batch| loader.push(batch, &mut strings).unwrap());
        loaders.push(loader);
    }
    let texts = strings.freeze().unwrap();
    let mut db = Database::new();
    for loader in loaders {
        db.insert(loader.finish(&texts).unwrap());
    }
    db
}

/// Queries of the shapes that the kernel knows, and some that it does not.
struct Queries(Rng);

impl Queries {
    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.0.below(of.len() as u64) as usize]
    }

    fn number(&mut self, joined: bool) -> String {
        let column = if joined {
            self.pick(&["f.small", "f.big", "f.frac", "flag", "ref", "far", "t.id", "t.weight", "parent"])
        } else {
            self.pick(&["small", "big", "frac", "flag", "ref", "far", "ts", "facts.small"])
        };
        match self.0.below(9) {
            0 => format!("{column} + {}", self.pick(&["1", "2.5", "-3", "9223372036854775807"])),
            1 => format!("{column} / {}", self.pick(&["10", "0", "-1", "2.0", "small"])),
            2 => format!(
                "CASE WHEN {} THEN {column} ELSE {} END",
                self.condition(joined),
                self.pick(&["0", "NULL", "1.5"])
            ),
            3 => format!("coalesce({column}, {})", self.pick(&["0", "small", "1.5"])),
            4 => format!(
                "CAST({column} AS {}) * {}",
                self.pick(&["DOUBLE", "BIGINT"]),
                self.pick(&["2", "0.5"])
            ),
            _ => column.to_owned(),
        }
    }

    fn text(&mut self, joined: bool) -> &'static str {
        if joined {
            self.pick(&["f.name", "t.kind", "title", "words"])
        } else {
            self.pick(&["name", "words"])
        }
    }

    fn condition(&mut self, joined: bool) -> String {
        let op = self.pick(&["=", "<>", "!=", "<", "<=", ">", ">=", "=="]);
        match self.0.below(13) {
            0 => format!("{} IS {}NULL", self.text(joined), self.pick(&["", "NOT "])),
            1 => format!("{} {op} '{}'", self.text(joined), self.pick(&["idle", "it''s", "zzz", "ÄÖ", ""])),
            2 => format!(
                "{} {}LIKE '{}'",
                self.text(joined),
                self.pick(&["", "NOT "]),
                self.pick(&["i%", "%s%", "_d%", "%", "a_b"])
            ),
            3 => format!(
                "lower({}) {}LIKE '{}'",
                self.text(joined),
                self.pick(&["", "NOT "]),
                self.pick(&["i%", "%m"])
            ),
            4 => format!("{} IN ('idle', 'it''s')", self.text(joined)),
            5 => format!("({} OR {})", self.condition(joined), self.condition(joined)),
            6 => format!("NOT ({})", self.condition(joined)),
            7 => format!(
                "{} BETWEEN {} AND {}",
                self.number(joined),
                self.pick(&["-2", "0", "1.5"]),
                self.pick(&["1", "100", "7.25"])
            ),
            8 => format!("small {}IN (1, -1, 3)", self.pick(&["", "NOT "])),
            9 => "flag".to_owned(),
            10 => format!("ts {op} {}", self.0.below(60_000)),
            _ => format!(
                "{} {op} {}",
                self.number(joined),
                self.pick(&["0", "1", "-2", "2.5", "9007199254740993", "9007199254740992.0"])
            ),
        }
    }

    fn sum(&mut self, joined: bool) -> String {
        match self.0.below(8) {
            0 => "count(*)".to_owned(),
            1 => format!("count({})", self.text(joined)),
            2 => format!("{}({})", self.pick(&["min", "max"]), self.text(joined)),
            3 => format!("1.0 * sum({}) / count(*)", self.number(joined)),
            4 => format!("coalesce(max({}), 0) - min({})", self.number(joined), self.number(joined)),
            _ => format!("{}({})", self.pick(&["count", "sum", "avg", "min", "max"]), self.number(joined)),
        }
    }

    fn query(&mut self) -> String {
        let joined = self.0.below(3) == 0;
        let (mut from, mut conditions) = ("facts".to_owned(), Vec::new());
        if joined {
            let other = self.pick(&["things", "things", "doubles", "nothing"]);
            from = match self.0.below(5) {
                0 => format!("{other} t JOIN facts f ON t.id = f.ref"),
                1 => format!("facts AS f LEFT JOIN {other} t ON f.ref = t.id"),
                2 => format!("facts f, {other} t"),
                3 => format!(
                    "facts f LEFT JOIN {other} t ON t.id = f.small LEFT JOIN things x ON x.id = t.parent"
                ),
                _ => format!("facts f INNER JOIN {other} AS t ON f.ref = t.id AND f.small > -2"),
            };
            if from.contains(", ") {
                conditions.push("f.ref = t.id".to_owned());
            }
            if from.contains(" x ") {
                from = from.replace("t.parent", "t.parent + 0").replace("t.parent + 0", "t.parent");
            }
        }
        let ambiguous = from.contains(" x ");
        let name = |text: String| {
            if ambiguous {
                ["parent", "title"]
                    .iter()
                    .fold(text, |text, n| text.replace(n, &format!("t.{n}")))
                    .replace("t.t.", "t.")
            } else {
                text
            }
        };
        for _ in 0..self.0.below(3) {
            conditions.push(name(self.condition(joined)));
        }
        let mut keys = Vec::new();
        for _ in 0..self.0.below(4) {
            let key = if self.0.below(3) == 0 { self.text(joined).to_owned() } else { self.number(joined) };
            keys.push(name(key));
        }
        let filter = if conditions.is_empty() {
            String::new()
        } else {
            format!(" WHERE {}", conditions.join(" AND "))
        };
        match self.0.below(8) {
            0 if !keys.is_empty() => format!("SELECT DISTINCT {} FROM {from}{filter}", keys.join(", ")),
            1 if !joined => {
                let by = self.pick(&["frac", "small", "big", "ts", "name"]);
                let (desc, limit) = (self.pick(&["", " DESC", " ASC"]), self.0.below(30));
                format!("SELECT ts, {by} AS what FROM facts{filter} ORDER BY what{desc}, ts LIMIT {limit}")
            }
            2 if !joined => format!(
                "SELECT ts, row_number() OVER (PARTITION BY small ORDER BY ts) AS n FROM facts{filter} ORDER BY ts DESC LIMIT 50"
            ),
            3 if !joined => format!(
                "SELECT total(frac) AS t, group_concat(small) AS g, count(DISTINCT name) AS d FROM facts{filter} ORDER BY ts LIMIT 5"
            ),
            _ => {
                let mut items: Vec<String> =
                    keys.iter().enumerate().map(|(n, key)| format!("{key} AS k{n}")).collect();
                for n in 0..1 + self.0.below(3) {
                    items.push(format!("{} AS s{n}", name(self.sum(joined))));
                }
                let mut query = format!("SELECT {} FROM {from}{filter}", items.join(", "));
                if !keys.is_empty() {
                    let by: Vec<String> = match self.0.below(3) {
                        0 => (0..keys.len()).map(|n| format!("k{n}")).collect(),
                        1 => (1..=keys.len()).map(|n| n.to_string()).collect(),
                        _ => keys.clone(),
                    };
                    let _ = write!(query, " GROUP BY {}", by.join(", "));
                }
                if self.0.below(4) == 0 {
                    let _ = write!(query, " HAVING {} > {}", name(self.sum(joined)), self.0.below(50));
                }
                if self.0.below(3) == 0 {
                    let all: Vec<String> =
                        (1..=items.len()).map(|n| format!("{n}{}", self.pick(&["", " DESC"]))).collect();
                    let _ = write!(query, " ORDER BY {}", all.join(", "));
                    if self.0.below(2) == 0 {
                        let _ = write!(query, " LIMIT {}", self.0.below(20));
                    }
                }
                match self.0.below(6) {
                    0 => format!("WITH w AS ({query}) SELECT count(*) AS n, sum(s0) AS s FROM w"),
                    1 => format!("SELECT * FROM ({query}) q WHERE s0 IS NOT NULL UNION ALL {query}"),
                    _ => query,
                }
            }
        }
    }
}

fn rows(engine: &Engine, sql: &str) -> Result<Vec<Vec<String>>, String> {
    let table = engine.query("t", sql).map_err(|e| e.to_string())?;
    let shown = |value: Value<'_>| match value {
        // Which of two equal rows comes first is open, and with it the sign of zero.
        Value::F64(0.0) => "F64(0)".to_owned(),
        // The order in which rows of a join or of a list of values come is open, and with it the last digits of sums.
        Value::F64(n) if sql.contains("facts f") || sql.contains("facts AS") || sql.contains(" IN (") => {
            format!("F64({n:.6e})")
        }
        value => format!("{value:?}"),
    };
    let columns = table.spec().columns.len();
    let row = |row: u32| (0..columns).map(|column| shown(table.cell(row, column))).collect::<Vec<_>>();
    let mut rows: Vec<Vec<String>> = (0..table.rows() as u32).map(row).collect();
    if !sql.contains("ORDER BY") || sql.contains("UNION") {
        rows.sort();
    }
    let heads = |c: &ColumnSpec| format!("{} {}", c.name, c.ty.name());
    rows.insert(0, table.spec().columns.iter().map(heads).collect());
    Ok(rows)
}

#[test]
fn the_kernel_answers_as_sqlite_does() {
    let (mut asked, mut answered, mut failed) = (0, 0, 0);
    for seed in 0..5 {
        let db = database(seed);
        let (with, without) = (Engine::new(&db).unwrap(), Engine::new(&db).unwrap());
        without.without_kernel(true);
        let mut queries = Queries(Rng::new(seed + 100));
        let count = if seed % 3 == 2 { 20 } else { 250 };
        for _ in 0..count {
            let sql = queries.query();
            let (ours, theirs) = (rows(&with, &sql), rows(&without, &sql));
            assert!(
                ours == theirs,
                "seed {seed}: {sql}\n{:?}\nkernel {:.2000?}\nSQLite {:.2000?}",
                with.kernel_lines(),
                show(&ours, &theirs),
                show(&theirs, &ours)
            );
            asked += 1;
            answered += u32::from(!with.kernel_lines().is_empty());
            failed += u32::from(ours.is_err());
        }
    }
    println!("{asked} queries, {answered} by the kernel, {failed} errors");
    assert!(
        answered * 5 > asked * 2 && failed * 8 < asked,
        "{asked} queries, {answered} by the kernel, {failed} errors"
    );
}

/// Rows of one that the other does not have.
fn show(a: &Result<Vec<Vec<String>>, String>, b: &Result<Vec<Vec<String>>, String>) -> String {
    match (a, b) {
        (Ok(a), Ok(b)) => {
            format!(
                "{} rows {:?}",
                a.len(),
                a.iter().filter(|row| !b.contains(row)).take(5).collect::<Vec<_>>()
            )
        }
        (a, _) => format!("{:.1000}", format!("{a:?}")),
    }
}

#[test]
fn what_the_kernel_takes_over() {
    let db = database(0);
    let engine = Engine::new(&db).unwrap();
    for (sql, kernel) in [
        ("SELECT count(*) FROM facts", true),
        ("SELECT name, count(*) n FROM facts GROUP BY name ORDER BY n DESC LIMIT 3", true),
        ("SELECT t.kind, sum(f.small) FROM facts f JOIN things t ON t.id = f.ref GROUP BY 1", true),
        ("SELECT t.kind, sum(f.small) FROM facts f JOIN doubles t ON t.id = f.ref GROUP BY 1", false),
        ("SELECT DISTINCT ref FROM facts", true),
        ("SELECT ts / 1000 AS s, max(frac) - min(frac) AS d FROM facts GROUP BY ts / 1000", true),
        ("SELECT * FROM facts ORDER BY frac DESC LIMIT 3", true),
        ("SELECT * FROM facts WHERE small = 2", true),
        ("SELECT count(*) FROM things", false),
        ("SELECT sum(small) OVER () FROM facts", false),
        ("SELECT count(DISTINCT name) FROM facts", false),
        ("SELECT name, small, count(*) FROM facts GROUP BY name", false),
        ("WITH facts AS (SELECT 1 AS small) SELECT count(*) FROM facts", false),
        ("SELECT group_concat(small) FROM facts GROUP BY flag", false),
        ("SELECT (SELECT count(*) FROM facts WHERE ref = t.id) FROM things t", false),
        ("SELECT name || 'x', count(*) FROM facts GROUP BY name COLLATE NOCASE", false),
    ] {
        engine.query("t", sql).unwrap();
        assert_eq!(!engine.kernel_lines().is_empty(), kernel, "{sql}: {:?}", engine.kernel_lines());
    }
    assert!(engine.explain("SELECT count(*) FROM facts").unwrap().starts_with("kernel: 1 groups"));
}

#[test]
fn names_are_those_of_the_query() {
    let engine = Engine::new(&database(0)).unwrap();
    let names = |sql: &str| {
        let table = engine.query("t", sql).unwrap();
        assert!(!engine.kernel_lines().is_empty(), "{sql}");
        table.spec().columns.iter().map(|c| c.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(
        names("SELECT  NAME, count( * ), sum(small)+1 FROM facts GROUP BY name"),
        ["name", "count( * )", "sum(small)+1"]
    );
    assert_eq!(names("SELECT \"small\" AS \"a b\", max(ts) [it] FROM facts GROUP BY 1"), ["a b", "it"]);
}

#[test]
fn limits_hold_for_the_kernel() {
    let engine = Engine::new(&database(2)).unwrap();
    let sql = "SELECT ref, sum(small) AS s FROM facts GROUP BY ref";
    let little = Limits { steps: Some(10_000), ..Limits::FINDING };
    let error = engine.query_within("t", sql, 10, &little).unwrap_err().to_string();
    assert_eq!(error, "it took more than 10000 steps");
    let none = Limits { time: Some(std::time::Duration::ZERO), ..Limits::PAGE };
    let error = engine.query_within("t", sql, 10, &none).unwrap_err().to_string();
    assert_eq!(error, "it took more than 0 s");
    let small = Limits { result_bytes: Some(100), ..Limits::PAGE };
    let error = engine.query_within("t", sql, 1000, &small).unwrap_err().to_string();
    assert!(error.starts_with("the result is larger than the limit here"), "{error}");
    let (table, more) = engine.query_within("t", sql, 10, &Limits::PAGE).unwrap();
    assert!(table.rows() == 10 && more && !engine.kernel_lines().is_empty());
    // The small table is nobody's afterwards.
    for sql in ["SELECT count(*) FROM etwhy_kernel_0", "SELECT etwhy_kernel_key_0 FROM etwhy_kernel_0"] {
        assert!(engine.query("t", sql).is_err(), "{sql}");
    }
}
