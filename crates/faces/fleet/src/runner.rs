//! What the process of a trace leaves; `etwhy-child` runs it.

pub use etwhy_child::{Ended, How, Limits, Usage, own_usage, supervise};
use serde::{Deserialize, Serialize};

/// What the process of a trace leaves beside its rows: how it went.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct End {
    /// Its exit code.
    pub exit: i32,
    /// Why it could not read anything.
    pub message: Option<String>,
    /// That was the machine's fault and not that of the trace: its disk is full.
    #[serde(default)]
    pub again: bool,
    /// CPU time that it took.
    pub cpu_ns: Option<u64>,
    /// Memory that it had at the end.
    pub memory_bytes: Option<u64>,
    /// SHA-256 of each of its files, in the order in which they were named.
    #[serde(default)]
    pub sha256: Vec<Option<String>>,
    /// The recordings in its files: one, except of archives.
    pub recordings: Vec<EndOfRecording>,
}

/// A recording of the files of a process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct EndOfRecording {
    /// Its folder of rows, within that of the process; none if it could not be read.
    pub part: Option<String>,
    /// Its ids.
    pub trace_id: String,
    /// The machine.
    pub machine_id: String,
    /// The reading.
    pub extract_id: String,
    /// How reading it ended, as an exit code.
    pub exit: i32,
    /// What is missing, or why it could not be read.
    pub message: Option<String>,
    /// As in [`End`].
    #[serde(default)]
    pub again: bool,
    /// Its first file, as people call it.
    pub file: String,
    /// Its files.
    pub files: usize,
    /// Bytes of its files.
    pub size_bytes: u64,
    /// SHA-256 of the trace; of several files a name made from theirs.
    #[serde(default)]
    pub sha256: Option<String>,
}

/// The file that holds an [`End`].
pub const END: &str = "end.json";
