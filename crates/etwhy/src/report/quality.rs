//! The quality of a trace, in words.

use etwhy_export::{sanitize, text, thousands};
use etwhy_table::Database;
use std::io::Write;

/// One line per anomaly that is more than a fact, worst first.
pub fn ledger_lines(out: &mut impl Write, db: &Database, width: usize) -> std::io::Result<()> {
    for (severity, count, name, meaning) in anomalies(db) {
        if severity == "info" {
            continue;
        }
        let head = format!("{severity:<12} ");
        let body = format!("{} x {name}: {meaning}", thousands(count.into()));
        for line in text::hanging(&head, "             ", &sanitize(&body), width) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

/// (severity, count, name, meaning) of the ledger, worst first. The meaning ends with the place of the first one,
/// where it is known.
pub fn anomalies(db: &Database) -> Vec<(String, i64, String, String)> {
    let Some(table) = db.get("ledger") else { return Vec::new() };
    let text = |row, column| table.text(row, column).unwrap_or("").to_owned();
    let mut rows: Vec<(String, i64, String, String)> = (0..table.rows() as u32)
        .map(|row| {
            let count = table.i64(row, "count").unwrap_or(0);
            let (mut meaning, first) = (text(row, "meaning"), text(row, "first"));
            if !first.is_empty() {
                meaning = format!("{meaning} First: {first}.");
            }
            (text(row, "severity"), count, text(row, "name"), meaning)
        })
        .collect();
    let rank = |severity: &str| match severity {
        "error" => 0,
        "data_loss" => 1,
        "warning" => 2,
        _ => 3,
    };
    rows.sort_by(|a, b| rank(&a.0).cmp(&rank(&b.0)).then_with(|| a.2.cmp(&b.2)));
    rows
}
