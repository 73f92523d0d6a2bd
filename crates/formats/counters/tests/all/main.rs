//! Counter logs against what was written, and against another reader.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod logs;
mod python;
