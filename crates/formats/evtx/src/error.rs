//! What stops a log from being read.

use std::path::PathBuf;

/// An error that stops a file. Damage within a log does not: it is counted in [`Damage`](crate::read::Damage).
#[derive(Debug, thiserror::Error)]
pub enum EvtxError {
    /// The system does not let it be read.
    #[error("{file}: cannot be read at offset {offset}: {source}")]
    Io {
        /// The file.
        file: PathBuf,
        /// Where.
        offset: u64,
        /// The system's reason.
        source: std::io::Error,
    },
    /// It is something else.
    #[error("{file}: no event log: {needed} expected at offset 0, but there is {had}")]
    NotALog {
        /// The file.
        file: PathBuf,
        /// What a log begins with.
        needed: &'static str,
        /// What it begins with.
        had: String,
    },
    /// A later version of the format.
    #[error("{file}: version {major}.{minor} of the format is newer than known (3.0 to 3.2)")]
    Newer {
        /// The file.
        file: PathBuf,
        /// Major version.
        major: u16,
        /// Minor version.
        minor: u16,
    },
}
