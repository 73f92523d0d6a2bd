//! The quality of a trace, in words.

use etwhy_export::{sanitize, text, thousands};
use etwhy_table::Database;
use std::io::Write;

/// One line per anomaly that is more than a fact, worst first.
pub fn ledger_lines(out: &mut impl Write, db: &Database, width: usize) -> std::io::Result<()> {
    for line in etwhy_report::quality::ledger(db) {
        if line.severity == "info" {
            continue;
        }
        let head = format!("{:<12} ", line.severity);
        let body = format!("{} x {}: {}", thousands(line.count.into()), line.name, line.meaning);
        for line in text::hanging(&head, "             ", &sanitize(&body), width) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}
