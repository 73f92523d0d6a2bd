//! Lanes: what a timeline draws. Sums of a table in buckets of time, by processor, process, disk, …
//!
//! # How it is computed
//!
//! Buckets have lengths of 2ⁿ or 3·2ⁿ ns and begin at multiples of their length behind the trace's start: who pans sees the same buckets
//! again, and numbers do not flicker. What takes time is cut at the borders of buckets, so each number is exact, as a query for
//! `[from, to)` would give it ([`Lane::sql`]). An [`Index`](index::Index) is made of each table once: rows in order of time, and sums of
//! [`MOST_BINS`](index::MOST_BINS) bins, so that a question reads either bins or the rows of a small part of the trace.
//!
//! Each kind of lane is a file in `kinds`. Those that add rows of one table up are declarations of a [`Sum`](sums::Sum).
//!
//! # What fools it
//!
//! A bucket without a number can mean that nothing happened or that nothing was recorded; lanes of processors tell the two apart
//! (`unknown`), others cannot.

pub mod cells;
pub mod counter;
pub mod grid;
pub mod index;
pub mod kinds;
pub mod spans;
pub mod sums;
pub mod who;

pub use grid::Grid;

use crate::operators::among::Among;
use etwhy_table::Database;
use serde::Serialize;
use ts_rs::TS;

/// A kind of lane.
pub struct Kind {
    /// Name in questions.
    pub name: &'static str,
    /// What it shows, for people.
    pub about: &'static str,
    /// Tables that it is made of: without rows in one of them there is no lane.
    pub tables: &'static [&'static str],
    /// Reads the tables once.
    pub open: fn(&Database, Extent) -> Box<dyn Source>,
}

/// First moment of a trace, and the one behind its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First event, ns.
    pub first_ns: i64,
    /// Behind the last event, ns.
    pub end_ns: i64,
}

/// What a kind of lane keeps of a trace.
pub trait Source: Send + Sync {
    /// The lanes of a range. The database is the one that it was opened with.
    fn draw(&self, db: &Database, ask: &Ask<'_>) -> Vec<Lane>;
}

/// A question.
pub struct Ask<'a> {
    /// Buckets.
    pub grid: Grid,
    /// Processes.
    pub processes: Among,
    /// Processors.
    pub cpus: Among,
    /// User and kernel share of processors too.
    pub modes: bool,
    /// True when nobody waits for the answer any more.
    pub given_up: &'a (dyn Fn() -> bool + Sync),
}

impl Ask<'_> {
    /// True if rows of a process are to be counted.
    pub fn wants(&self, upid: Option<i64>) -> bool {
        self.processes.has(upid)
    }

    /// True if no process is told apart.
    pub fn all_processes(&self) -> bool {
        self.processes.is_empty()
    }

    /// Processes that are wanted; none: all.
    pub fn named(&self) -> impl Iterator<Item = i64> + '_ {
        self.processes.wanted().iter().copied()
    }

    /// True if a processor is wanted.
    pub fn wants_cpu(&self, cpu: i64) -> bool {
        self.cpus.has(Some(cpu))
    }

    /// [`Ask::wants`] as SQL, to stand behind other conditions.
    pub fn sql(&self, column: &str) -> String {
        self.processes.sql(column).iter().map(|one| format!(" AND {one}")).collect()
    }
}

/// How a lane is to be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(rename = "LaneShape")]
pub enum Shape {
    /// Parts of the bucket's time, on top of each other; a full bucket is `max`.
    Share,
    /// Amounts on top of each other.
    Stack,
    /// Levels: the last one before the bucket's end.
    Level,
    /// Single things with begin and end.
    Marks,
}

/// One lane.
#[derive(Clone, Debug, Serialize, TS)]
#[ts(rename = "WireLane")]
pub struct Lane {
    /// Unique among the lanes of an answer: the kind, and which one.
    pub id: String,
    /// The kind.
    pub kind: &'static str,
    /// What people call it.
    pub title: String,
    /// Unit of the values, as columns have them.
    pub unit: &'static str,
    /// How to draw it.
    pub shape: Shape,
    /// What a full lane is; 0: the largest sum of a bucket.
    pub full: f64,
    /// Processor, if it is one's.
    pub cpu: Option<i64>,
    /// The table that it is made of.
    pub source: &'static str,
    /// The same sums, of all buckets together.
    pub sql: String,
    /// Bands, the lowest first.
    pub series: Vec<Series>,
    /// Single things.
    pub marks: Vec<Mark>,
}

impl Lane {
    /// A lane without bands.
    pub fn new(kind: &'static str, title: impl Into<String>, unit: &'static str, shape: Shape) -> Lane {
        Lane {
            id: kind.to_owned(),
            kind,
            title: title.into(),
            unit,
            shape,
            full: 0.0,
            cpu: None,
            series: Vec::new(),
            marks: Vec::new(),
            source: "",
            sql: String::new(),
        }
    }
}

/// What a band stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(rename = "BandKind")]
pub enum Band {
    /// A process.
    Process,
    /// Everything that has no band of its own.
    Rest,
    /// Nobody ran.
    Idle,
    /// DPCs: part of what the other bands show.
    Dpc,
    /// ISRs: part of what the other bands show.
    Isr,
    /// Nothing tells who ran.
    Unknown,
    /// Samples in the kernel.
    Kernel,
    /// Samples in user mode.
    User,
    /// Something else, told by its name.
    Plain,
}

/// One band of a lane.
#[derive(Clone, Debug, Serialize, TS)]
#[ts(rename = "WireBand")]
pub struct Series {
    /// What it stands for.
    pub band: Band,
    /// What people call it.
    pub name: String,
    /// Process.
    pub upid: Option<i64>,
    /// Sum of all buckets (of levels: the largest).
    pub total: f64,
    /// Number of a bucket, and what is in it; rising, without zeros.
    #[serde(skip)]
    pub values: Vec<(u32, f64)>,
}

impl Series {
    /// A band whose total is the sum of its values.
    pub fn new(band: Band, name: impl Into<String>, values: Vec<(u32, f64)>) -> Series {
        let total = values.iter().map(|(_, value)| value).sum();
        Series { band, name: name.into(), upid: None, total, values }
    }
}

/// A single thing on a lane.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
#[ts(rename = "WireMark")]
pub struct Mark {
    /// Begin.
    #[serde(rename = "from")]
    pub from_ns: i64,
    /// End; the begin itself if it is a moment.
    #[serde(rename = "to")]
    pub to_ns: i64,
    /// What it says.
    pub text: String,
    /// What it is.
    pub what: &'static str,
    /// Process.
    pub upid: Option<i64>,
    /// How many things it stands for.
    pub count: u32,
}

/// Name of a process with its id.
pub fn process_name(names: &[(String, i64)], upid: i64) -> String {
    let known = usize::try_from(upid).ok().and_then(|upid| names.get(upid));
    known.map_or_else(|| "[unknown]".to_owned(), |(name, pid)| format!("{name} ({pid})"))
}
