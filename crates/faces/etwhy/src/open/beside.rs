//! Event logs that are read beside a trace, on its time.

use super::logs::{self, LogReading, Logs};
use crate::exit::Exit;
use etwhy_analysis::{closure, derive};
use etwhy_base::units::thousands;
use etwhy_rules::{Answer, Outcome, Subject};
use etwhy_table::{Database, Memory, Table};
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
    let zero = db.get("trace").and_then(|t| t.i64(0, "start_unix_ns"));
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
    let trace = db.get("trace");
    let (records, inside) = db.get("log_record").map_or((0, 0), |t| {
        let time = |name: &str| {
            let rows = 0..trace.map_or(0, Table::rows) as u32;
            rows.filter_map(|row| trace.and_then(|t| t.i64(row, name))).collect::<Vec<i64>>()
        };
        let (first, last) = (time("first_ns").into_iter().min(), time("last_ns").into_iter().max());
        let within = |ts: i64| first.is_some_and(|f| ts >= f) && last.is_some_and(|l| ts <= l);
        let inside = (0..t.rows() as u32).filter(|row| t.i64(*row, "ts_ns").is_some_and(within)).count();
        (t.rows(), inside)
    });
    let count = |n: usize| thousands(n as i128);
    notes.push(format!(
        "Event logs: {} of {} records are of the time of the trace (log_record.ts_ns is on its clock).",
        count(inside),
        count(records)
    ));
    let traced = trace.and_then(|t| t.text(0, "computer"));
    if let (Some(traced), Some(files)) = (traced, db.get("log_file")) {
        // A folder of a machine has hundreds of logs: one line for each computer.
        let mut others: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for row in 0..files.rows() as u32 {
            let Some(computer) = files.text(row, "computer").filter(|c| host(c) != host(traced)) else {
                continue;
            };
            others.entry(computer).or_default().push(files.text(row, "file").unwrap_or(""));
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
