//! SQL over tables of ten million rows, against a plain sum over one column.

use etwhy_base::rng::Rng;
use etwhy_sql::{Engine, views};
use etwhy_table::{AdHocBuilder, Database, Memory, TableBuilder, TableSpec, Value};
use etwhy_trace::catalog::cswitch::CSWITCH;
use etwhy_trace::catalog::sample::{SAMPLE, SampleRow};
use std::time::Instant;

/// Questions that people ask ad hoc. Each looks at every row.
const QUERIES: &[(&str, &str)] = &[
    ("count and sum", "SELECT count(*) AS n, sum(weight_ns) AS ns FROM sample"),
    ("two conditions", "SELECT count(*) AS n FROM sample WHERE cpu = 3 AND weight_ns > 500000"),
    (
        "a tenth of the time",
        "SELECT count(*) AS n FROM sample WHERE ts_ns BETWEEN 400000000000 AND 500000000000",
    ),
    ("GROUP BY 64 processors", "SELECT cpu, count(*) AS n, sum(weight_ns) AS ns FROM sample GROUP BY cpu"),
    (
        "GROUP BY 4,000 stacks",
        "SELECT stack_id, sum(weight_ns) AS ns FROM sample GROUP BY stack_id ORDER BY ns DESC",
    ),
    (
        "GROUP BY process and stack",
        "SELECT upid, stack_id, count(*) AS n, sum(weight_ns) AS ns FROM sample GROUP BY upid, stack_id",
    ),
    (
        "GROUP BY text",
        "SELECT old_wait_reason, count(*) AS n, sum(wait_ns) AS ns FROM cswitch GROUP BY old_wait_reason",
    ),
    ("DISTINCT", "SELECT DISTINCT utid FROM sample"),
    (
        "time buckets",
        "SELECT ts_ns / 1000000000 AS s, sum(weight_ns) AS ns FROM sample GROUP BY ts_ns / 1000000000",
    ),
    (
        "join with names",
        "SELECT p.name AS name, sum(s.weight_ns) AS ns FROM sample s JOIN process p ON p.upid = s.upid GROUP BY p.name",
    ),
];

/// Runs all queries and all views.
pub fn run(rows: usize) -> anyhow::Result<()> {
    let db = database(rows)?;
    let engine = Engine::new(&db)?;
    let start = Instant::now();
    let sum: i64 = db.read::<SampleRow>()?.iter().map(|row| row.weight_ns()).sum();
    let plain = start.elapsed().as_secs_f64();
    println!("\nSQL over {rows} rows (a plain sum of one column: {:.3} s, {sum})", plain);
    println!("ad-hoc questions (target 5 s at 10 million rows)");
    for (name, sql) in QUERIES {
        let start = Instant::now();
        let result = engine.query("result", sql)?;
        let took = start.elapsed().as_secs_f64();
        println!("  {took:7.3} s  {:7.1} x a plain sum  {name} ({} rows)", took / plain, result.rows());
    }
    println!("views (target 1 s)");
    for view in views::all() {
        let start = Instant::now();
        let result = engine.query(view.name, &format!("SELECT * FROM {}", view.name))?;
        let took = start.elapsed().as_secs_f64();
        println!("  {took:7.3} s  {} ({} rows)", view.name, result.rows());
    }
    Ok(())
}

/// Tables with made-up rows: `sample` and `cswitch` of the wanted size, the others empty.
fn database(rows: usize) -> anyhow::Result<Database> {
    let memory = Memory::default();
    let strings = etwhy_table::Strings::new();
    let mut samples = TableBuilder::<SampleRow>::new(&memory);
    let mut rng = Rng::new(12345);
    let mut roll = |n: u64| rng.below(n);
    for row in 0..rows {
        samples.push(SampleRow {
            ts_ns: row as i64 * 100_000,
            cpu: roll(64) as i32,
            upid: Some(roll(200) as i32),
            utid: roll(3000) as i32,
            ip: 0x7ff6_0000_0000 + roll(1 << 20) as i64,
            stack_id: Some(roll(4000) as i32),
            weight_ns: 1_000_000 - roll(1000) as i64,
            in_dpc: false,
            in_isr: false,
            priority: 8,
        });
    }
    let texts = strings.freeze()?;
    let mut db = Database::new();
    let traced = etwhy_trace::catalog::ALL.iter().flat_map(|a| a.tables.iter().copied());
    let specs: Vec<&TableSpec> =
        traced.chain(etwhy_analysis::derived::ALL.iter().flat_map(|d| d.tables.iter().copied())).collect();
    for spec in specs {
        let mut builder = AdHocBuilder::new(spec.clone(), &memory);
        if spec.name == "process" {
            for upid in 0..200i64 {
                let name = format!("process{upid}.exe");
                let cells: Vec<Value<'_>> = spec
                    .columns
                    .iter()
                    .map(|c| match c.name.as_ref() {
                        "upid" | "pid" => Value::I64(upid),
                        "name" => Value::Text(&name),
                        _ => Value::Null,
                    })
                    .collect();
                builder.push(&cells)?;
            }
        }
        if *spec == CSWITCH {
            for row in 0..rows as i64 {
                let reason = format!("WrReason{}", roll(37));
                let cells: Vec<Value<'_>> = spec
                    .columns
                    .iter()
                    .map(|c| match c.name.as_ref() {
                        "ts_ns" => Value::I64(row * 100_000),
                        "old_wait_reason" => Value::Text(&reason),
                        "wait_ns" => Value::I64(1000),
                        _ => Value::Null,
                    })
                    .collect();
                builder.push(&cells)?;
            }
        }
        if *spec != SAMPLE {
            db.insert(builder.finish()?);
        }
    }
    db.insert(samples.finish(&texts)?);
    Ok(db)
}
