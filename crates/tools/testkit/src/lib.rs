//! What tests share: what the machine has, the program, scenarios, other readers.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "only tests use it")]

mod files;
mod found;
mod given;
mod lists;
mod program;
mod readers;
pub mod schema;
pub mod small_pdb;
mod turns;

pub use files::{files, scenarios, traces};
pub use found::{Json, Str};
pub use given::{corpus, corpus_file, missing, packaged, python, script, skipped};
pub use lists::{Are, sorted};
pub use program::{Program, Run, Trace};
pub use readers::{counted_traces, dissected, told};
pub use turns::alone;

use std::path::{Path, PathBuf};

/// The folder of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// What a program wrote, whatever it is.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
