//! Event logs that are read beside a trace, on its time.

use super::logs::{self, LogReading, Logs};
use crate::exit::Exit;
use etwhy_analysis::{closure, derive};
use etwhy_base::units::thousands;
use etwhy_evtx::tables::{LogFileRow, LogRecordRow};
use etwhy_rules::{Answer, Outcome, Subject};
use etwhy_table::{Database, Memory};
use etwhy_trace::catalog::trace::TraceRow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// What adding logs to a trace brought.
pub struct Beside {
    /// What a reader of the report has to know: how many records are of the trace's time, and logs of other computers.
    pub notes: Vec<String>,
    /// The exit code for what was wrong with the logs.
    pub exit: Exit,
}

/// Adds the tables of logs to those of a trace: their `ts_ns` is zero where the trace's is. Records outside of the trace stay.
///
/// # Errors
/// If no log can be read, and those of the table builder.
pub fn add(
    paths: &[PathBuf],
    reading: &LogReading,
    db: &mut Database,
    tables: &BTreeSet<String>,
    memory: &Memory,
) -> anyhow::Result<Beside> {
    let mut opened = logs::open(paths, reading)?;
    let closed = closure(tables);
    let zero = db.read_or_empty::<TraceRow>().first().map(|trace| trace.start_unix_ns());
    opened.add_to(db, true, zero)?;
    // Only what is made from logs: what the trace's tables make is there already, or was not asked for.
    derive(db, Some(&closed), memory)?;
    Ok(Beside { notes: notes(db), exit: Logs::exit_of(&opened.ledger)? })
}

impl Beside {
    /// Findings of the logs bear what makes them doubtful for the trace.
    pub fn caution(&self, outcomes: &mut [Outcome]) {
        for outcome in outcomes.iter_mut().filter(|o| o.over == Subject::Logs && o.answer == Answer::Found) {
            outcome.caveats.extend_from_slice(&self.notes);
        }
    }
}

/// A computer's name without its domain.
fn host(name: &str) -> String {
    name.split('.').next().unwrap_or(name).to_lowercase()
}

fn notes(db: &Database) -> Vec<String> {
    let mut notes = Vec::new();
    let (trace, records) = (db.read_or_empty::<TraceRow>(), db.read_or_empty::<LogRecordRow>());
    let first = trace.iter().map(|row| row.first_ns()).min();
    let last = trace.iter().map(|row| row.last_ns()).max();
    let within = |ts: i64| first.is_some_and(|f| ts >= f) && last.is_some_and(|l| ts <= l);
    let inside = records.iter().filter(|row| within(row.ts_ns())).count();
    let count = |n: usize| thousands(n as i128);
    notes.push(format!(
        "Event logs: {} of {} records are of the time of the trace (log_record.ts_ns is on its clock).",
        count(inside),
        count(records.len())
    ));
    if let Some(traced) = trace.first().and_then(|trace| trace.computer()) {
        // A folder of a machine has hundreds of logs: one line for each computer.
        let mut others: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for row in &db.read_or_empty::<LogFileRow>() {
            let Some(computer) = row.computer().filter(|c| host(c) != host(traced)) else { continue };
            others.entry(computer).or_default().push(row.file());
        }
        notes.extend(others.iter().map(|(computer, files)| {
            let first = files.first().copied().unwrap_or_default();
            match files.len() {
                1 => format!("{first} is of {computer}, the trace of {traced}."),
                n => format!("{} logs ({first} first) are of {computer}, the trace of {traced}.", count(n)),
            }
        }));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_compared_without_domains() {
        assert_eq!(host("SRV1.example.org"), host("srv1"));
        assert_ne!(host("SRV1"), host("SRV2"));
    }
}
