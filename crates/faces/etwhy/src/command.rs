//! What a command is.

use crate::exit::Exit;

/// A command: what it is called, what it says of itself, its arguments, what it does.
pub struct Command {
    /// Name on the command line.
    pub name: &'static str,
    /// One line.
    pub about: &'static str,
    /// A paragraph.
    pub long_about: &'static str,
    /// Examples, shown below the help.
    pub examples: &'static str,
    /// Adds its arguments.
    pub build: fn(clap::Command) -> clap::Command,
    /// Does it.
    pub run: fn(&clap::ArgMatches) -> anyhow::Result<Exit>,
}

/// Name and version.
pub const PROGRAM: &str = concat!("etwhy ", env!("CARGO_PKG_VERSION"));
