//! Reports as documents: `--md`.

use std::path::{Path, PathBuf};

/// Markdown, to a file or printed.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct MarkdownArgs {
    /// Write Markdown to FILE, or print it
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-", require_equals = true)]
    md: Option<PathBuf>,
}

impl MarkdownArgs {
    /// True if it is asked for.
    pub fn is_wanted(&self) -> bool {
        self.md.is_some()
    }

    /// True if it is printed.
    pub fn is_printed(&self) -> bool {
        self.md.as_deref() == Some(Path::new("-"))
    }

    /// The file that it is written to.
    pub fn file(&self) -> Option<&Path> {
        self.md.as_deref().filter(|_| !self.is_printed())
    }

    /// Refuses to print two documents.
    ///
    /// # Errors
    /// If JSON is printed too.
    pub fn check(&self, json: bool) -> anyhow::Result<()> {
        if json && self.is_printed() {
            anyhow::bail!("--json and --md both print; name a file: --md=FILE");
        }
        Ok(())
    }
}
