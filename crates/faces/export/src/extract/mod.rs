//! A trace as a folder of Parquet files, one per table, with a manifest; written, and read back in its place.
//!
//! [`Writer`] makes the folder, [`Folder`] opens one. [`Manifest`] says what is in it. The files stand by themselves:
//! each has its table's declaration in its metadata, so DuckDB, Spark and pandas need no manifest.
//!
//! # A folder is input like any other
//!
//! It may come from anybody. The manifest is read for what the files cannot say (what was left out, how the pass
//! ended) and never for names of files: these follow from the tables that this program knows. Columns are checked
//! against the declaration of each table before a row is read, and what a file unpacks to is limited.
//!
//! What is damaged on the way gives an error and never another answer: the manifest has checksums of itself and of the
//! parts of all files, and those that are read are compared.

mod manifest;
mod pages;
mod parquet_columns;
mod quiet;
mod read;
mod read_parquet;
mod sums;
mod write;

pub use manifest::{Anomalies, ColumnEntry, EndOfPass, MANIFEST, Manifest, TableEntry, VERSION};
pub use quiet::catch;
pub use read::{ExtractError, Folder, Limits, is_extract};
pub use read_parquet::{ParquetFile, bytes_of_rows, open_regular};
pub use write::Writer;

/// The file of a table.
fn file_name(table: &str) -> String {
    format!("{table}.parquet")
}
