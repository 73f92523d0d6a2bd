//! Questions over tables.
//!
//! An operator takes a [`Database`](etwhy_table::Database) and computes what SQL is slow at: CPU time folded
//! along stacks, pauses, sums by key. Operators read tables and nothing else, so they work on an extract as
//! they do on a trace.
#![forbid(unsafe_code)]

mod bill;
mod cell;
pub mod derive;
pub mod derived;
pub mod diff;
pub mod findings;
mod fold;
mod logs;
pub mod operators;
pub mod sql;

pub use cell::Cell;
pub use operators::{
    activity, clr, cpu, critical_path, disk, flame, interrupts, lanes, pivot, stacks, states, strace,
    timeline,
};
