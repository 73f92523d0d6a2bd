//! Event logs that are read beside a trace, on its time.

use super::logs::{self, LogReading, Logs};
use crate::exit::Exit;
use etwhy_analysis::{closure, derive};
use etwhy_base::units::thousands;
use etwhy_evtx::tables::{LogFileRow, LogRecordRow};
use etwhy_rules::{Answer, Hit, Outcome, Subject};
use etwhy_sql::Cell;
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
    machines: Machines,
}

/// Whose logs these are.
struct Machines {
    /// Computer of the trace, if it names it.
    traced: Option<String>,
    /// There are records of that computer.
    is_logged: bool,
    /// Other computers that records name.
    others: BTreeSet<String>,
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
    derive(db, Some(&closed), memory, 1)?;
    let machines = Machines::of(db);
    Ok(Beside { notes: notes(db, &machines), exit: Logs::exit_of(&opened.ledger)?, machines })
}

impl Beside {
    /// Findings of the logs bear what makes them doubtful for the trace; what happened to another computer stands behind what the trace
    /// tells of this one.
    pub fn caution(&self, outcomes: &mut [Outcome]) {
        for outcome in outcomes.iter_mut().filter(|o| o.over == Subject::Logs && o.answer == Answer::Found) {
            outcome.caveats.extend(self.machines.caveat(outcome));
            outcome.caveats.extend_from_slice(&self.notes);
        }
        outcomes.sort_by_key(|outcome| match outcome.answer {
            Answer::Found => u8::from(self.machines.are_others(outcome)),
            Answer::CannotTell => 2,
            Answer::NotFound => 3,
        });
    }
}

impl Machines {
    fn of(db: &Database) -> Machines {
        let trace = db.read_or_empty::<TraceRow>();
        let (records, logs) = (db.read_or_empty::<LogRecordRow>(), db.read_or_empty::<LogFileRow>());
        let mut all: BTreeSet<&str> = logs.iter().filter_map(|log| log.computer()).collect();
        let mut last = "";
        for record in &records {
            if record.computer() != last {
                last = record.computer();
                all.insert(last);
            }
        }
        let traced = trace.iter().find_map(|trace| trace.computer()).map(str::to_owned);
        let is_traced = |name: &&str| traced.as_deref().is_some_and(|traced| host(traced) == host(name));
        let is_logged = all.iter().any(is_traced);
        let others = all.iter().filter(|name| !name.is_empty() && !is_traced(name));
        let others = others.map(|name| (*name).to_owned()).collect();
        Machines { traced, is_logged, others }
    }

    /// True for a finding over logs whose culprits are all of other computers than the trace.
    fn are_others(&self, outcome: &Outcome) -> bool {
        let computer = |hit: &Hit| {
            let columns = ["computer", "machine"].iter();
            let named = columns.filter_map(|column| hit.values.get(*column)).find_map(Cell::text);
            self.is_of_another(named.or(Some(hit.culprit.as_str())))
        };
        outcome.over == Subject::Logs && outcome.hits.iter().all(computer)
    }

    /// True for what happened to another computer than that of the trace, by the computer that it names.
    fn is_of_another(&self, named: Option<&str>) -> bool {
        let Some(traced) = &self.traced else { return false };
        let is = |name: &str| named.is_some_and(|named| host(named) == host(name));
        // What names none that is known is of all logs together.
        !is(traced) && (self.others.iter().any(|other| is(other)) || !self.is_logged)
    }

    fn caveat(&self, outcome: &Outcome) -> Option<String> {
        let traced = self.traced.as_deref().filter(|_| self.are_others(outcome))?;
        let others: Vec<&str> = self.others.iter().map(String::as_str).take(3).collect();
        let more = if self.others.len() > 3 { ", …" } else { "" };
        Some(format!(
            "This is of another computer ({}{more}) than the trace ({traced}) and does not say why that one was slow.",
            others.join(", ")
        ))
    }
}

/// A computer's name without its domain.
fn host(name: &str) -> String {
    name.split('.').next().unwrap_or(name).to_lowercase()
}

fn notes(db: &Database, machines: &Machines) -> Vec<String> {
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
    if machines.traced.is_none() && !machines.others.is_empty() {
        let some: Vec<&str> = machines.others.iter().map(String::as_str).take(3).collect();
        notes.push(format!(
            "The trace does not name its computer: whether it is that of the logs ({}) cannot be determined.",
            some.join(", ")
        ));
    }
    if let Some(traced) = machines.traced.as_deref() {
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

    #[test]
    fn whose_a_finding_is_is_known_by_the_computer_that_it_names() {
        let others = BTreeSet::from(["DC1.example.org".to_owned(), "OLD-NAME".to_owned()]);
        let machines = Machines { traced: Some("WS-1".to_owned()), is_logged: true, others };
        for (named, is_others) in [
            (Some("dc1"), true),
            (Some("old-name"), true),
            (Some("ws-1.example.org"), false),
            // Files and devices are of no computer; there are records of this one.
            (Some("Security.evtx"), false),
            (None, false),
        ] {
            assert_eq!(machines.is_of_another(named), is_others, "{named:?}");
        }
        let foreign = Machines { is_logged: false, ..machines };
        assert!(foreign.is_of_another(Some("Security.evtx")) && foreign.is_of_another(None));
        // Whose trace it is is not known.
        assert!(!Machines { traced: None, ..foreign }.is_of_another(Some("DC1")));
    }
}
