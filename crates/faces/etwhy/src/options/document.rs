//! Reports as documents: `--md`, `--html`.

use crate::report::terminal::text;
use etwhy_doc::{Doc, escape_markup, html, markdown};
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

/// Markdown or HTML, to a file or printed.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct DocumentArgs {
    #[command(flatten)]
    markdown: MarkdownArgs,
    /// Write one HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:80rem;padding:0 1rem;color-scheme:light dark}\
     table{border-collapse:collapse}th,td{text-align:left;vertical-align:top;padding:.3rem .8rem;border-bottom:1px solid #8886}\
     .n{text-align:right;font-variant-numeric:tabular-nums}.scroll{overflow-x:auto}.muted{opacity:.7}.bad{color:#c33}.warning{color:#b70}";

impl DocumentArgs {
    /// Refuses to print two documents.
    ///
    /// # Errors
    /// If JSON is printed too.
    pub fn check(&self, json: bool) -> anyhow::Result<()> {
        self.markdown.check(json)
    }

    /// Writes the document to the files that were asked for, or to `out` if nothing else is wanted: `json` was printed already.
    ///
    /// # Errors
    /// Those of the files and of `out`.
    pub fn write(&self, json: bool, doc: &Doc, out: &mut impl Write) -> anyhow::Result<()> {
        if let Some(path) = &self.html {
            let page = format!(
                "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" \
                 content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<title>{}</title>\n<style>{STYLE}</style></head>\n\
                 <body>\n{}</body></html>\n",
                escape_markup(doc.title.as_deref().unwrap_or("etwhy")),
                html::render(doc)
            );
            etwhy_export::replace_file(path, |file| Ok(file.write_all(page.as_bytes())?))?;
        }
        if self.markdown.is_wanted() || !(json || self.html.is_some()) {
            self.markdown.write(doc, out)?;
        }
        Ok(())
    }
}
