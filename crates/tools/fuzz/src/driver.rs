//! The campaign: children run mutants, the parent watches them.
//!
//! A child announces every mutant on its standard output before it runs it, so the parent knows which one is
//! to blame when the child hangs, eats memory or dies. Panics are caught in the child. What took too long or
//! too much is tried again in a fresh child before it counts as a finding.

mod child;
mod options;
mod parent;

pub use options::Options;

use crate::hostile::{MACHINES, TRACES};
use std::path::Path;
use std::process::ExitCode;

/// Runs a campaign, one file, or the part of a child.
pub fn run(options: &Options) -> ExitCode {
    if options.child {
        return child::run(options);
    }
    if let (Some(name), Some(file)) = (&options.bomb, &options.file) {
        return write_bombs(name, file);
    }
    if let Some(file) = &options.file {
        return parent::one_file(options, file);
    }
    parent::campaign(options)
}

/// Writes hostile traces, to be run with `--file` one by one.
fn write_bombs(name: &str, place: &Path) -> ExitCode {
    let mut known = false;
    for bomb in TRACES.iter().chain(MACHINES).filter(|bomb| name == "all" || bomb.name == name) {
        known = true;
        let file = if name == "all" { place.join(format!("{}.etl", bomb.name)) } else { place.to_owned() };
        if let Err(error) = (bomb.make)().and_then(|data| std::fs::write(&file, data)) {
            eprintln!("etwhy-fuzz: {}: {error}", file.display());
            return ExitCode::from(2);
        }
    }
    if known {
        return ExitCode::SUCCESS;
    }
    eprintln!("etwhy-fuzz: there is no hostile input `{name}`");
    ExitCode::from(2)
}
