//! What `dump` writes as Parquet, read by DuckDB, is what it writes as JSON lines.
//!
//! `ETWHY_PYTHON` names an interpreter that has DuckDB (`scripts/test` makes one).

use crate::{ETWHY, Json as _, Str as _};
use etwhy_testkit::{script, told};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const TABLES: [&str; 6] = ["process", "sample", "stack_frame", "disk_io", "clr_gc", "event"];

/// Rows of a query, or `None` when there is no interpreter to ask.
fn duckdb(file: &Path, query: &str) -> Option<Vec<Vec<Value>>> {
    let text = told(script("query_parquet.py")?.arg(file).arg(query));
    Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn dump(table: &str, file: &Path) {
    ETWHY.run(&["dump", table, "--demo", "-o", file.str()]);
}

#[test]
fn parquet_says_what_json_says() {
    let folder = tempfile::tempdir().unwrap();
    for table in TABLES {
        let parquet = folder.path().join(format!("{table}.parquet"));
        let lines = folder.path().join(format!("{table}.jsonl"));
        dump(table, &parquet);
        dump(table, &lines);
        let text = std::fs::read_to_string(&lines).unwrap();
        let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(rows.len() > 3, "{table}: {} rows", rows.len());
        let columns: Vec<&String> = rows[0].fields().keys().collect();
        let cells = |column: &str| -> Vec<Value> {
            rows.iter().map(|row| row[column].clone()).filter(|cell| !cell.is_null()).collect()
        };
        let measures: Vec<String> = columns.iter().map(|c| measure(c, &cells(c)).0).collect();
        let expected: Vec<Value> = columns.iter().map(|c| measure(c, &cells(c)).1).collect();
        let Some(answer) = duckdb(&parquet, &format!("select {} from $file", measures.join(", "))) else {
            return;
        };
        for ((column, expected), found) in columns.iter().zip(expected).zip(&answer[0]) {
            assert_eq!(*found, expected, "{table}.{column}");
        }
    }
}

/// All tables of an extract, in one question to DuckDB: what `dump` prints of them, counted and added up.
#[test]
fn an_extract_says_what_dump_says() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("demo");
    let etwhy = || Command::new(env!("CARGO_BIN_EXE_etwhy"));
    let status = etwhy().args(["extract", "--demo", "-q", "-o"]).arg(&place).status().unwrap();
    assert!(status.success());
    let manifest = std::fs::read(place.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let tables = manifest["tables"].list();
    assert!(tables.len() > 60, "{} tables", tables.len());
    let (mut queries, mut expected, mut sums) = (Vec::new(), Vec::new(), 0);
    for table in tables {
        let name = table["name"].str();
        let output = etwhy().args(["dump", name, "--format", "jsonl", "-q"]).arg(&place).output().unwrap();
        assert!(output.status.success(), "{name}");
        let text = String::from_utf8(output.stdout).unwrap();
        let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(table["rows"], rows.len(), "{name}");
        let (mut asked, mut answer) = (vec!["count(*)".to_owned()], vec![rows.len().to_string()]);
        for column in table["columns"].list() {
            let column = column["name"].str();
            let cells: Vec<Value> =
                rows.iter().map(|row| row[column].clone()).filter(|cell| !cell.is_null()).collect();
            let (sql, total) = measure(column, &cells);
            sums += usize::from(sql.contains("sum"));
            asked.push(sql);
            answer.push(total.str().to_owned());
        }
        let file = place.join(format!("{name}.parquet")).display().to_string().replace('\'', "''");
        queries.push(format!("select '{name}', {} from '{file}'", asked.join(" || ',' || ")));
        expected.push((name.to_owned(), answer.join(",")));
    }
    assert!(sums > 300, "{sums}");
    let Some(answers) = duckdb(&place, &queries.join(" union all ")) else { return };
    let mut found: Vec<(String, String)> = answers
        .iter()
        .map(|row| (row[0].str().to_owned(), row[1].as_str().unwrap_or("null").to_owned()))
        .collect();
    found.sort();
    expected.sort();
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len());
}

/// What is asked of a column, and what the answer must be: how many cells hold something, and the sum of numbers or characters.
fn measure(column: &str, cells: &[Value]) -> (String, Value) {
    let sum: i128 = cells.iter().filter_map(Value::as_i64).map(i128::from).sum();
    let characters: usize = cells.iter().filter_map(Value::as_str).map(|text| text.chars().count()).sum();
    let (sql, total) = if cells.iter().any(Value::is_f64) {
        // In thousandths, so that it does not matter in which order they are added.
        let thousandths = |cell: &Value| (cell.as_f64().unwrap_or(0.0) * 1000.0).round() as i128;
        let sum: i128 = cells.iter().map(thousandths).sum();
        (format!("sum(round(\"{column}\" * 1000)::hugeint)"), sum.to_string())
    } else if cells.iter().any(Value::is_i64) {
        (format!("sum(\"{column}\"::hugeint)"), sum.to_string())
    } else if cells.iter().any(Value::is_string) {
        (format!("sum(length(\"{column}\"))"), characters.to_string())
    } else {
        ("0".to_owned(), "0".to_owned())
    };
    (format!("count(\"{column}\") || ' ' || {sql}"), Value::from(format!("{} {total}", cells.len())))
}
