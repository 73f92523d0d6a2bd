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

impl FleetError {
    /// The error, of the `place` that what is being written in `temporary` will take: nobody knows the other name.
    pub(crate) fn in_place_of(self, temporary: &Path, place: &Path) -> FleetError {
        let (file, source) = match self {
            FleetError::Io { file, source } => (file, source),
            other => return other,
        };
        let file = match file.strip_prefix(temporary) {
            // A path joined with nothing would end with a separator.
            Ok(rest) if rest.as_os_str().is_empty() => place.to_path_buf(),
            Ok(rest) => place.join(rest),
            Err(_) => file,
        };
        FleetError::Io { file, source }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_being_written_goes_by_its_name_to_be() {
        let failed = |file: &str| {
            let error = io(Path::new(file))(std::io::Error::other("full"));
            error.in_place_of(Path::new("store/.etwhy-x.tmp/new"), Path::new("store/views")).to_string()
        };
        assert_eq!(failed("store/.etwhy-x.tmp/new"), "store/views: full");
        assert!(failed("store/.etwhy-x.tmp/new/a").ends_with("a: full"));
        assert!(!failed("store/.etwhy-x.tmp/new/a").contains("tmp"));
        assert_eq!(failed("other"), "other: full");
    }
}
