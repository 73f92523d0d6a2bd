//! The driver of the campaigns; see the crate's documentation.
#![forbid(unsafe_code)]

use clap::Parser;
use etwhy_fuzz::driver::{Options, run};
use std::process::ExitCode;

fn main() -> ExitCode {
    run(&Options::parse())
}
