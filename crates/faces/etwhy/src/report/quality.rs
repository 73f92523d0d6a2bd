//! The quality of a trace, in words.

use etwhy_base::units::thousands;
use etwhy_doc::{Doc, Line};
use etwhy_table::Database;
use etwhy_trace::catalog::{event_type::EventTypeRow, ledger::LedgerRow};

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
    db.read_or_empty::<LedgerRow>()
        .iter()
        .map(|row| Anomaly {
            name: row.name().to_owned(),
            severity: row.severity().to_owned(),
            stage: row.stage().to_owned(),
            count: row.count(),
            meaning: row.meaning().to_owned(),
            first: row.first().unwrap_or("").to_owned(),
        })
        .collect()
}

/// Events of the trace, and the bytes of their records.
pub fn events(db: &Database) -> (u64, u64) {
    let number = |n| u64::try_from(n).unwrap_or(0);
    db.read_or_empty::<EventTypeRow>().iter().fold((0u64, 0u64), |(count, bytes), row| {
        (count.saturating_add(number(row.count())), bytes.saturating_add(number(row.bytes())))
    })
}
