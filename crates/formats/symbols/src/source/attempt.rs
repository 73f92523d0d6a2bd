//! What was tried for a module, and what came of it.

use std::path::PathBuf;

/// One place that was looked into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Folder, store or server.
    pub place: String,
    /// What was looked for, as `name.pdb/GUIDAGE/name.pdb`.
    pub file: String,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of looking for a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was there.
    Found(PathBuf),
    /// It was fetched, unpacked or copied into the cache.
    Fetched {
        /// Where it is now.
        file: PathBuf,
        /// Bytes that came over the network.
        bytes: u64,
    },
    /// It was not there.
    NotFound,
    /// It was not there so many seconds ago, and was not asked for again.
    KnownMissing(u64),
    /// A file was there, for another build.
    Mismatch {
        /// The file or URL.
        file: String,
        /// What it is.
        found: String,
    },
    /// Something went wrong.
    Failed(String),
    /// Servers are not asked.
    Offline,
    /// The folder cannot be reached from this system.
    Unreachable,
}

impl Attempt {
    /// In words, if it is a problem that users should know of.
    pub fn problem(&self) -> Option<String> {
        match &self.outcome {
            Outcome::Failed(reason) => Some(reason.clone()),
            Outcome::Mismatch { file, found } => {
                Some(format!("{file}: is {found}, not {}; it is not used", self.file))
            }
            _ => None,
        }
    }
}

impl Outcome {
    /// True if a file was there, for another build.
    pub fn is_mismatch(&self) -> bool {
        matches!(self, Outcome::Mismatch { .. })
    }

    /// One word, for tables and JSON.
    pub fn word(&self) -> &'static str {
        match self {
            Outcome::Found(_) => "present",
            Outcome::Fetched { .. } => "fetched",
            Outcome::NotFound => "not found",
            Outcome::KnownMissing(_) => "known missing",
            Outcome::Mismatch { .. } => "mismatch",
            Outcome::Failed(_) => "failed",
            Outcome::Offline => "offline",
            Outcome::Unreachable => "unreachable",
        }
    }
}
