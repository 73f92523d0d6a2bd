//! What makes following impossible.

use std::path::PathBuf;

/// What makes following impossible.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] etwhy_etl::Error),
    /// A table could not be made.
    #[error(transparent)]
    Table(#[from] etwhy_table::TableError),
    /// The findings could not be asked.
    #[error(transparent)]
    Sql(#[from] etwhy_sql::SqlError),
    /// The system refuses.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// What was read or written.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A thread cannot be started.
    #[error("a thread cannot be started: {0}")]
    Thread(std::io::Error),
    /// It makes no sense to follow this file.
    #[error("{path}: {why}", path = path.display())]
    NotFollowed {
        /// The file.
        path: PathBuf,
        /// Why, and what to do.
        why: String,
    },
    /// A condition or option that is not understood.
    #[error("{0}")]
    Wrong(String),
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, LiveError>;
