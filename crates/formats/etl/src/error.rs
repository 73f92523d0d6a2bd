//! What stops a file. Everything less is an [`Anomaly`](crate::Anomaly) in the ledger.

use std::path::PathBuf;

/// An error that stops the reading of one file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("{file}: cannot {what}: {source}")]
    Io {
        /// The file as the user named it.
        file: PathBuf,
        /// What was tried ("open", "read", "write", "map").
        what: &'static str,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The bytes are no event trace.
    #[error(
        "{file}: not an event trace: {structure} at offset {offset:#x} {problem} (needed {needed}, had {had}). \
         etwhy reads .etl files, archives that hold them, and folders of them"
    )]
    NotATrace {
        /// The file as the user named it.
        file: PathBuf,
        /// Byte offset of the structure in the file.
        offset: u64,
        /// Name of the structure that did not fit.
        structure: &'static str,
        /// What was wrong with it.
        problem: &'static str,
        /// What it should have been.
        needed: String,
        /// What it was.
        had: String,
    },
    /// A trace, but written by something that this program does not know.
    #[error(
        "{file}: {structure} at offset {offset:#x} is newer than this program knows: {had}. \
         Update etwhy, or write the trace again without compression (`xperf -merge in.etl out.etl`)"
    )]
    TooNew {
        /// The file as the user named it.
        file: PathBuf,
        /// Byte offset of the structure in the file.
        offset: u64,
        /// Name of the structure.
        structure: &'static str,
        /// What was found there.
        had: String,
    },
}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;
