//! What can go wrong.

use std::path::PathBuf;

/// Why a file or a database could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused a file.
    #[error("{path}: {source}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A structure does not fit into its file.
    #[error("{structure} at offset {offset:#x} needs {needed} bytes, {had} are there")]
    Truncated {
        /// What was read.
        structure: &'static str,
        /// Where, from the start of the resource or file.
        offset: u64,
        /// How much it needs.
        needed: u64,
        /// How much there is.
        had: u64,
    },
    /// A structure is not what it must be.
    #[error("{structure} at offset {offset:#x}: {what}")]
    Malformed {
        /// What was read.
        structure: &'static str,
        /// Where, from the start of the resource or file.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// A file is none of those that hold texts.
    #[error("{path}: {what}")]
    NotUsable {
        /// Which file or folder.
        path: PathBuf,
        /// Why it cannot be used.
        what: String,
    },
    /// SQLite refused.
    #[error("{path}: {source}")]
    Database {
        /// Which database.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
}

impl Error {
    /// An error of a structure that does not fit.
    pub(crate) fn truncated(structure: &'static str, offset: usize, needed: usize, had: usize) -> Self {
        Self::Truncated { structure, offset: offset as u64, needed: needed as u64, had: had as u64 }
    }

    /// An error of a structure that makes no sense.
    pub(crate) fn malformed(structure: &'static str, offset: usize, what: impl Into<String>) -> Self {
        Self::Malformed { structure, offset: offset as u64, what: what.into() }
    }

    /// An error of the system about a file.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    /// An error of SQLite about a file.
    pub(crate) fn database(path: impl Into<PathBuf>) -> impl FnOnce(rusqlite::Error) -> Self {
        let path = path.into();
        move |source| Self::Database { path, source }
    }
}
