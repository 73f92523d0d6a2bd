//! The adversarial suite, which is a crate of its own.

use anyhow::{Context as _, Result, bail};
use std::process::Command;

/// Runs it with these options.
///
/// # Errors
/// If it does not build, or fails.
pub fn run(options: &[&str]) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["run", "--quiet", "--package", "etwhy-truth", "--"])
        .args(options)
        .status()
        .context("cargo did not start")?;
    if !status.success() {
        bail!("the suite failed");
    }
    Ok(())
}
