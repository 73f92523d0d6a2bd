//! Archives of every kind, also hostile ones.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod archives;
