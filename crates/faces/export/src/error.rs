//! Why a table could not be written.

use std::path::PathBuf;

/// Why a table could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The operating system refused to write. A closed pipe comes as this, too; see
    /// [`ExportError::is_closed_pipe`].
    #[error("cannot write: {0}")]
    Io(#[from] std::io::Error),
    /// The operating system refused a file.
    #[error("cannot write {file}: {source}")]
    File {
        /// The file.
        file: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The CSV writer failed.
    #[error("cannot write CSV: {0}")]
    Csv(#[from] csv::Error),
    /// The JSON writer failed.
    #[error("cannot write JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The Parquet writer failed.
    #[error("cannot write Parquet: {0}")]
    Parquet(#[from] parquet::errors::ParquetError),
    /// The rows could not be gathered.
    #[error("cannot gather rows: {0}")]
    Arrow(#[from] arrow_schema::ArrowError),
    /// The SQLite writer failed.
    #[error("cannot write SQLite: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// The folder holds something else, or a file of that name is no database of ours.
    #[error("{place}: {why}")]
    Occupied {
        /// The folder or file.
        place: PathBuf,
        /// What is there and what to do.
        why: &'static str,
    },
    /// No format goes by this name.
    #[error("unknown format `{name}`; known: {known}")]
    UnknownFormat {
        /// What was asked for.
        name: String,
        /// All formats.
        known: String,
    },
}

impl ExportError {
    /// True if the reader of a pipe went away (`etwhy dump … | head`), which is no failure.
    pub fn is_closed_pipe(&self) -> bool {
        let error = match self {
            ExportError::Io(e) => Some(e),
            ExportError::Csv(e) => match e.kind() {
                csv::ErrorKind::Io(e) => Some(e),
                _ => None,
            },
            ExportError::Json(e) => std::error::Error::source(e).and_then(|e| e.downcast_ref()),
            ExportError::Parquet(parquet::errors::ParquetError::External(e)) => e.downcast_ref(),
            _ => None,
        };
        error.is_some_and(is_closed_pipe)
    }
}

/// True if an error means that the reader of a pipe went away. Windows has several numbers for it; 233 is
/// `ERROR_PIPE_NOT_CONNECTED`, which Rust gives no name.
pub fn is_closed_pipe(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::BrokenPipe || (cfg!(windows) && error.raw_os_error() == Some(233))
}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, ExportError>;
