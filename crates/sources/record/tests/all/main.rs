//! Recordings in every format.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod lines;
mod plan;
mod wprp;
