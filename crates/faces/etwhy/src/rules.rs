//! The findings in force: those that ship and the user's own.

use etwhy_rules::{Rule, with_folders};
use std::path::PathBuf;

/// Where findings come from.
#[derive(clap::Args, Clone, Debug)]
pub struct RuleArgs {
    /// Folders with findings of your own (*.toml). One whose id a shipped finding has takes its place
    #[arg(long, value_name = "DIR")]
    pub rules: Vec<PathBuf>,
}

impl RuleArgs {
    /// The findings, in order of id. What a user's file replaced is said on standard error.
    ///
    /// # Errors
    /// The first file that cannot be used.
    pub fn load(&self) -> anyhow::Result<Vec<Rule>> {
        let found = with_folders(&self.rules)?;
        for line in found.replaced {
            say!("etwhy: {line}");
        }
        Ok(found.rules)
    }
}
