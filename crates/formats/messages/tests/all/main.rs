//! Texts of events, against other compilers and readers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod compiled;
mod hostile;
mod independent;
mod samples;
mod windows;
