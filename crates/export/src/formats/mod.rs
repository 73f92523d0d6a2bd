//! The formats: one file each, which begins with its `FORMATS`. A test sees to it that the list below
//! names every file.

mod csv;
mod json;
mod parquet;
mod terminal;

use crate::Format;

const LIST: &[(&str, &[Format])] = &[
    ("terminal", terminal::FORMATS),
    ("csv", csv::FORMATS),
    ("json", json::FORMATS),
    ("parquet", parquet::FORMATS),
];

/// A number that is read in hex: its 32 or 64 bits.
struct Hex(i64, bool);

impl std::fmt::Display for Hex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.1 { write!(f, "{:#010x}", self.0 as u32) } else { write!(f, "{:#x}", self.0) }
    }
}

/// All formats.
pub fn all() -> impl Iterator<Item = &'static Format> {
    LIST.iter().flat_map(|(_, formats)| formats.iter())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_listed_and_names_are_unique() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/formats");
        let files = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path());
        let files = files.filter(|p| p.extension().is_some()).map(|p| p.file_stem().unwrap().to_owned());
        let mut files: Vec<String> = files.map(|n| n.into_string().unwrap()).filter(|n| n != "mod").collect();
        let mut listed: Vec<String> = LIST.iter().map(|(name, _)| (*name).to_owned()).collect();
        files.sort();
        listed.sort();
        assert_eq!(files, listed);
        let mut names: Vec<&str> = all().map(|f| f.name).collect();
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
        assert_eq!(error, "unknown format `xls`; known: table, csv, json, jsonl, parquet");
    }
}
