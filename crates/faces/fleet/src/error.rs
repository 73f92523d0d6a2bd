//! Why a store could not be read or written.

use std::path::{Path, PathBuf};

/// Why a store could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The operating system refused a file.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The folder is no store, or one that this program does not know.
    #[error("{place}: {why}")]
    NoStore {
        /// The folder.
        place: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A Parquet file is damaged.
    #[error("{file}: damaged, or not Parquet: {why}")]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What the reader says.
        why: String,
    },
    /// Rows do not fit their table.
    #[error(transparent)]
    Table(#[from] etwhy_table::TableError),
    /// A view could not be asked.
    #[error("view {view}: {why}")]
    View {
        /// Its name.
        view: &'static str,
        /// What SQLite says.
        why: String,
    },
}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, FleetError>;

pub(crate) fn io(file: &Path) -> impl FnOnce(std::io::Error) -> FleetError {
    let file = file.to_path_buf();
    |source| FleetError::Io { file, source }
}

pub(crate) fn damaged(file: &Path) -> impl Fn(&dyn std::fmt::Display) -> FleetError {
    let file = file.to_path_buf();
    move |why| FleetError::Damaged { file: file.clone(), why: why.to_string() }
}
