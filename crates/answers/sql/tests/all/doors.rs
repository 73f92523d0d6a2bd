//! What a query may do. Everything that SQLite itself lists (pragmas, functions, modules) and every kind of statement is tried over a folder
//! with a secret database: nothing of it is read, no file comes, goes or changes, and the next question is answered as before.

use etwhy_sql::capability::Doors;
use etwhy_sql::{Engine, Limits};
use etwhy_table::{Database, Memory, Strings, TableBuilder, define_table};
use std::collections::BTreeMap;
use std::path::Path;

define_table! {
    /// Samples.
    pub table SAMPLE: SampleRow = "sample" {
        sorted_by: "ts_ns", version: 1,
        /// When.
        ts_ns: i64 [Ns, Time],
        /// Where.
        cpu: i32 [None, Cpu],
    }
}

/// In the secret database, and in no answer.
const SECRET: &str = "hunter2-secret";

fn database() -> Database {
    let mut db = Database::new();
    let mut table = TableBuilder::<SampleRow>::new(&Memory::default());
    for n in 0..100 {
        table.push(SampleRow { ts_ns: n * 10, cpu: (n % 4) as i32 });
    }
    db.insert(table.finish(&Strings::new().freeze().unwrap()).unwrap());
    db
}

/// A folder with a secret, and what it held at first.
struct Folder {
    dir: tempfile::TempDir,
    before: BTreeMap<String, Vec<u8>>,
}

impl Folder {
    fn new() -> Folder {
        let dir = tempfile::tempdir().unwrap();
        let file = rusqlite::Connection::open(dir.path().join("secret.sqlite")).unwrap();
        file.execute_batch(&format!(
            "CREATE TABLE logins(word TEXT); INSERT INTO logins VALUES ('{SECRET}')"
        ))
        .unwrap();
        drop(file);
        let before = held(dir.path());
        Folder { dir, before }
    }

    fn secret(&self) -> String {
        self.dir.path().join("secret.sqlite").display().to_string()
    }

    fn new_file(&self) -> String {
        self.dir.path().join("made.sqlite").display().to_string()
    }

    fn unchanged(&self) {
        assert_eq!(held(self.dir.path()), self.before, "files changed");
    }
}

fn held(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap());
    entries
        .map(|e| (e.file_name().to_string_lossy().into_owned(), std::fs::read(e.path()).unwrap()))
        .collect()
}

/// Little, so that what is endless ends soon.
const LITTLE: Limits =
    Limits { steps: Some(200_000), value_bytes: 1 << 20, result_bytes: Some(1 << 22), ..Limits::FINDING };

/// The answer as text, or why there is none.
fn ask(engine: &Engine, sql: &str) -> Result<String, String> {
    let (table, _) = engine.query_within("answer", sql, 1000, &LITTLE).map_err(|e| e.to_string())?;
    let columns: Vec<String> = table.spec().columns.iter().map(|c| c.name.to_string()).collect();
    let mut text = columns.join(" ");
    for row in 0..table.rows() as u32 {
        for column in 0..columns.len() {
            text.push_str(&format!(" {:?}", table.cell(row, column)));
        }
    }
    assert!(!text.to_lowercase().contains(SECRET), "{sql}: {text}");
    Ok(text)
}

/// A question whose answer depends on what a hostile statement could have changed: settings, limits, views, functions.
const PROBE: &str = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 50) SELECT 'A' LIKE 'a' AS cased, \
                     (SELECT count(*) FROM n) AS counted, max(n.x) AS most, count(DISTINCT s.cpu) AS cpus, sum(s.ts_ns) AS sum_ns, \
                     group_concat(s.cpu) AS listed, typeof(1 / 2) AS kind, \"cpu\" AS quoted FROM sample s, n WHERE s.ts_ns < 200";

/// A connection as SQLite gives it to anybody.
fn bare() -> rusqlite::Connection {
    rusqlite::Connection::open_in_memory().unwrap()
}

