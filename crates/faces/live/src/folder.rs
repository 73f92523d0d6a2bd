//! The traces of a folder, by name.

use crate::error::{LiveError, Result};
use std::path::{Path, PathBuf};

/// The `.etl` files of a folder whose names begin so, in the order of their names.
///
/// # Errors
/// If the folder cannot be read.
pub(crate) fn traces(folder: &Path, begins: &str) -> Result<Vec<PathBuf>> {
    let failed = |source| LiveError::Io { path: folder.to_owned(), source };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let is_trace = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("etl"));
        let is_meant = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(begins));
        if is_trace && is_meant && path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
