//! What can go wrong.

use std::path::PathBuf;

/// Why a file could not be read as a counter log.
#[derive(Debug, thiserror::Error)]
pub enum CountersError {
    /// It cannot be opened or read.
    #[error("{file}: cannot read: {source}")]
    Io {
        /// The file.
        file: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A binary counter log. Its container is that of traces, what its events hold has no public description.
    #[error(
        "{file}: a binary counter log (.blg), whose contents Microsoft does not describe. On Windows, make text of it and read \
         that: relog \"{name}\" -f csv -o \"{stem}.csv\""
    )]
    Binary {
        /// The file.
        file: PathBuf,
        /// Its name without folders.
        name: String,
        /// Its name without folders and ending.
        stem: String,
    },
    /// Something else that is no text.
    #[error(
        "{file}: no counter log: it is binary. Counter logs are CSV or TSV as perfmon, typeperf, relog or logman write them"
    )]
    NotText {
        /// The file.
        file: PathBuf,
    },
    /// Text, but no counter log.
    #[error(
        "{file}: no counter log: no line in its first {lines} names counters (\\\\machine\\object(instance)\\counter) behind \
         \"(PDH-CSV 4.0)\" or a column for the time"
    )]
    NoHeader {
        /// The file.
        file: PathBuf,
        /// Lines that were looked at.
        lines: u64,
    },
    /// No line at all.
    #[error("{file}: no counter log: the file is empty")]
    Empty {
        /// The file.
        file: PathBuf,
    },
    /// Nothing to read.
    #[error("{folder}: no counter log in this folder (*.csv, *.tsv, *.txt){found}")]
    Nothing {
        /// The folder.
        folder: PathBuf,
        /// What there is instead, or nothing.
        found: String,
    },
    /// No counter is wanted.
    #[error("--counter matches no counter of these logs")]
    NoCounter {
        /// Counters that there are, by their paths without machine and with `*` for the instance.
        kinds: Vec<String>,
    },
    /// No sample is left.
    #[error("no sample in {files} that --from and --to leave")]
    NoSample {
        /// The file, or how many there are.
        files: String,
    },
    /// There is none, although nothing was left out.
    #[error("no sample in {files}: no line behind the header begins with a time")]
    NoTime {
        /// The file, or how many there are.
        files: String,
    },
    /// A table could not be built.
    #[error(transparent)]
    Table(#[from] etwhy_table::TableError),
}