fn listed(query: &str) -> Vec<String> {
    let connection = bare();
    let mut statement = connection.prepare(query).unwrap();
    let rows = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let mut all: Vec<String> = rows.map(Result::unwrap).collect();
    all.sort();
    all.dedup();
    assert!(all.len() > 3, "{query}: SQLite lists nothing");
    all
}

/// Every kind of statement of <https://sqlite.org/lang.html> that is not a question.
fn statements(secret: &str, new: &str) -> Vec<String> {
    [
        "ATTACH '{secret}' AS s",
        "ATTACH DATABASE 'file:{secret}?mode=rwc' AS s",
        "ATTACH 'file:{new}?mode=rwc' AS s",
        "ATTACH '{new}' AS s",
        "ATTACH '' AS s",
        "ATTACH ':memory:' AS s",
        "EXPLAIN ATTACH '{secret}' AS s",
        "SELECT * FROM s.logins",
        "DETACH main",
        "DETACH DATABASE temp",
        "VACUUM",
        "VACUUM INTO '{new}'",
        "VACUUM main INTO '{new}'",
        "ANALYZE",
        "REINDEX",
        "BEGIN",
        "BEGIN IMMEDIATE",
        "COMMIT",
        "END",
        "ROLLBACK",
        "SAVEPOINT a",
        "RELEASE a",
        "CREATE TABLE t(a)",
        "CREATE TEMP TABLE t AS SELECT 1",
        "CREATE INDEX i ON sample(cpu)",
        "CREATE VIEW v AS SELECT 1",
        "CREATE TEMP VIEW v AS SELECT 1",
        "CREATE TEMP TRIGGER g AFTER INSERT ON sample BEGIN SELECT 1; END",
        "CREATE VIRTUAL TABLE t USING fts5(a)",
        "CREATE VIRTUAL TABLE temp.t USING rtree(a, b, c)",
        "CREATE VIRTUAL TABLE t USING sample",
        "ALTER TABLE sample RENAME TO other",
        "ALTER TABLE sample ADD COLUMN x",
        "DROP TABLE sample",
        "DROP VIEW IF EXISTS cpu_by_process",
        "INSERT INTO sample VALUES (1, 2)",
        "REPLACE INTO sample VALUES (1, 2)",
        "UPDATE sample SET cpu = 1",
        "DELETE FROM sample",
        "WITH x AS (SELECT 1) INSERT INTO sample SELECT * FROM x",
        "INSERT INTO sqlite_temp_schema VALUES ('table', 't', 't', 1, '')",
        "SELECT * FROM sqlite_schema",
        "SELECT * FROM sqlite_temp_schema",
        "SELECT count(*) FROM sqlite_temp_master",
        "SELECT * FROM temp.sqlite_master",
        "SELECT load_extension('{secret}')",
        "SELECT fts3_tokenizer('simple')",
        "SELECT writefile('{new}', 'x')",
        "SELECT readfile('{secret}')",
        "SELECT edit('x')",
        "SELECT 1; ATTACH '{secret}' AS s",
        "",
    ]
    .map(|text| text.replace("{secret}", secret).replace("{new}", new))
    .into()
}

#[test]
fn statements_that_are_no_questions_are_refused() {
    let (db, folder) = (database(), Folder::new());
    let engine = Engine::new(&db).unwrap();
    let before = ask(&engine, PROBE).unwrap();
    for sql in statements(&folder.secret(), &folder.new_file()) {
        if let Ok(answer) = ask(&engine, &sql) {
            panic!("{sql}: {answer}");
        }
        assert_eq!(ask(&engine, PROBE).unwrap(), before, "{sql}");
    }
    folder.unchanged();
    let said = |sql: &str| ask(&engine, sql).unwrap_err();
    assert!(said("ATTACH 'x' AS s").contains("--allow-attach"), "{}", said("ATTACH 'x' AS s"));
    assert!(said("PRAGMA cache_size = 1").contains("PRAGMA cache_size is not allowed"));
    assert!(said("CREATE TABLE t(a)").contains("only SELECT"), "{}", said("CREATE TABLE t(a)"));
    for sql in ["DROP TABLE elsewhere", "update elsewhere set a = 1", "INSERT INTO elsewhere VALUES (1)"] {
        assert!(said(sql).contains("only SELECT"), "{sql}: {}", said(sql));
    }
    assert!(said("SELECT 1; SELECT 2").contains("only one SELECT"), "{}", said("SELECT 1; SELECT 2"));
    assert!(said("SELECT load_extension('x')").contains("`load_extension` is not allowed"));
}

