//! This program, started once more for something that it is asked.

use anyhow::Context as _;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

/// Where this program is.
///
/// # Errors
/// If the system does not tell.
pub fn program() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("cannot tell where this program is")
}

/// Ends a command line with paths: behind `--` a path that begins with a dash is no option, and nothing that follows is one.
pub fn ending_with(mut command: Command, paths: impl IntoIterator<Item: AsRef<OsStr>>) -> Command {
    command.arg("--").args(paths);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_no_option() {
        let mut command = Command::new("etwhy");
        command.args(["extract", "--merge"]);
        let command = ending_with(command, ["--force", "a.etl"]);
        let words: Vec<&OsStr> = command.get_args().collect();
        assert_eq!(words, ["extract", "--merge", "--", "--force", "a.etl"]);
    }
}
