//! The collector: a script for the machine whose messages are wanted.

/// A script for PowerShell that packs message files and the registry's list of providers into a `.zip`.
///
/// It was never run on a Windows here; `providers.csv` and the folders that it makes are what tests read.
pub const SCRIPT: &str = include_str!("collect.ps1");
