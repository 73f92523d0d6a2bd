//! Network: bytes sent and received, where the events stand.
//!
//! # How it is computed
//!
//! `op=send` and `op=receive` of the table `network`, TCP and UDP together.
//!
//! # What fools it
//!
//! Retransmissions are not counted as sent again. Loopback traffic counts on both sides.

use crate::operators::lanes::Kind;
use crate::operators::lanes::sums::{Sum, Sums};

/// Declaration.
pub static KIND: Kind = Kind {
    name: "network",
    about: "bytes sent and received",
    tables: &["network"],
    open: |db, extent| Sums::open(&KIND, SUMS, db, extent),
};

static SUMS: &[Sum] = &[Sum {
    title: "Network bytes",
    unit: "bytes",
    amount: "size_bytes",
    upid: "upid",
    words: ("op", &["receive", "send"]),
    band: |key| if key == 0 { "received" } else { "sent" }.to_owned(),
    names: ["bytes", ""],
    ..Sum::over("network", ("ts_ns", ""), ("ts_ns", ""))
}];
