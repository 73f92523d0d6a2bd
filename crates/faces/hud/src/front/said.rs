//! What the process of a trace tells the server in front of it: a line of JSON each, on its standard output.

use crate::trace::Trace;
use etwhy_trace::catalog::trace::TraceRow;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A line.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "said", rename_all = "snake_case")]
pub enum Said {
    /// What it does, and how much of it is done, in bytes; `total` is 0 where nobody knows.
    Doing {
        /// The work, in a word: reading, findings.
        what: String,
        /// Bytes that are done.
        done: u64,
        /// Bytes in all.
        total: u64,
    },
    /// What was given holds more recordings than the one that it reads: the names of all.
    Recordings {
        /// Of each, in their order.
        names: Vec<String>,
    },
    /// Which recording it is.
    Identity {
        /// As the column `recording_id` of `trace`.
        trace_id: String,
    },
    /// The verdict can be asked for; tables are still being made.
    Verdict(Ready),
    /// Everything can be asked for.
    Ready(Ready),
    /// It cannot be read.
    Failed {
        /// Why, in words for people.
        text: String,
    },
}

/// What can be asked for, and where.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Ready {
    /// Port on 127.0.0.1.
    pub port: u16,
    /// Something in it could not be read.
    pub in_part: bool,
    /// The trace.
    pub facts: Facts,
}

/// What the page knows of a trace from the start.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, TS)]
pub struct Facts {
    /// Tells this recording from all others, whatever its file is called; empty until it is known.
    pub trace_id: String,
    /// The machine.
    pub machine_id: String,
    /// Start by the clock, milliseconds since 1970 UTC: which recording it is, for links that are opened elsewhere.
    pub start_ms: Option<f64>,
    /// First event.
    pub first_ns: i64,
    /// Last event.
    pub last_ns: i64,
    /// Logical processors.
    pub cpus: i64,
    /// The verdict's sentence.
    pub sentence: String,
}

impl Facts {
    /// Those of a trace that was read.
    pub fn of(trace: &Trace) -> Facts {
        let extent = trace.extent();
        let rows = trace.db.read_or_empty::<TraceRow>();
        let row = rows.first();
        Facts {
            trace_id: row.map_or("", |row| row.recording_id()).to_owned(),
            machine_id: row.map_or("", |row| row.machine_id()).to_owned(),
            start_ms: trace.start_ms(),
            first_ns: extent.first_ns,
            last_ns: extent.last_ns,
            cpus: extent.cpus,
            sentence: trace.report.sentence.clone(),
        }
    }
}
