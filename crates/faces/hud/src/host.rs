//! What the server needs and does not know itself: reading traces, and what the program knows besides tables.

use etwhy_report::Report;
use etwhy_table::{Database, TableSpec};
use std::any::Any;
use std::sync::Arc;

/// A trace that was read.
pub struct Loaded {
    /// What people call it: its file name.
    pub name: String,
    /// Its tables.
    pub db: Database,
    /// The verdict, with charts.
    pub report: Report,
    /// What must live as long as the tables: temporary files.
    pub keep: Box<dyn Any + Send + Sync>,
    /// Tables that are made when somebody first asks for one.
    pub deferred: Option<Deferred>,
    /// Reads the trace again for the verdict of a part; none where it is no longer there.
    pub within: Option<Box<Within>>,
    /// Saves a stretch as a trace of its own; none where that is not possible.
    pub part: Option<Box<SavePart>>,
}

/// The verdict of a range (from, to, ns). `given_up` is looked at now and then; true means that nobody waits for it. What went wrong is in
/// words for people.
pub type Within = dyn Fn([i64; 2], Arc<dyn Fn() -> bool>) -> Result<Report, String> + Send + Sync;

/// A stretch (from, to, ns) as the bytes of a trace, and its name. What went wrong is in words for people.
pub type SavePart = dyn Fn([i64; 2]) -> Result<(String, Vec<u8>), String> + Send + Sync;

/// Tables that are made when somebody first asks for one: they take longer than all others.
pub struct Deferred {
    /// Their names, and the rows that they will have.
    pub tables: Vec<(String, usize)>,
    /// Makes them.
    pub make: Box<MakeDeferred>,
}

/// Reads a trace again for its deferred tables. `given_up` is looked at now and then; true means that nobody waits for them.
/// Gives them with what must live as long, or what went wrong, in words for people.
pub type MakeDeferred =
    dyn Fn(Arc<dyn Fn() -> bool>) -> Result<(Database, Box<dyn Any + Send + Sync>), String> + Send + Sync;

/// The program around the server.
pub trait Host: Send + Sync {
    /// Name and version of the program.
    fn program(&self) -> String;
    /// Declarations of all tables, also of those that a trace may lack.
    fn specs(&self) -> Vec<&'static TableSpec>;
    /// Why a table has no rows, and which recording would give them.
    fn why_empty(&self, db: &Database, table: &str) -> Option<String>;
    /// The command that prints the recording that fills a table.
    fn recording_for(&self, table: &str) -> String;
    /// What is known of a function, module, driver or program.
    fn knowledge(&self, name: &str) -> serde_json::Value;
    /// The window that can be asked of a trace that is followed stays (`true`), or moves on.
    ///
    /// # Errors
    /// If nothing is followed, in words.
    fn pause(&self, paused: bool) -> Result<(), String> {
        let _ = paused;
        Err("this trace is not followed: it was read whole".to_owned())
    }
}
