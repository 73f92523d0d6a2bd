//! Pages in a browser.
//!
//! A process of its own: browsers take the whole machine and give up after some time, so its tests take turns.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use etwhy_testkit::Program;

/// The program.
const ETWHY: Program = Program::new(env!("CARGO_BIN_EXE_etwhy"));

mod browser;
mod hud;
#[path = "../all/server.rs"]
mod server;
mod store;
