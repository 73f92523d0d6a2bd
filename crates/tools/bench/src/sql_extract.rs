//! SQL over an extract against DuckDB on the same Parquet files: one thread, CPU time, from the folder to the answer.

use crate::evtx::cpu;
use anyhow::Context as _;
use etwhy_export::extract::{Folder, Limits};
use etwhy_sql::{Engine, columns_read, words};
use etwhy_table::{Database, Memory, Strings, TableSpec};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Questions whose answers are one row, so that both can be compared.
const QUERIES: &[(&str, &str)] = &[
    ("count", "SELECT count(*) AS n FROM cswitch"),
    (
        "GROUP BY id",
        "SELECT count(*) AS n, sum(g.c) AS c, sum(g.ns) AS ns FROM (SELECT new_utid, count(*) AS c, sum(wait_ns) AS ns FROM cswitch GROUP BY new_utid) g",
    ),
    (
        "GROUP BY text",
        "SELECT count(*) AS n, sum(g.c) AS c, sum(g.ns) AS ns FROM (SELECT prev_wait_reason, count(*) AS c, sum(wait_ns) AS ns FROM cswitch GROUP BY prev_wait_reason) g",
    ),
    (
        "GROUP BY two ids",
        "SELECT count(*) AS n, sum(g.c) AS c, max(g.ns) AS ns FROM (SELECT cpu, new_utid, count(*) AS c, max(run_ns) AS ns FROM cswitch GROUP BY cpu, new_utid) g",
    ),
    (
        "join with names",
        "SELECT count(*) AS n, sum(g.c) AS c, sum(g.ns) AS ns FROM (SELECT t.pid AS pid, count(*) AS c, sum(s.cpu_ns) AS ns FROM cswitch s JOIN process t ON t.upid = s.new_upid GROUP BY t.pid) g",
    ),
    (
        "conditions",
        "SELECT count(*) AS n, avg(ready_ns) AS ns FROM cswitch WHERE wait_ns > 1000000 AND new_priority BETWEEN 8 AND 15",
    ),
    (
        "the longest",
        "SELECT count(*) AS n, sum(g.wait_ns) AS ns FROM (SELECT ts_ns, wait_ns FROM cswitch WHERE wait_ns > 1000 ORDER BY wait_ns DESC LIMIT 100) g",
    ),
    (
        "window",
        "SELECT max(g.n) AS n, count(*) AS c FROM (SELECT row_number() OVER (PARTITION BY new_utid ORDER BY ts_ns) AS n FROM cswitch) g",
    ),
];

/// What a file may unpack to: this one is ours.
const LIMITS: Limits = Limits { bytes: u64::MAX, ratio: u64::MAX, free_bytes: u64::MAX, options: ["", ""] };

/// Runs each query in turn; prints CPU seconds and an answer of one row for each.
const SCRIPT: &str = r#"
import pathlib, sys, time
import duckdb
connection = duckdb.connect()
connection.sql("set threads = 1")
for file in sorted(pathlib.Path(sys.argv[1]).glob("*.parquet")):
    name = str(file).replace("'", "''")
    connection.sql(f"create view \"{file.stem}\" as select * from read_parquet('{name}')")
for query in sys.stdin.read().split("\n"):
    start = time.process_time()
    row = connection.sql(query).fetchone()
    print(time.process_time() - start, *(f"{float(v):.6e}" for v in row), flush=True)
"#;

/// Prints for each question the time and its ratio to DuckDB's.
pub fn run(folder: &Path) -> anyhow::Result<()> {
    const RUNS: usize = 5;
    let python = std::env::var_os("ETWHY_PYTHON");
    println!(
        "\nSQL over {}, CPU seconds from the folder to the answer, least / median of {RUNS}",
        folder.display()
    );
    if python.is_none() {
        println!("  ETWHY_PYTHON names no Python with duckdb: nothing to compare with");
    }
    let mut ours = vec![(Vec::new(), String::new(), String::new()); QUERIES.len()];
    let mut theirs = vec![(Vec::new(), String::new()); QUERIES.len()];
    for _ in 0..RUNS {
        for ((_, sql), (times, answer, by)) in QUERIES.iter().zip(&mut ours) {
            let begin = cpu();
            (*answer, *by) = ask(folder, sql)?;
            times.push(cpu() - begin);
        }
        let Some(python) = &python else { continue };
        let command = Command::new(python)
            .args(["-c", SCRIPT])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = command?;
        let all: Vec<&str> = QUERIES.iter().map(|(_, sql)| *sql).collect();
        child.stdin.take().context("no input")?.write_all(all.join("\n").as_bytes())?;
        let output = child.wait_with_output()?;
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        for (line, (times, answer)) in lines.lines().zip(&mut theirs) {
            let (time, row) = line.split_once(' ').unwrap_or((line, ""));
            times.push(time.parse()?);
            row.clone_into(answer);
        }
    }
    for (((name, _), (mut times, answer, by)), (mut peer, other)) in QUERIES.iter().zip(ours).zip(theirs) {
        let least = |times: &mut Vec<f64>| {
            times.sort_by(f64::total_cmp);
            (times.first().copied().unwrap_or(0.0), times.get(times.len() / 2).copied().unwrap_or(0.0))
        };
        let ((a, a_middle), (b, b_middle)) = (least(&mut times), least(&mut peer));
        let against = if b > 0.0 {
            let same = if answer == other { "" } else { "; ANOTHER ANSWER" };
            format!("DuckDB {b:.3} / {b_middle:.3}: {:.1} times that{same}", a / b)
        } else {
            String::new()
        };
        println!("  {name:<17} {a:.3} / {a_middle:.3} s by {by:<6} {against}");
    }
    Ok(())
}

/// The answer's only row, and who gave it.
fn ask(folder: &Path, sql: &str) -> anyhow::Result<(String, String)> {
    let named = words(sql);
    let all = || etwhy_trace::catalog::ALL.iter().flat_map(|analysis| analysis.tables.iter().copied());
    let specs: Vec<&TableSpec> = all().filter(|spec| named.contains(&spec.name.as_ref())).collect();
    let columns = columns_read(specs.iter().copied(), sql).context("columns are not known")?;
    let (mut extract, mut strings, mut loaders) = (Folder::open(folder, LIMITS)?, Strings::new(), Vec::new());
    for spec in specs {
        let is_read = |column: &str| columns.get(spec.name.as_ref()).is_some_and(|c| c.contains(column));
        loaders.push(extract.load_columns(spec, &is_read, &mut strings, &Memory::unlimited())?);
    }
    let texts = strings.freeze()?;
    let mut db = Database::new();
    for loader in loaders {
        db.insert(loader.finish(&texts)?);
    }
    let engine = Engine::new(&db)?;
    let table = engine.query("answer", sql)?;
    let cells =
        (0..table.spec().columns.len()).map(|column| table.cell(0, column).as_f64().unwrap_or(f64::NAN));
    let row: Vec<String> = cells.map(python_like).collect();
    let by = if engine.kernel_lines().is_empty() { "SQLite" } else { "kernel" };
    Ok((row.join(" "), by.to_owned()))
}

/// A number as Python writes it with `.6e`.
fn python_like(n: f64) -> String {
    let text = format!("{n:.6e}");
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let power: i32 = power.parse().unwrap_or(0);
    format!("{digits}e{}{:02}", if power < 0 { '-' } else { '+' }, power.abs())
}
