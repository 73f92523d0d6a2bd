//! What counter logs hold, as tables of the contract.
//!
//! `utc_ns` is nanoseconds since 1970-01-01 UTC; `ts_ns` counts from the earliest sample of all logs.

mod counter;
mod counter_machine;
mod counter_note;
mod counter_sample;
mod counter_slice;
mod counter_wanted;

pub use counter::{COUNTER, CounterRow};
pub use counter_machine::{COUNTER_MACHINE, CounterMachineRow};
pub use counter_note::{COUNTER_NOTE, CounterNoteRow};
pub use counter_sample::{COUNTER_SAMPLE, CounterSampleRow};
pub use counter_slice::{COUNTER_SLICE, CounterSliceRow};
pub use counter_wanted::{COUNTER_WANTED, CounterWantedRow};

use etwhy_table::TableSpec;

/// All of them.
pub static ALL: &[&TableSpec] =
    &[&COUNTER, &COUNTER_MACHINE, &COUNTER_NOTE, &COUNTER_SAMPLE, &COUNTER_SLICE, &COUNTER_WANTED];
