//! Extracts as input.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod damaged_extract;
