//! `etwhy evtx messages`.

use crate::exit::Exit;

/// Arguments.
#[derive(clap::Args)]
pub struct Args {}

/// Runs it.
///
/// # Errors
/// None yet.
pub fn run(_: Args) -> anyhow::Result<Exit> {
    anyhow::bail!("not there yet")
}
