//! Reports as documents: `--md`.

use crate::report::terminal::text;
use etwhy_doc::{Doc, markdown};
use std::io::Write;
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

    /// Writes a document as Markdown to its file or to `out`, or if that is not asked for as text to `out`.
    ///
    /// # Errors
    /// Those of the file and of `out`.
    pub fn write(&self, doc: &Doc, out: &mut impl Write) -> anyhow::Result<()> {
        match self.file() {
            Some(path) => {
                etwhy_export::replace_file(
                    path,
                    |file| Ok(file.write_all(markdown::render(doc).as_bytes())?),
                )?
            }
            None if self.is_printed() => out.write_all(markdown::render(doc).as_bytes())?,
            None => out.write_all(text(doc).as_bytes())?,
        }
        Ok(())
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