/// Also what a later version of SQLite brings along.
#[test]
fn no_pragma_changes_or_tells_anything() {
    let (db, folder) = (database(), Folder::new());
    let engine = Engine::new(&db).unwrap();
    let before = ask(&engine, PROBE).unwrap();
    let secret = folder.secret();
    for pragma in listed("SELECT name FROM pragma_pragma_list") {
        for sql in [
            format!("PRAGMA {pragma}"),
            format!("PRAGMA {pragma} = 0"),
            format!("PRAGMA {pragma} = OFF"),
            format!("PRAGMA temp.{pragma} = 1"),
            format!("PRAGMA {pragma}('{secret}')"),
            format!("SELECT * FROM pragma_{pragma}"),
            format!("SELECT count(*) FROM pragma_{pragma}"),
            format!("SELECT count(*) FROM pragma_{pragma}('{secret}')"),
        ] {
            assert!(ask(&engine, &sql).is_err(), "{sql}");
            assert_eq!(ask(&engine, PROBE).unwrap(), before, "{sql}");
        }
    }
    folder.unchanged();
}

#[test]
fn functions_read_and_change_nothing() {
    let (db, folder) = (database(), Folder::new());
    let engine = Engine::new(&db).unwrap();
    let before = ask(&engine, PROBE).unwrap();
    let (secret, new) = (folder.secret(), folder.new_file());
    let mut allowed = Vec::new();
    for name in listed("SELECT name FROM pragma_function_list") {
        let mut refused = 0;
        let arguments = [
            "",
            "1",
            "'{secret}'",
            "'{new}', 'x'",
            "'{secret}', 1, 'x'",
            "2000000000",
            "'%.2000000000c', 'x'",
        ];
        for arguments in arguments {
            let arguments = arguments.replace("{secret}", &secret).replace("{new}", &new);
            let call = format!("\"{name}\"({arguments})");
            for sql in [
                format!("SELECT {call} AS x"),
                format!("SELECT {call} OVER () AS x FROM sample"),
                format!("SELECT hex({call}) AS x"),
            ] {
                let answer = ask(&engine, &sql);
                refused += usize::from(answer.is_err_and(|e| e.contains("is not allowed")));
            }
        }
        if refused == 0 {
            allowed.push(name);
        }
        assert_eq!(ask(&engine, PROBE).unwrap(), before);
    }
    folder.unchanged();
    for door in [
        "load_extension",
        "fts3_tokenizer",
        "sqlite_compileoption_used",
        "rtreecheck",
        "fts5",
        "snippet",
        "changes",
    ] {
        assert!(!allowed.iter().any(|name| name == door), "{door}");
    }
    assert!(allowed.iter().any(|name| name == "lower") && allowed.len() > 60, "{allowed:?}");
}

#[test]
fn tables_of_sqlite_are_not_ours() {
    let (db, folder) = (database(), Folder::new());
    let engine = Engine::new(&db).unwrap();
    for module in listed("SELECT name FROM pragma_module_list") {
        let open = ["json_each", "json_tree"].contains(&module.as_str());
        for sql in [
            format!("SELECT * FROM \"{module}\"('[1]')"),
            format!("SELECT count(*) FROM \"{module}\"('[1]')"),
            format!("SELECT count(*) FROM \"{module}\""),
        ] {
            assert!(ask(&engine, &sql).is_err() || open, "{sql}");
        }
    }
    assert!(ask(&engine, "SELECT value AS v FROM json_each('[1, 2]')").unwrap().contains('2'));
    folder.unchanged();
}

