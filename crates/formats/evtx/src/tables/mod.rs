//! What event logs hold, as tables of the contract.
//!
//! `utc_ns` is nanoseconds since 1970-01-01 UTC; `ts_ns` counts from the same zero as all tables of one analysis: the start of the
//! trace where logs are read beside one, else the earliest record.

mod in_time;
mod log_file;
mod log_record;
mod log_type;
mod make;
mod options;
mod records;
mod wide;

pub use log_file::{LOG_FILE, LogFileRow};
pub use log_record::{LOG_RECORD, LogRecordRow};
pub use log_type::{LOG_TYPE, LogTypeRow};
pub use make::{Made, make};
pub use options::{Fields, MakeError, Options};

use etwhy_table::TableSpec;

/// All of them.
pub static ALL: &[&TableSpec] = &[&LOG_FILE, &LOG_RECORD, &LOG_TYPE];
