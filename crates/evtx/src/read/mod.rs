//! Files, chunks and records.
//!
//! A log is read chunk by chunk into buffers that are used again, so memory does not depend on its size. Chunks know nothing of each
//! other but templates, which are only a help; so threads read them in parallel, and a damaged one costs itself alone.

mod chunk;
mod damage;
mod file;
mod parallel;

pub use chunk::{Chunk, RecordRef, Records};
pub use damage::{ANOMALIES, Anomaly, Damage, Kind, Severity};
pub use file::{ChunkPlace, LogFile};
pub use parallel::ordered;
