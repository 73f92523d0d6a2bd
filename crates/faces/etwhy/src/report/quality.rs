//! The quality of a trace, in words.

use etwhy_base::units::thousands;
use etwhy_doc::{Doc, Line};
use etwhy_table::Database;

/// Adds a note per anomaly that is more than a fact, worst first.
pub fn add_ledger(doc: &mut Doc, db: &Database) {
    for line in etwhy_report::quality::ledger(db).into_iter().filter(|line| line.severity != "info") {
        let text = format!("{} x {}: {}", thousands(line.count.into()), line.name, line.meaning);
        doc.note(Line::mark(line.severity), text);
    }
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
