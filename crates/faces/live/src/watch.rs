//! Asks a window for what it shows: bill, losses, findings.

use crate::error::{LiveError, Result};
use crate::follower::{Follower, Window};
use crate::history::History;
use crate::one_process::{self, OneProcess};
use etwhy_analysis::{closure, derive};
use etwhy_etl::{Ledger, Severity as Loss};
use etwhy_report::bill::{self, BillRow};
use etwhy_rules::{Outcome, Rule, evaluate_all};
use etwhy_sql::Engine;
use etwhy_table::{Database, Memory};
use etwhy_trace::{Output, Symbols};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Which part of a trace is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// The last seconds of the window: what they show is seen soon.
    Last,
    /// The whole window.
    Whole,
}

impl Range {
    /// As lines name it.
    pub fn name(self) -> &'static str {
        match self {
            Range::Last => "last",
            Range::Whole => "window",
        }
    }
}

/// What to ask of each window.
pub struct Watch {
    whole: Arc<Questions>,
    last: Arc<Questions>,
    history: History,
    latest: [Option<Summary>; 2],
    beside: Option<Beside>,
}

/// What is asked of a range.
#[derive(Clone)]
struct Questions {
    range: Range,
    rules: Vec<Rule>,
    tables: BTreeSet<String>,
    process: Option<String>,
    memory: Memory,
}

/// A look at the whole window on a thread of its own, and the symbols that it uses.
type Beside = JoinHandle<(Result<Look>, Symbols)>;

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
    /// What it comes to.
    pub sum: Summary,
    /// Its tables.
    pub db: Database,
    /// What the findings say of it.
    pub outcomes: Vec<Outcome>,
}

/// What a window comes to.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Which part was looked at.
    pub range: Range,
    /// That part.
    pub window: Window,
    /// The whole window at that time.
    pub whole: Window,
    /// Events in it.
    pub events: u64,
    /// Bytes of their records.
    pub bytes: u64,
    /// Busy share of the processors in percent; `None` if nothing tells.
    pub busy_percent: Option<f64>,
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

/// How much of the window its last seconds are, at most and at least, in nanoseconds. Many findings rest on a second of cost or more.
const LAST_NS: RangeInclusive<i64> = 2_000_000_000..=3_000_000_000;
/// The last seconds are fewer if it takes longer to read them.
const LAST_COST: Duration = Duration::from_millis(125);

impl Watch {
    /// Asks `rules`, which read `tables`; with `process`, also what that process (name or id) does.
    pub fn new(rules: Vec<Rule>, tables: BTreeSet<String>, process: Option<String>, memory: Memory) -> Watch {
        let mut wanted = tables;
        wanted.extend(OWN.map(str::to_owned));
        if process.is_some() {
            wanted.extend(one_process::TABLES.map(str::to_owned));
        }
        let whole = Questions { range: Range::Whole, rules, tables: closure(&wanted), process, memory };
        let rules = whole.rules.iter().filter(|rule| rule.is_of_seconds()).cloned().collect();
        let last = Questions { range: Range::Last, rules, ..whole.clone() };
        Watch {
            whole: Arc::new(whole),
            last: Arc::new(last),
            history: History::default(),
            latest: [None, None],
            beside: None,
        }
    }

    /// Has these tables made too.
    pub fn also(&mut self, tables: impl Iterator<Item = &'static str>) {
        for table in tables {
            Arc::make_mut(&mut self.whole).tables.insert(table.to_owned());
            Arc::make_mut(&mut self.last).tables.insert(table.to_owned());
        }
    }

    /// Has these tables made too, of the whole window.
    pub fn also_of_whole(&mut self, tables: impl Iterator<Item = String>) {
        let whole = Arc::make_mut(&mut self.whole);
        whole.tables.extend(tables);
        whole.tables = closure(&whole.tables);
    }

    /// Whether a finding of this name is asked.
    pub fn asks(&self, id: &str) -> bool {
        self.whole.rules.iter().any(|rule| rule.id == id)
    }

    /// Findings as they came and went.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// What the latest look at a range came to.
    pub fn latest(&self, range: Range) -> Option<&Summary> {
        self.latest.iter().flatten().find(|summary| summary.range == range)
    }

    /// End of the newest window that was looked at, nanoseconds since 1970 (UTC).
    pub fn now_unix_ns(&self) -> i64 {
        let ends = self.latest.iter().flatten().map(|summary| summary.window.end_unix_ns());
        ends.max().unwrap_or(0)
    }

