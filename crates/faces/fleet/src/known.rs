//! What a file says of its recording, as text: written by the process that looks at it, read by the one that plans.

use etwhy_etl::read::EtlFile;
use etwhy_trace::identity::{Identity, Machine};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// An [`Identity`] as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Known {
    trace_id: String,
    computer: Option<String>,
    boot: Option<i64>,
    windows: Option<(u8, u8, u32)>,
    processors: Option<u32>,
    memory_mb: Option<u32>,
    counter_hz: Option<i64>,
    session: String,
    log_file: String,
    merged: bool,
    new_file: bool,
    started: i64,
    span_ns: (i64, i64),
    sequence: Option<(i64, i64)>,
    kernel: bool,
}

impl Known {
    /// What an open file says.
    pub fn of(file: &EtlFile) -> Known {
        let Identity {
            trace_id,
            machine,
            session,
            log_file,
            merged,
            new_file,
            started,
            span_ns,
            sequence,
            kernel,
            ..
        } = Identity::from_file(file);
        let Machine { computer, boot, windows, processors, memory_mb, counter_hz } = machine;
        Known {
            trace_id,
            computer,
            boot,
            windows,
            processors,
            memory_mb,
            counter_hz,
            session,
            log_file,
            merged,
            new_file,
            started,
            span_ns,
            sequence,
            kernel,
        }
    }

    /// What copies of a file have in common with it, however much of it they are: boot, session, log file, start; of a series also
    /// which of its files it is, by its first buffer.
    pub fn beginning(&self) -> (Option<i64>, &str, &str, i64, Option<i64>) {
        let first = self.sequence.filter(|_| self.new_file).map(|(first, _)| first);
        (self.boot, &self.session, &self.log_file, self.started, first)
    }

    /// The identity of the file of this name.
    pub fn identity(&self, shown: PathBuf) -> Identity {
        let Known { computer, boot, windows, processors, memory_mb, counter_hz, .. } = self.clone();
        Identity {
            shown,
            trace_id: self.trace_id.clone(),
            machine: Machine { computer, boot, windows, processors, memory_mb, counter_hz },
            session: self.session.clone(),
            log_file: self.log_file.clone(),
            merged: self.merged,
            new_file: self.new_file,
            started: self.started,
            span_ns: self.span_ns,
            sequence: self.sequence,
            kernel: self.kernel,
        }
    }
}

/// A line of `etwhy fleet identify`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Line {
    /// The file's number among those that were named.
    pub file: usize,
    /// What it says; none if it is no trace.
    pub identity: Option<Known>,
    /// Why there is none.
    pub error: Option<String>,
}
