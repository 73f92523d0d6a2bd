//! Every way by which a query comes in: options of commands, the shell, findings of a folder, the page. The help says which options take SQL, so
//! that a new one cannot be forgotten here. No query reads, makes or changes a file, none takes the program along, and the page answers as
//! before. `crates/answers/sql/tests/all/doors.rs` tries everything that SQLite lists; here the point is that no way in goes past it.

use crate::server::Server;
use etwhy_testkit::{Json as _, Program, Str as _};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The program.
const ETWHY: Program = crate::ETWHY.wide("100");

const SECRET: &str = "hunter2-secret";

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

/// What must not happen.
fn hostile(folder: &Path) -> Vec<String> {
    let at = |name: &str| folder.join(name).display().to_string();
    let (secret, new) = (at("secret.sqlite"), at("made.sqlite"));
    vec![
        format!("ATTACH '{secret}' AS s"),
        format!("ATTACH 'file:{new}?mode=rwc' AS s"),
        format!("VACUUM INTO '{new}'"),
        "PRAGMA hard_heap_limit = 1".to_owned(),
        "SELECT name AS x FROM pragma_database_list".to_owned(),
        format!("SELECT load_extension('{secret}') AS x"),
        "CREATE TEMP TABLE t AS SELECT 1 AS x".to_owned(),
        "SELECT hex(zeroblob(600000000)) AS x".to_owned(),
    ]
}

/// A folder with a secret, as browsers keep them.
fn secrets() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file = rusqlite::Connection::open(folder.path().join("secret.sqlite")).unwrap();
    let sql = format!("CREATE TABLE logins(word TEXT); INSERT INTO logins VALUES ('{SECRET}')");
    file.execute_batch(&sql).unwrap();
    folder
}

fn held(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.map(|path| (path.clone(), std::fs::read(&path).unwrap())).collect()
}

/// Commands and their options that take SQL, as the help of all commands tells.
fn ways_in(path: &[&str], found: &mut BTreeSet<String>) {
    let help = said(&ETWHY.output(&[path, &["--help"]].concat()));
    for line in help.lines() {
        let takes = ["<SQL>", "<QUERY>", "<SELECT>"].iter().any(|name| line.contains(name));
        let option = line.split([' ', ',']).find(|word| word.starts_with("--"));
        found.extend(option.filter(|_| takes).map(|option| format!("{} {option}", path.join(" "))));
    }
    let list = help.split_once("\nCommands:\n").map_or("", |(_, list)| list);
    for line in list.lines().take_while(|line| !line.trim().is_empty()) {
        let name = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' '));
        match name.and_then(|rest| rest.split_whitespace().next()) {
            None | Some("help") => {}
            Some(name) => ways_in(&[path, &[name]].concat(), found),
        }
    }
}

/// What a command with such an option reads.
fn inputs(way: &str, folder: &Path) -> Vec<String> {
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    // What was measured twice can be compared.
    let probe = |number: u32| {
        let path = folder.join(format!("probe{number}.json")).display().to_string();
        if !Path::new(&path).exists() {
            let run = ETWHY.output(&["probe", "run", "sleep0", "--quick", "-o", &path]);
            assert!(run.status.success(), "{}", said(&run));
        }
        path
    };
    let counters = "\"(PDH-CSV 4.0) (UTC)(0)\",\"\\\\PC\\Processor(0)\\% Processor Time\"\r\n\
                    \"06/03/2024 22:00:00.000\",\"1\"\r\n\"06/03/2024 22:00:10.000\",\"2\"\r\n";
    match way {
        "counters --sql" => vec![file("log.csv", counters)],
        "diff --sql" => vec![trace(folder), trace(folder)],
        "sql --command" => vec!["--demo".to_owned()],
        "probe report --sql" => vec![probe(1)],
        "probe compare --sql" => vec![probe(1), probe(2)],
        "evtx --sql" => vec![log().unwrap_or_else(|| file("empty.evtx", ""))],
        other => {
            panic!("`{other}` takes SQL: say here what it reads, so that hostile queries are tried with it")
        }
    }
}

/// A log of the corpus, if there is one.
fn log() -> Option<String> {
    let log = etwhy_testkit::corpus_file("evtx/log2timeline+plaso/System2.evtx")?;
    Some(log.str().to_owned())
}

fn trace(folder: &Path) -> String {
    let path = folder.join("clean_build.etl");
    if !path.exists() {
        ETWHY.story("clean_build", "0.01", folder);
    }
    path.display().to_string()
}

#[test]
fn no_option_lets_a_hostile_query_in() {
    let (folder, work) = (secrets(), tempfile::tempdir().unwrap());
    let before = held(folder.path());
    let mut ways = BTreeSet::new();
    ways_in(&[], &mut ways);
    assert!(ways.len() >= 5, "{ways:?}");
    for way in &ways {
        let inputs = inputs(way, work.path());
        let (command, option) = way.rsplit_once(' ').unwrap();
        let words: Vec<&str> = command.split(' ').chain(inputs.iter().map(String::as_str)).collect();
        // Those who compare want something to add up.
        let plain = ETWHY.output(&[&words[..], &[option, "SELECT 'a' AS name, 1 AS count"]].concat());
        let read = way != "evtx --sql" || log().is_some();
        assert!(!read || matches!(plain.status.code(), Some(0 | 1)), "{way}: {}", said(&plain));
        for sql in hostile(folder.path()) {
            let output = ETWHY.output(&[&words[..], &[option, &sql]].concat());
            // 134 is an abort, 101 a panic.
            let code = output.status.code();
            assert!(
                code.is_some_and(|code| (1..100).contains(&code)),
                "{way} {sql}: {code:?} {}",
                said(&output)
            );
            assert!(!said(&output).contains(SECRET), "{way} {sql}");
        }
    }
    assert_eq!(held(folder.path()), before);
}

