//! A trace that is being looked at: its tables, and what was computed of them for all who ask.

use crate::cache::Cache;
use crate::fault::{Cancel, Fault};
use crate::host::{Deferred, Loaded, SavePart, Within};
use etwhy_analysis::stacks::Frames;
use etwhy_analysis::states;
use etwhy_report::Report;
use etwhy_sql::{Engine, Limits};
use etwhy_table::{Database, Table};
use etwhy_trace::catalog::trace::TraceRow;
use foldhash::HashMap;
use std::any::Any;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Something that is computed once; others who want it wait.
type Slot = Arc<OnceLock<Arc<dyn Any + Send + Sync>>>;

/// A trace.
pub struct Trace {
    /// What people call it.
    pub name: String,
    /// Tables.
    pub db: Database,
    /// The verdict as a document.
    pub report: etwhy_report::Report,
    engines: Mutex<Vec<Engine>>,
    frames: OnceLock<Frames>,
    switches: OnceLock<states::Index>,
    cache: Cache,
    once: Mutex<HashMap<String, Slot>>,
    deferred: Mutex<Option<Deferred>>,
    /// The trace with them.
    completed: OnceLock<Arc<Trace>>,
    /// Their names and rows.
    deferred_rows: Vec<(String, usize)>,
    /// Counts the windows of a trace that is followed.
    window: u64,
    within: Option<Arc<Within>>,
    part: Option<Arc<SavePart>>,
    keep: Vec<Arc<dyn Any + Send + Sync>>,
}

/// First and last moment, processors: what every picture needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First event, ns.
    pub first_ns: i64,
    /// Last event, ns.
    pub last_ns: i64,
    /// Logical processors.
    pub cpus: i64,
}

impl Trace {
    /// A trace that was read.
    pub fn new(loaded: Loaded) -> Trace {
        let Loaded { name, db, report, keep, deferred, within, part } = loaded;
        let deferred_rows = deferred.as_ref().map_or_else(Vec::new, |deferred| deferred.tables.clone());
        let deferred = Mutex::new(deferred);
        let (within, part) = (within.map(Arc::from), part.map(Arc::from));
        Trace { deferred, deferred_rows, within, part, ..Trace::with(name, db, report, vec![keep.into()]) }
    }

    fn with(
        name: String,
        db: Database,
        report: etwhy_report::Report,
        keep: Vec<Arc<dyn Any + Send + Sync>>,
    ) -> Trace {
        Trace {
            name,
            db,
            report,
            engines: Mutex::default(),
            frames: OnceLock::new(),
            switches: OnceLock::new(),
            cache: Cache::default(),
            once: Mutex::default(),
            deferred: Mutex::default(),
            completed: OnceLock::new(),
            deferred_rows: Vec::new(),
            window: 1,
            within: None,
            part: None,
            keep,
        }
    }

    /// The window behind this one.
    pub(crate) fn after(self, before: &Trace) -> Trace {
        Trace { window: before.window.saturating_add(1), ..self }
    }

    /// Which window it is of a trace that is followed, from 1.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// Rows of a table, made or not.
    pub fn rows_of(&self, table: &str) -> usize {
        let deferred =
            || self.deferred_rows.iter().find(|(name, _)| name == table).map_or(0, |(_, rows)| *rows);
        self.db.get(table).map_or_else(deferred, Table::rows)
    }

