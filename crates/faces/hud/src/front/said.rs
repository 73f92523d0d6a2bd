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
    /// The next window of a trace that is followed can be asked for, in the place of the last one.
    Grown(Box<Facts>),
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
    /// What is known of a trace that is followed; none for one that was read whole.
    #[serde(default)]
    pub live: Option<Live>,
}

/// A trace that is followed: its window, and findings as they came and went.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, TS)]
pub struct Live {
    /// Counts the windows that can be asked; of two with the same number all answers are equal.
    pub number: u64,
    /// The window that can be asked stays, because somebody looks back; following goes on.
    pub paused: bool,
    /// No more will come.
    pub ended: bool,
    /// End of what was looked at last, milliseconds since 1970 UTC.
    pub now_ms: f64,
    /// Length of the newest window, ns.
    pub window_ns: i64,
    /// Its end, milliseconds since 1970 UTC: its last seconds are looked at more often.
    pub window_end_ms: f64,
    /// How long those are, ns; none if only the window was looked at.
    pub last_ns: Option<i64>,
    /// Busy share of the processors in them, in percent; none if unknown.
    pub last_busy_percent: Option<f64>,
    /// Local time where it was recorded minus UTC, ms.
    pub offset_ms: f64,
    /// Events in the newest window.
    pub events: u64,
    /// Busy share of the processors in percent; none if nothing tells.
    pub busy_percent: Option<f64>,
    /// How long the newest window took to be evaluated, ms.
    pub cost_ms: f64,
    /// Buffers that came late, in all.
    pub late_buffers: u64,
    /// Buffers of which a part came when no window could show it any more.
    pub too_late: u64,
    /// Findings that last, the worst first.
    pub lasting: Vec<Episode>,
    /// Those that are over, the latest first.
    pub over: Vec<Episode>,
    /// What is followed, as a command line names it.
    pub path: String,
}

/// A finding from the window that showed it first to the first one that did not any more.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, TS)]
#[ts(rename = "LiveEpisode")]
pub struct Episode {
    /// The finding.
    pub id: String,
    /// At its worst.
    pub severity: String,
    /// Its worst culprit when it was seen last.
    pub culprit: String,
    /// What was said of that.
    pub headline: String,
    /// What that is about: `window`, or `last`: its last seconds.
    pub range: String,
    /// How long the range is that it is about, ns.
    pub range_ns: i64,
    /// How long before the end of what was looked at last that range ended, ns.
    pub age_ns: i64,
    /// End of the window that showed it first, milliseconds since 1970 UTC.
    pub began_ms: f64,
    /// The same on the clock of the trace, ns.
    pub began_ns: i64,
    /// End of the window that showed it last, on the clock of the trace, ns.
    pub seen_ns: i64,
    /// Since when the last seconds do not show it any more, while the window still does.
    pub quiet_ms: Option<f64>,
    /// End of the first window that did not show it any more; none while it lasts.
    pub over_ms: Option<f64>,
    /// For how long it was seen, ns.
    pub lasted_ns: i64,
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
            live: None,
        }
    }
}
