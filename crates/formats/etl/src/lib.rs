//! The ETL file format: definitions, reader and writer.
//!
//! * [`abi`] holds definitions only, under Microsoft's and the field's names, each with its source.
//! * [`read`] turns bytes into [`Record`]s in time order. Payloads are never looked at here.
//! * [`write`](mod@write) turns records into a file that other readers accept.
//! * [`Ledger`] counts everything that went wrong without stopping.
//!
//! # The central decision: internal iteration over borrowed records
//!
//! [`read::Walk`] pushes each [`Record`] into a closure instead of returning it. A record borrows the
//! buffer it stands in (the mapped file, or a decompressed buffer that is reused), so nothing is copied
//! and nothing is allocated per record. The price is that a caller cannot keep a record: it copies what
//! it needs. That is what a one-pass program wants anyway.
#![forbid(unsafe_code)]

pub mod abi;
pub mod decompress;
mod error;
pub mod ledger;
pub mod read;
mod record;
pub mod write;

pub use error::{Error, Result};
pub use ledger::{Anomaly, Ledger, Severity, Stage};
pub use record::{ExtItem, ExtItems, HeaderKind, Record};
