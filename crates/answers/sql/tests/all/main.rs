//! SQL over tables.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod columns;
mod doors;
mod functions;
mod kept;
mod kernel;
