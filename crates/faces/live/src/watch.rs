//! Asks a window for what it shows: bill, losses, findings.

use crate::error::Result;
use crate::follower::{Follower, Window};
use crate::history::History;
use crate::one_process::{self, OneProcess};
use etwhy_analysis::{closure, derive};
use etwhy_etl::{Ledger, Severity as Loss};
use etwhy_report::bill::{self, BillRow};
use etwhy_rules::{Outcome, Rule, evaluate_all};
use etwhy_sql::Engine;
use etwhy_table::{Database, Memory};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// What to ask of each window.
pub struct Watch {
    rules: Vec<Rule>,
    tables: BTreeSet<String>,
    process: Option<String>,
    memory: Memory,
    history: History,
}

/// A loss or doubt that the ledger of a window names.
#[derive(Clone, Debug)]
pub struct Doubt {
    /// Its name in the ledger.
    pub name: &'static str,
    /// warning, data_loss or error.
    pub severity: &'static str,
    /// How often.
    pub count: u64,
    /// What it means.
    pub meaning: &'static str,
}

/// What a window shows.
pub struct Look {
    /// The window.
    pub window: Window,
    /// Its tables.
    pub db: Database,
    /// Events in it.
    pub events: u64,
    /// Bytes of their records.
    pub bytes: u64,
    /// Busy share of the processors in percent; `None` if nothing tells.
    pub busy_percent: Option<f64>,
    /// What the findings say of it.
    pub outcomes: Vec<Outcome>,
    /// Who used the processors, by kind.
    pub bill: Vec<BillRow>,
    /// What was lost or is doubtful.
    pub doubts: Vec<Doubt>,
    /// Buffers that came late, and by how much the worst, in nanoseconds.
    pub late: (u64, i64),
    /// One process, if one is watched.
    pub process: Option<OneProcess>,
    /// How long the evaluation took.
    pub cost: Duration,
}

/// What says no more of a file than that it is still being written.
const STILL_WRITTEN: [&str; 2] = ["file_not_finalised", "fewer_buffers_than_written"];
/// Tables that are read beside those of the findings.
const OWN: [&str; 8] = ["trace", "machine", "bill", "event_type", "process", "unobserved", "ledger", "cpu"];

impl Watch {
    /// Asks `rules`, which read `tables`; with `process`, also what that process (name or id) does.
    pub fn new(rules: Vec<Rule>, tables: BTreeSet<String>, process: Option<String>, memory: Memory) -> Watch {
        let mut wanted = tables;
        wanted.extend(OWN.map(str::to_owned));
        if process.is_some() {
            wanted.extend(one_process::TABLES.map(str::to_owned));
        }
        Watch { rules, tables: closure(&wanted), process, memory, history: History::default() }
    }

    /// Has these tables made too.
    pub fn also(&mut self, tables: impl Iterator<Item = &'static str>) {
        self.tables.extend(tables.map(str::to_owned));
    }

    /// Whether a finding of this name is asked.
    pub fn asks(&self, id: &str) -> bool {
        self.rules.iter().any(|rule| rule.id == id)
    }

    /// Findings as they came and went.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Evaluates the window that can be asked now; `None` if nothing has come yet.
    ///
    /// # Errors
    /// Those of the tables and of the SQL engine.
    pub fn look(&mut self, follower: &mut Follower) -> Result<Option<Look>> {
        let begin = Instant::now();
        let Some(window) = follower.advance()? else { return Ok(None) };
        let output = follower.tables(&window, &self.tables, &self.memory)?;
        let (mut db, stats) = (output.db, output.stats);
        derive(&mut db, Some(&self.tables), &self.memory, 1)?;
        let outcomes = evaluate_all(&db, &self.rules, 1)?;
        self.history.note(&outcomes, window.end_unix_ns());
        let process = match &self.process {
            Some(who) => Some(one_process::ask(&Engine::new(&db)?, who, &outcomes)?),
            None => None,
        };
        let bill = bill::read(&db);
        let idle =
            bill.iter().filter(|row| row.kind == "process" && row.is_idle).find_map(|row| row.share_percent);
        Ok(Some(Look {
            window,
            events: stats.records,
            bytes: stats.bytes,
            busy_percent: idle.map(|idle| (100.0 - idle).max(0.0)),
            outcomes,
            bill,
            doubts: doubts(&output.ledger),
            late: follower.lateness(),
            process,
            cost: begin.elapsed(),
            db,
        }))
    }
}

fn doubts(ledger: &Ledger) -> Vec<Doubt> {
    let mut all: Vec<_> = ledger
        .entries()
        .filter(|entry| entry.anomaly.severity > Loss::Info && !STILL_WRITTEN.contains(&entry.anomaly.name))
        .collect();
    all.sort_by(|a, b| b.anomaly.severity.cmp(&a.anomaly.severity).then(a.anomaly.name.cmp(b.anomaly.name)));
    let doubt = |entry: &&etwhy_etl::ledger::Entry| Doubt {
        name: entry.anomaly.name,
        severity: entry.anomaly.severity.name(),
        count: entry.count,
        meaning: entry.anomaly.meaning,
    };
    all.iter().map(doubt).collect()
}

impl Window {
    /// Its end, nanoseconds since 1970 (UTC).
    pub fn end_unix_ns(&self) -> i64 {
        self.start_unix_ns.saturating_add(self.to_ns)
    }

    /// Its begin, nanoseconds since 1970 (UTC).
    pub fn begin_unix_ns(&self) -> i64 {
        self.start_unix_ns.saturating_add(self.from_ns)
    }

    /// Its length in nanoseconds.
    pub fn length_ns(&self) -> i64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}