    /// Evaluates the window that can be asked now; `None` if nothing has come yet.
    ///
    /// # Errors
    /// Those of the tables and of the SQL engine.
    pub fn look(&mut self, follower: &mut Follower) -> Result<Option<Look>> {
        let begin = Instant::now();
        let Some(window) = follower.advance()? else { return Ok(None) };
        let output = follower.tables(&window, &self.whole.tables, &self.whole.memory)?;
        follower.renew_last();
        let look = self.whole.ask(output, [window, window], follower.lateness(), begin)?;
        Ok(Some(self.note(look)))
    }

    /// Evaluates the last seconds of the window; `None` if there is not more than those.
    ///
    /// # Errors
    /// Those of the tables and of the SQL engine.
    pub fn look_at_last(&mut self, follower: &mut Follower) -> Result<Option<Look>> {
        let begin = Instant::now();
        let Some(whole) = follower.advance()? else { return Ok(None) };
        let Some(window) = follower.last(&whole, self.last_ns()) else { return Ok(None) };
        let output = follower.tables(&window, &self.last.tables, &self.last.memory)?;
        let look = self.last.ask(output, [window, whole], follower.lateness(), begin)?;
        Ok(Some(self.note(look)))
    }

    /// How much the last seconds are: as many as can be read soon.
    fn last_ns(&self) -> i64 {
        let (least, most) = LAST_NS.into_inner();
        self.latest(Range::Last).map_or(most, |last| {
            let fitting = LAST_COST.as_secs_f64() / last.cost.as_secs_f64().max(1e-9);
            ((last.window.length_ns() as f64 * fitting) as i64).clamp(least, most)
        })
    }

    /// Begins to evaluate the whole window on a thread of its own, while more comes; gives the symbols back if nothing has come yet.
    ///
    /// # Errors
    /// Those of the follower, and if no thread can be started.
    pub(crate) fn begin(&mut self, follower: &mut Follower, mut symbols: Symbols) -> Result<Option<Symbols>> {
        let begin = Instant::now();
        let Some(window) = follower.advance()? else { return Ok(Some(symbols)) };
        let (part, late, questions) = (follower.part(&window), follower.lateness(), Arc::clone(&self.whole));
        follower.renew_last();
        let work = move || {
            let output = part.tables(&mut symbols, &questions.tables, &questions.memory);
            drop(part);
            (output.and_then(|output| questions.ask(output, [window, window], late, begin)), symbols)
        };
        let thread = std::thread::Builder::new().name("whole window".to_owned()).spawn(work);
        self.beside = Some(thread.map_err(LiveError::Thread)?);
        Ok(None)
    }

    /// The look that was begun, if it is over, or once it is if `waits`; and the symbols that it used.
    pub(crate) fn finished(&mut self, waits: bool) -> Option<(Result<Look>, Symbols)> {
        let beside = self.beside.take_if(|beside| waits || beside.is_finished())?;
        let (look, symbols) = beside.join().unwrap_or_else(|panic| resume_unwind(panic));
        Some((look.map(|look| self.note(look)), symbols))
    }

    fn note(&mut self, look: Look) -> Look {
        self.history.note(&look.outcomes, look.sum.range, &look.sum.window);
        let at = usize::from(look.sum.range == Range::Whole);
        if let Some(latest) = self.latest.get_mut(at) {
            *latest = Some(look.sum.clone());
        }
        look
    }
}

impl Questions {
    /// What tables show; `windows`: the part that they are of, and the whole window then.
    fn ask(&self, output: Output, windows: [Window; 2], late: (u64, i64), begin: Instant) -> Result<Look> {
        let (mut db, stats, [window, whole]) = (output.db, output.stats, windows);
        derive(&mut db, Some(&self.tables), &self.memory, 1)?;
        let outcomes = evaluate_all(&db, &self.rules, 1)?;
        let process = match &self.process {
            Some(who) => Some(one_process::ask(&Engine::new(&db)?, who, &outcomes)?),
            None => None,
        };
        let bill = bill::read(&db);
        let idle =
            bill.iter().filter(|row| row.kind == "process" && row.is_idle).find_map(|row| row.share_percent);
        let sum = Summary {
            range: self.range,
            window,
            whole,
            events: stats.records,
            bytes: stats.bytes,
            busy_percent: idle.map(|idle| (100.0 - idle).max(0.0)),
            bill,
            doubts: doubts(&output.ledger),
            late,
            process,
            cost: begin.elapsed(),
        };
        Ok(Look { sum, db, outcomes })
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
