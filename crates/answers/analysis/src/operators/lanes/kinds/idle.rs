//! Idle states of processors: how long all of them together were in each.
//!
//! # How it is computed
//!
//! Rows of `idle_state` with a length, cut at the borders of buckets, by the state that was asked for.
//!
//! # What fools it
//!
//! The firmware may have used another state than the one that Windows asked for.

use crate::operators::lanes::sums::{Sum, Sums};
use crate::operators::lanes::{Kind, Shape};

/// Declaration.
pub static KIND: Kind = Kind {
    name: "idle",
    about: "idle states of processors",
    tables: &["idle_state"],
    open: |db, extent| Sums::open(&KIND, SUMS, db, extent),
};

static SUMS: &[Sum] = &[Sum {
    title: "Idle states",
    shape: Shape::Share,
    cpu: "cpu",
    by: "state",
    band: |state| format!("state {state}"),
    names: ["idle_ns", ""],
    ..Sum::over("idle_state", ("start_ns", ""), ("start_ns", "dur_ns"))
}];
