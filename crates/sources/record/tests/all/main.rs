//! Recordings in every format.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fake;
mod lines;
mod merge;
mod plan;
mod run;
mod schedules;
mod wprp;
