//! Which formats there are, by name and by what a file's name ends in.

use std::path::Path;

use crate::format::Format;
use crate::formats::ALL;
use crate::{ExportError, Result};

/// All formats.
pub fn formats() -> impl Iterator<Item = &'static Format> {
    ALL.iter().flat_map(|formats| formats.iter())
}

impl Format {
    /// The format that `--format` calls `name`.
    ///
    /// # Errors
    /// If there is none; the error names those there are.
    pub fn by_name(name: &str) -> Result<&'static Format> {
        let known = || formats().map(|f| f.name).collect::<Vec<_>>().join(", ");
        formats()
            .find(|f| f.name.eq_ignore_ascii_case(name))
            .ok_or_else(|| ExportError::UnknownFormat { name: name.to_owned(), known: known() })
    }

    /// The format that a file's name ends in.
    pub fn by_path(path: &Path) -> Option<&'static Format> {
        let extension = path.extension()?.to_str()?;
        formats().find(|f| f.extensions.iter().any(|e| e.eq_ignore_ascii_case(extension)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> = formats().map(|f| f.name).collect();
        names.sort();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn formats_are_found() {
        assert_eq!(Format::by_name("CSV").unwrap().name, "csv");
        assert_eq!(Format::by_path("a/b.Parquet".as_ref()).unwrap().name, "parquet");
        assert!(Format::by_path("a/b".as_ref()).is_none());
        let error = Format::by_name("xls").unwrap_err().to_string();
        assert_eq!(error, "unknown format `xls`; known: csv, json, jsonl, parquet, table");
    }
}
