//! Why a probe ended early.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a probe ended early. What it measured until then is kept.
#[derive(Debug, Error)]
pub enum ProbeError {
    /// The user wants it to end (Ctrl-C).
    #[error("interrupted")]
    Interrupted,
    /// A file or folder could not be made, read or removed.
    #[error("{}: {doing}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// `create`, `write`, `open`, `read`, `remove`, `list`.
        doing: &'static str,
        /// The system's words.
        source: io::Error,
    },
    /// The disk has less room than the probe would need.
    #[error(
        "{}: {needed} bytes are needed and {free} are free; --folder names another place, --set makes it smaller",
        path.display()
    )]
    NoRoom {
        /// Folder.
        path: PathBuf,
        /// What it needs.
        needed: u64,
        /// What is there.
        free: u64,
    },
    /// The operating system refused something that the probe cannot do without.
    #[error("{doing}: {source}")]
    System {
        /// What was asked.
        doing: String,
        /// The system's words.
        source: io::Error,
    },
    /// It cannot be measured here; why, and what to do.
    #[error("{0}")]
    Impossible(String),
}

impl ProbeError {
    /// An error with a file.
    pub fn file(path: impl Into<PathBuf>, doing: &'static str) -> impl FnOnce(io::Error) -> ProbeError {
        let path = path.into();
        move |source| ProbeError::File { path, doing, source }
    }

    /// A refusal of the system.
    pub fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> ProbeError {
        let doing = doing.into();
        move |source| ProbeError::System { doing, source }
    }
}
