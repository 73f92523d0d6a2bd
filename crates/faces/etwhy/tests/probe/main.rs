//! `etwhy probe` as users run it.
//!
//! A process of its own: probes are measured and interrupted, and scripts are written that stand in for other programs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use etwhy_testkit::Program;

/// The program.
const ETWHY: Program = Program::new(env!("CARGO_BIN_EXE_etwhy"));

mod probe;
mod probe_compare;
mod probe_record;