#[test]
fn limits_end_what_is_endless_or_large() {
    let engine = Engine::new(&database()).unwrap();
    let before = ask(&engine, PROBE).unwrap();
    let endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)";
    for (sql, said) in [
        (format!("{endless} SELECT count(*) AS n FROM n"), "200000 steps"),
        (format!("{endless} SELECT x FROM n WHERE x < 0"), "200000 steps"),
        (format!("{endless} SELECT percentile(x, 50) AS p FROM n"), "200000 steps"),
        (format!("{endless} SELECT stack_has(1, 'a' || x) AS s FROM n WHERE x < 0"), "200000 steps"),
        (
            "SELECT count(*) AS n FROM sample a, sample b, sample c, sample d, sample e".to_owned(),
            "200000 steps",
        ),
        ("SELECT hex(zeroblob(200000000)) AS x".to_owned(), "longer than the limit"),
        ("SELECT zeroblob(2000000000) AS x".to_owned(), "longer than the limit"),
        ("SELECT printf('%.*c', 100000000, 'x') AS x".to_owned(), "longer than the limit"),
        (
            format!(
                "{endless} SELECT group_concat(y) AS x FROM (SELECT hex(zeroblob(1000)) AS y FROM n LIMIT 900)"
            ),
            "longer than the limit",
        ),
        (format!("{endless} SELECT hex(zeroblob(500000)) AS x FROM n"), "the result is larger"),
        (format!("SELECT 'a' LIKE '{}' AS x", "%a".repeat(200)), "pattern too complex"),
    ] {
        let error = ask(&engine, &sql).unwrap_err();
        assert!(error.contains(said), "{sql}: {error}");
        assert_eq!(ask(&engine, PROBE).unwrap(), before, "{sql}");
    }
    let no_time = Limits { time: Some(std::time::Duration::ZERO), ..Limits::PAGE };
    let error = engine.query_within("answer", &format!("{endless} SELECT count(*) AS n FROM n"), 1, &no_time);
    assert!(error.unwrap_err().to_string().contains("more than 0 s"));
}

#[test]
fn a_join_whose_key_is_null_reads_nothing() {
    let engine = Engine::new(&database()).unwrap();
    let none = "= nullif(a.cpu, a.cpu)";
    let sql = format!(
        "SELECT count(*) AS n FROM sample a LEFT JOIN sample b ON b.cpu {none} LEFT JOIN sample c ON c.cpu {none} LEFT JOIN sample d ON d.cpu {none}"
    );
    // Three tables read for each row of the first take more steps than there are.
    assert_eq!(ask(&engine, &sql).unwrap(), "n I64(100)");
}

#[test]
fn the_owner_may_attach_what_is_there_and_change_nothing() {
    let folder = Folder::new();
    let engine = Engine::with(&database(), Doors { attach: true }).unwrap();
    let ask = |sql: &str| engine.query("answer", sql).map_err(|e| e.to_string());
    ask(&format!("ATTACH '{}' AS s", folder.secret())).unwrap();
    let found = ask("SELECT word FROM s.logins").unwrap();
    assert_eq!(found.text(0, "word"), Some(SECRET));
    assert!(ask(&format!("ATTACH '{}' AS made", folder.new_file())).is_err());
    assert!(ask(&format!("ATTACH 'file:{}?mode=rwc' AS made", folder.new_file())).is_err());
    for sql in statements("x", &folder.new_file()) {
        if !sql.contains("ATTACH") && !sql.contains("DETACH") && !sql.starts_with("SELECT") {
            assert!(ask(&sql).is_err(), "{sql}");
        }
    }
    for sql in [
        "INSERT INTO s.logins VALUES ('x')",
        "DROP TABLE s.logins",
        "PRAGMA s.user_version = 7",
        "SELECT load_extension('x')",
    ] {
        assert!(ask(sql).is_err(), "{sql}");
    }
    drop(engine);
    folder.unchanged();
}
