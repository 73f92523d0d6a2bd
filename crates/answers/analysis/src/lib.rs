//! What is computed from tables and is slow or impossible in SQL.
//!
//! An operator takes a [`Database`](etwhy_table::Database): CPU time folded along stacks, pauses, sums by key. A derived table is what an
//! operator makes as a table of the contract. Both read tables and nothing else, so they work on an extract as they do on a trace.
#![forbid(unsafe_code)]

mod bill;
pub mod derive;
pub mod derived;
pub mod fold;
pub mod gaps;
mod logs;
mod making;
pub mod operators;
mod quarters;

pub use logs::LOG_FIELDS;
pub use making::{closure, derive};
pub use operators::{
    activity, clr, cpu, critical_path, disk, flame, interrupts, lanes, pivot, stacks, states, strace,
    timeline,
};
