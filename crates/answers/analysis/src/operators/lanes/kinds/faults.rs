//! Hard page faults: how many began.
//!
//! # How it is computed
//!
//! Rows of `hard_fault` by `start_ns`.
//!
//! # What fools it
//!
//! One fault can read one page or many.

use crate::operators::lanes::Kind;
use crate::operators::lanes::sums::{Sum, Sums};

/// Declaration.
pub static KIND: Kind = Kind {
    name: "faults",
    about: "hard page faults: memory that came from disk",
    tables: &["hard_fault"],
    open: |db, extent| Sums::open(&KIND, SUMS, db, extent),
};

static SUMS: &[Sum] = &[Sum {
    title: "Hard faults",
    unit: "count",
    upid: "upid",
    band: |_| "hard page faults".to_owned(),
    names: ["faults", ""],
    ..Sum::over("hard_fault", ("start_ns", ""), ("start_ns", ""))
}];
