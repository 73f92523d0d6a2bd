//! Why a table could not be written.

use std::path::{Path, PathBuf};

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
    Csv(#[source] csv::Error),
    /// The JSON writer failed.
    #[error("cannot write JSON: {0}")]
    Json(#[source] serde_json::Error),
    /// The Parquet writer failed.
    #[error("cannot write Parquet: {0}")]
    Parquet(#[source] parquet::errors::ParquetError),
    /// The rows could not be gathered.
    #[error("cannot gather rows: {0}")]
    Arrow(#[source] arrow_schema::ArrowError),
    /// The SQLite writer failed.
    #[error("cannot write SQLite: {0}")]
    Sqlite(String),
    /// The folder holds something else, or a file of that name is no database of ours.
    #[error("{place}: {why}")]
    Occupied {
        /// The folder or file.
        place: PathBuf,
        /// What is there and what to do.
        why: String,
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

/// A system that refuses to write says so in the same way under every format: this and those below.
impl From<csv::Error> for ExportError {
    fn from(error: csv::Error) -> ExportError {
        if !error.is_io_error() {
            return ExportError::Csv(error);
        }
        match error.into_kind() {
            csv::ErrorKind::Io(source) => ExportError::Io(source),
            kind => ExportError::Io(std::io::Error::other(format!("{kind:?}"))),
        }
    }
}

impl From<serde_json::Error> for ExportError {
    fn from(error: serde_json::Error) -> ExportError {
        if error.is_io() { ExportError::Io(error.into()) } else { ExportError::Json(error) }
    }
}

impl From<arrow_schema::ArrowError> for ExportError {
    fn from(error: arrow_schema::ArrowError) -> ExportError {
        match error {
            arrow_schema::ArrowError::IoError(_, source) => ExportError::Io(source),
            other => ExportError::Arrow(other),
        }
    }
}

impl From<parquet::errors::ParquetError> for ExportError {
    fn from(error: parquet::errors::ParquetError) -> ExportError {
        match error {
            parquet::errors::ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
                Ok(source) => ExportError::Io(*source),
                Err(inner) => ExportError::Parquet(parquet::errors::ParquetError::External(inner)),
            },
            other => ExportError::Parquet(other),
        }
    }
}

impl From<rusqlite::Error> for ExportError {
    fn from(error: rusqlite::Error) -> ExportError {
        match error {
            rusqlite::Error::SqliteFailure(code, _) if code.code == rusqlite::ErrorCode::DiskFull => {
                ExportError::Io(std::io::Error::from(std::io::ErrorKind::StorageFull))
            }
            rusqlite::Error::SqliteFailure(_, Some(text)) => ExportError::Sqlite(text),
            other => ExportError::Sqlite(other.to_string()),
        }
    }
}

impl ExportError {
    /// The error, with the file that was being written where the system refused one without saying which.
    #[must_use]
    pub fn of_file(self, file: &Path) -> ExportError {
        match self {
            ExportError::Io(source) => ExportError::File { file: file.to_path_buf(), source },
            other => other,
        }
    }

    /// True if the reader of a pipe went away (`etwhy dump … | head`), which is no failure.
    pub fn is_closed_pipe(&self) -> bool {
        let error = match self {
            ExportError::Io(e) | ExportError::File { source: e, .. } => Some(e),
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Error, ErrorKind};

    #[test]
    fn a_full_disk_is_one_under_every_format() {
        let file = Path::new("x.bin");
        let full = || Error::from(ErrorKind::StorageFull);
        let parquet = parquet::errors::ParquetError::External(Box::new(full()));
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL);
        let sqlite = rusqlite::Error::SqliteFailure(code, Some("database or disk is full".to_owned()));
        let csv = csv::Error::from(full());
        let json = serde_json::Error::io(full());
        let arrow = arrow_schema::ArrowError::IoError("spill".to_owned(), full());
        for error in
            [ExportError::from(full()), parquet.into(), sqlite.into(), csv.into(), json.into(), arrow.into()]
        {
            assert_eq!(error.of_file(file).to_string(), format!("cannot write x.bin: {}", full()));
        }
    }
}
