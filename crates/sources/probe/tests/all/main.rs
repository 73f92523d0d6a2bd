//! Probes and what is made of their results.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod coverage;
mod hostile;
mod one_statement;
mod record;
#[path = "../support/mod.rs"]
mod support;
