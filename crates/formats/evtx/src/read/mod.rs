//! Files, chunks and records.
//!
//! A log is read chunk by chunk into buffers that are used again, so memory does not depend on its size. Chunks know nothing of each
//! other but templates, which are only a help; so threads read them in parallel, and a damaged one costs itself alone.

pub mod anomalies;
mod chunk;
mod file;
mod handle;
mod parallel;

pub use chunk::{Chunk, RecordRef, Records};
pub use etwhy_etl::Ledger as Damage;
pub use file::{ChunkPlace, LogFile};
pub use parallel::ordered;
