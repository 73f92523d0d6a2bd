//! Threads that were ready and had no processor: their mean number.
//!
//! # How it is computed
//!
//! A thread is ready in the `ready_ns` before it is switched in. The time of all of them in a bucket, divided by the bucket's length, is the
//! mean length of the queue.
//!
//! # What fools it
//!
//! Without `ReadyThread` only preempted threads are known to be ready.

use crate::operators::lanes::Kind;
use crate::operators::lanes::sums::{Sum, Sums};

/// Declaration.
pub static KIND: Kind = Kind {
    name: "ready",
    about: "threads that were ready and had no processor",
    tables: &["cswitch"],
    open: |db, extent| Sums::open(&KIND, SUMS, db, extent),
};

static SUMS: &[Sum] = &[Sum {
    title: "Ready threads",
    only: &["ready_ns>0"],
    upid: "new_upid",
    band: |_| "ready and waiting for a processor".to_owned(),
    names: ["ready_ns", "mean_threads"],
    ..Sum::over("cswitch", ("ts_ns", "ready_ns"), ("ts_ns", ""))
}];
