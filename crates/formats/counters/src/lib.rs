//! Performance counter logs.
//!
//! * [`read`] reads CSV and TSV as `perfmon`, `typeperf`, `logman`, `relog` and `Export-Counter` write them, in any language of
//!   Windows, into [`tables`]. A line is read, added to sums and forgotten, so that memory does not grow with the file.
//! * Binary logs (`.blg`) are recognised. What their events hold has no public description, so [`CountersError::Binary`] says
//!   how `relog` makes text of them.
//! * Nothing is left out in silence: what is strange is counted in table `counter_note`.
#![forbid(unsafe_code)]

mod build;
mod clock;
mod collect;
mod error;
mod names;
mod notes;
mod number;
mod open;
mod pages;
mod path;
mod read;
mod row;
mod slices;
mod spread;
mod stamp;
pub mod tables;
mod text;
mod unit;
mod wanted;

pub use error::CountersError;
pub use path::CounterPath;
pub use read::{Bound, CounterLogs, FileRead, Options, read};