    /// True if one of these words names a table that is still to be made.
    pub fn defers<'a>(&self, mut words: impl Iterator<Item = &'a str>) -> bool {
        let is_deferred =
            |word: &str| self.deferred_rows.iter().any(|(name, _)| name.eq_ignore_ascii_case(word));
        !self.deferred_rows.is_empty() && words.any(is_deferred)
    }

    /// The trace with all of its tables, made once: others who want them wait.
    ///
    /// # Errors
    /// That they cannot be made, and that nobody waits any more.
    pub fn complete(&self, cancel: &Cancel) -> Result<Arc<Trace>, Fault> {
        let mut deferred = self.deferred.lock().unwrap_or_else(PoisonError::into_inner);
        cancel.check()?;
        if let Some(completed) = self.completed.get() {
            return Ok(Arc::clone(completed));
        }
        let Some(Deferred { make, .. }) = &*deferred else {
            return Err(Fault::wrong("there is nothing to be made"));
        };
        let asks = cancel.clone();
        let made = make(Arc::new(move || asks.is_set()));
        cancel.check()?;
        let (more, keep) = made.map_err(Fault::Wrong)?;
        let mut db = self.db.clone();
        for table in more.tables().filter(|table| self.defers(std::iter::once(table.name()))) {
            db.insert(table.clone());
        }
        *deferred = None;
        let keep = self.keep.iter().cloned().chain([keep.into()]).collect();
        let completed = Trace::with(self.name.clone(), db, self.report.clone(), keep);
        let completed = Arc::new(Trace {
            window: self.window,
            within: self.within.clone(),
            part: self.part.clone(),
            ..completed
        });
        Ok(Arc::clone(self.completed.get_or_init(|| completed)))
    }

    /// The verdict of a range, as `etwhy why --from --to` gives it; the trace is read again for it.
    ///
    /// # Errors
    /// That it cannot be read, and that nobody waits any more.
    pub fn verdict_within(&self, range: [i64; 2], cancel: &Cancel) -> Result<Report, Fault> {
        let within = self.within.as_ref().ok_or_else(|| {
            Fault::wrong(
                "the verdict of a part needs the trace itself, and this is an extract or no longer there",
            )
        })?;
        let asks = cancel.clone();
        let report = within(range, Arc::new(move || asks.is_set()));
        cancel.check()?;
        report.map_err(Fault::Wrong)
    }

    /// A stretch as a trace of its own: its name and bytes.
    ///
    /// # Errors
    /// That it cannot be saved.
    pub fn save_part(&self, range: [i64; 2]) -> Result<(String, Vec<u8>), Fault> {
        let part = self.part.as_ref().ok_or_else(|| {
            Fault::wrong("only a single .etl file of this machine gives a part of itself as a trace")
        })?;
        part(range).map_err(Fault::Wrong)
    }

    /// Frames and stacks, read once.
    pub fn frames(&self) -> &Frames {
        self.frames.get_or_init(|| Frames::read(&self.db))
    }

    /// Which context switches are a thread's, read once.
    pub fn switches(&self) -> &states::Index {
        self.switches.get_or_init(|| states::Index::read(&self.db))
    }

    /// What answers a question about this trace, computed once; `make` also says how many bytes it takes.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn cached<T: Any + Send + Sync>(
        &self,
        question: &str,
        make: impl FnOnce() -> Result<(T, usize), Fault>,
    ) -> Result<Arc<T>, Fault> {
        self.cache.get(question, make)
    }

    /// What `make` computes, once for all who ask under a name.
    pub fn once<T: Send + Sync + 'static>(&self, key: &str, make: impl Fn() -> T) -> Arc<T> {
        let slot = match self.once.lock() {
            Ok(mut cache) => cache.entry(key.to_owned()).or_default().clone(),
            Err(_) => return Arc::new(make()),
        };
        let kept = slot.get_or_init(|| Arc::new(make())).clone();
        // Another type under the same name is a mistake that costs time, not an answer.
        kept.downcast::<T>().unwrap_or_else(|_| Arc::new(make()))
    }

    /// First and last moment, processors.
    pub fn extent(&self) -> Extent {
        let trace = self.db.read_or_empty::<TraceRow>();
        let first_ns = trace.iter().map(|row| row.first_ns()).min().unwrap_or(0);
        let last_ns = trace.iter().map(|row| row.last_ns()).max().unwrap_or(0);
        Extent {
            first_ns,
            last_ns: last_ns.max(first_ns.saturating_add(1)),
            cpus: trace.iter().map(|row| row.cpus()).max().unwrap_or(0),
        }
    }

    /// Start of the recording, milliseconds since 1970 UTC.
    pub fn start_ms(&self) -> Option<f64> {
        let ns = self.db.read_or_empty::<TraceRow>().first()?.start_unix_ns();
        Some((ns as f64 / 1e6).round())
    }

    /// Runs a query within limits; at most `most` rows of it. The flag says whether there are more.
    ///
    /// # Errors
    /// SQLite's, what is not allowed, and that nobody waits any more.
    pub fn sql(
        &self,
        sql: &str,
        most: usize,
        limits: &Limits,
        cancel: &Cancel,
    ) -> Result<(Table, bool), Fault> {
        let idle = self.engines.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let engine = match idle {
            Some(engine) => engine,
            None => Engine::new(&self.db).map_err(Fault::wrong)?,
        };
        let interrupt = Box::new(engine.interrupt());
        let answer = cancel.while_running(interrupt, || engine.query_within("answer", sql, most, limits))?;
        // An engine that refused something, or failed, is not asked again.
        if answer.is_ok() {
            let mut engines = self.engines.lock().unwrap_or_else(PoisonError::into_inner);
            if engines.len() < IDLE {
                engines.push(engine);
            }
        }
        answer.map_err(Fault::wrong)
    }
}

/// Connections that wait for the next question.
const IDLE: usize = 4;
