//! Culprits that are really there.
//!
//! A process of its own: what opens cost is measured, so its tests take turns.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use etwhy_testkit::Program;

/// The program.
const ETWHY: Program = Program::new(env!("CARGO_BIN_EXE_etwhy"));

mod probe_ab;
mod probe_inside;
mod record_windows;
mod windows_inside;
