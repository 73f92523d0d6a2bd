//! Tests of following: what a window says is what a pass over the finished trace says of that part.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod findings;
mod growing;
mod growing_segments;
mod last_seconds;
mod parts;
mod rotation;
mod same_rows;
