//! The server without its page.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod doors;
#[cfg(unix)]
mod processes;
