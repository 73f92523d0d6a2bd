//! Many traces: a store of what was found in each, and questions to all of them.
//!
//! # One process for each trace
//!
//! Traces come from anywhere, so each is read by a process of its own ([`runner`]), with limits on time and memory. What it finds it leaves as
//! a folder of Parquet files, a *part* ([`store::write_part`]); findings are asked there, by the same code as `etwhy why`. The process that
//! waits for it never reads a trace.
//!
//! # What is done is what is committed
//!
//! Parts become a *batch* of the [`store`]: one folder, renamed when it is whole, with the ledger of the traces in it. A run that is killed
//! loses at most the batch that it was gathering, and the next one does just that again: [`plan`] asks the ledger what is left. Of several
//! readings of a trace the latest counts (`views/current.sql`). Small batches are merged ([`merge`]).
//!
//! # Questions
//!
//! [`views`] are files of SQL for SQLite, DuckDB and Spark alike. [`contract`] is what they rest on.
#![forbid(unsafe_code)]

pub mod batch;
pub mod contents;
pub mod contract;
pub mod cut;
pub mod error;
pub mod files;
pub mod fleet;
pub mod ids;
pub mod inbox;
pub mod known;
pub mod lint;
pub mod memory;
pub mod merge;
pub mod outliers;
pub mod parquet_files;
pub mod plan;
pub mod regressions;
pub mod rows;
pub mod runner;
pub mod session;
pub mod stamp;
pub mod store;
pub mod tables;
pub mod trend;
pub mod views;

pub use error::{FleetError, Result};
pub use fleet::Fleet;
pub use ids::Ids;
pub use store::Store;
