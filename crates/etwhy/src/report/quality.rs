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

/// A row of table `ledger`.
#[derive(Clone, Debug)]
pub struct Anomaly {
    /// Its name.
    pub name: String,
    /// info, warning, data_loss or error.
    pub severity: String,
    /// Where it was noticed.
    pub stage: String,
    /// How often.
    pub count: i64,
    /// What it means.
    pub meaning: String,
    /// Where it happened first; empty if nobody knows.
    pub first: String,
}

/// The rows of table `ledger`, by name.
pub fn ledger(db: &Database) -> Vec<Anomaly> {
    let Some(table) = db.get("ledger") else { return Vec::new() };
    let text = |row, column| table.text(row, column).unwrap_or("").to_owned();
    (0..table.rows() as u32)
        .map(|row| Anomaly {
            name: text(row, "name"),
            severity: text(row, "severity"),
            stage: text(row, "stage"),
            count: table.i64(row, "count").unwrap_or(0),
            meaning: text(row, "meaning"),
            first: text(row, "first"),
        })
        .collect()
}

/// (severity, count, name, meaning) of the ledger, worst first. The meaning ends with the place of the first one,
/// where it is known.
pub fn anomalies(db: &Database) -> Vec<(String, i64, String, String)> {
    let mut rows: Vec<(String, i64, String, String)> = ledger(db)
        .into_iter()
        .map(|a| {
            let meaning = match a.first.as_str() {
                "" => a.meaning,
                first => format!("{} First: {first}.", a.meaning),
            };
            (a.severity, a.count, a.name, meaning)
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

/// Events of the trace, and the bytes of their records.
pub fn events(db: &Database) -> (u64, u64) {
    let Some(types) = db.get("event_type") else { return (0, 0) };
    let sum = |column: &str| {
        let rows = 0..types.rows() as u32;
        let numbers = rows.filter_map(|row| u64::try_from(types.i64(row, column)?).ok());
        numbers.fold(0u64, u64::saturating_add)
    };
    (sum("count"), sum("bytes"))
}