#[test]
fn the_shell_attaches_only_for_its_owner() {
    let folder = secrets();
    let before = held(folder.path());
    let secret = folder.path().join("secret.sqlite").display().to_string();
    let ask = |more: &[&str]| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_etwhy"))
            .args([&["sql", "--demo"], more].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The second question needs another table, and with it another connection.
        let lines = format!(
            "ATTACH '{secret}' AS s;\nSELECT word, (SELECT count(*) FROM process) AS n FROM s.logins;\n"
        );
        child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        said(&child.wait_with_output().unwrap())
    };
    let refused = ask(&[]);
    assert!(!refused.contains(SECRET) && refused.contains("--allow-attach"), "{refused}");
    let allowed = ask(&["--allow-attach"]);
    assert!(allowed.contains(SECRET), "{allowed}");
    assert_eq!(ETWHY.output(&["sql", "--demo", "--allow-attach", "SELECT 1 AS x"]).status.code(), Some(2));
    assert_eq!(held(folder.path()), before);
}

/// Two findings: the first opens what the second would read, as only a connection that remembers lets it.
fn rules(folder: &Path, first: &str, second: &str) {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../answers/rules/findings");
    let files = std::fs::read_dir(shipped)
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap());
    let plain =
        |text: &String| !text.contains("needs") && !text.contains("\nover") && !text.contains("cannot_tell");
    let template = files.filter(plain).min().expect("a finding that needs nothing");
    let (head, rest) = template.split_once("sql = '''").unwrap();
    let tail = rest.split_once("'''").unwrap().1;
    let id = head.split_once("id = \"").unwrap().1.split_once('"').unwrap().0;
    for (name, sql) in [("hostile.a", first), ("hostile.b", second)] {
        let text = format!(
            "{}sql = '''\n{sql}\n'''{tail}",
            head.replace(&format!("id = \"{id}\""), &format!("id = \"{name}\""))
        );
        std::fs::write(folder.join(format!("{name}.toml")), text).unwrap();
    }
}

#[test]
fn findings_of_a_folder_read_tables_only() {
    let (folder, rules_folder) = (secrets(), tempfile::tempdir().unwrap());
    let before = held(folder.path());
    let plain = ETWHY.output(&["why", "--demo", "--json", "--quiet"]);
    let findings = |output: &Output| {
        let all: serde_json::Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", said(output)));
        let all = all["findings"].list().clone();
        let (own, shipped): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|one| one["id"].as_str().is_some_and(|id| id.starts_with("hostile")));
        (own, shipped)
    };
    let expected = findings(&plain).1;
    for first in hostile(folder.path()) {
        rules(rules_folder.path(), &first, "SELECT word AS culprit, word AS headline FROM s.logins");
        let output =
            ETWHY.output(&["why", "--demo", "--json", "--quiet", "--rules", rules_folder.path().str()]);
        assert_eq!(output.status.code(), plain.status.code(), "{first}: {}", said(&output));
        assert!(!said(&output).contains(SECRET), "{first}");
        let (own, shipped) = findings(&output);
        assert_eq!(own.len(), 2, "{first}");
        assert!(own.iter().all(|one| one["answer"] == "cannot_tell"), "{first}: {own:?}");
        assert_eq!(shipped, expected, "{first}: other answers");
    }
    assert_eq!(held(folder.path()), before);
}

#[test]
fn the_page_answers_as_before() {
    let folder = secrets();
    let before = held(folder.path());
    let server = Server::start(&["--demo", "--readonly"]);
    let probe = || {
        let sql = "SELECT count(*) AS n, 'A' LIKE 'a' AS cased, max(name) AS most FROM process";
        server.ask("sql", &json!({ "sql": sql })).body
    };
    let expected = probe();
    for sql in hostile(folder.path()) {
        for (way, body) in [
            ("sql", json!({ "sql": sql })),
            ("figures", json!({ "sql": sql })),
            ("sql_file", json!({ "sql": sql, "format": "csv" })),
        ] {
            let answer = server.ask(way, &body);
            assert_eq!(answer.status, 400, "{way} {sql}: {}", String::from_utf8_lossy(&answer.body));
        }
        assert_eq!(probe(), expected, "{sql}");
    }
    assert_eq!(server.ask("sql", &json!({ "sql": "SELECT word FROM s.logins" })).status, 400);
    assert_eq!(held(folder.path()), before);
}

/// Questions that never end hold up other questions in SQL, and nothing else.
#[test]
fn endless_questions_block_no_panel() {
    let server = Server::start(&["--demo", "--readonly"]);
    let endless =
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) AS n FROM n";
    let body = json!({ "sql": endless }).to_string();
    let path = format!("/{}/api/v1/sql", server.token);
    let waiting: Vec<_> = (0..20).map(|_| server.send("POST", &path, "", &body)).collect();
    for _ in 0..3 {
        assert_eq!(server.ask("session", &json!({})).status, 200);
        assert_eq!(server.ask("schema", &json!({})).status, 200);
        assert_eq!(server.ask("figures", &json!({ "sql": "SELECT count(*) AS n FROM logger" })).status, 200);
        assert_eq!(server.ask("lanes", &json!({ "width": 100 })).status, 200);
        assert_eq!(
            server
                .ask(
                    "pivot",
                    &json!({ "table": "process", "group": ["name"], "values": [{ "fn": "count" }] })
                )
                .status,
            200
        );
    }
    drop(waiting);
    assert_eq!(
        server.ask("sql", &json!({ "sql": "SELECT 1 AS x" })).status,
        200,
        "given up: the next is answered"
    );
}
