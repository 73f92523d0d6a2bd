//! Tests of the suite itself.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod scoring;
mod writing;
