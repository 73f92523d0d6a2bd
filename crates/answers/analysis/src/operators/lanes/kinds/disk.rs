//! Disks: how busy, how many requests under way, bytes read and written.
//!
//! # How it is computed
//!
//! A disk is busy in the service time before each completion (`service_ns`: the disk worked on nothing else), so these spans never overlap.
//! The queue is the time of all requests under way, divided by the bucket's length. Bytes count where a transfer completed.
//!
//! # What fools it
//!
//! An SSD works on many requests at once: it is busy with one of them, and can do more.

use crate::operators::lanes::sums::{Sum, Sums};
use crate::operators::lanes::{Kind, Shape};

/// Declaration.
pub static KIND: Kind = Kind {
    name: "disk",
    about: "how busy each disk was, requests under way, bytes read and written",
    tables: &["disk_io"],
    open: |db, extent| Sums::open(&KIND, SUMS, db, extent),
};

static SUMS: &[Sum] = &[
    Sum {
        id: "busy",
        title: "Disk busy",
        shape: Shape::Share,
        upid: "upid",
        by: "disk",
        band: |disk| format!("disk {disk}"),
        names: ["busy_ns", ""],
        ..Sum::over("disk_io", ("ts_ns", "service_ns"), ("ts_ns", ""))
    },
    Sum {
        id: "bytes",
        title: "Disk bytes",
        unit: "bytes",
        amount: "size_bytes",
        upid: "upid",
        by: "disk",
        words: ("op", &["read", "write"]),
        band: |key| format!("disk {} {}", key >> 1, if key & 1 == 0 { "read" } else { "written" }),
        names: ["bytes", ""],
        ..Sum::over("disk_io", ("ts_ns", ""), ("ts_ns", ""))
    },
    Sum {
        id: "queue",
        title: "Disk queue",
        upid: "upid",
        by: "disk",
        band: |disk| format!("disk {disk}"),
        names: ["request_ns", "mean_requests"],
        ..Sum::over("disk_io", ("start_ns", ""), ("ts_ns", ""))
    },
];
