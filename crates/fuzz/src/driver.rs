//! The campaign: children run mutants, the parent watches them.
//!
//! A child announces every mutant on its standard output before it runs it, so the parent knows which one is
//! to blame when the child hangs, eats memory or dies. Panics are caught in the child. What took too long or
//! too much is tried again in a fresh child before it counts as a finding.

mod child;
mod options;
mod parent;

pub use options::Options;

use std::process::ExitCode;

/// Runs a campaign, one file, or the part of a child.
pub fn run(options: &Options) -> ExitCode {
    if options.child {
        return child::run(options);
    }
    if let Some(file) = &options.file {
        return parent::one_file(options, file);
    }
    parent::campaign(options)
}
