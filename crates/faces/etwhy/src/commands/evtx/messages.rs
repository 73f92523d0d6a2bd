//! `etwhy evtx messages`: databases of the texts of events.

mod build;
mod list;
mod show;

use crate::exit::Exit;
use crate::report::terminal::out;
use anyhow::Context as _;
use etwhy_messages::lang;
use std::io::Write as _;

/// Arguments.
#[derive(clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    word: Word,
}

#[derive(clap::Subcommand)]
enum Word {
    /// Build a database from DLLs: a folder, a Windows folder or mounted image with its registry, an archive
    ///
    /// Reads message tables and event templates of DLLs, programs, drivers and their translations (.mui), and which provider
    /// uses which file: from the registry if SOURCE has System32/config (or .reg files, or the collector's list), else by
    /// guessing, which is marked. Disk images have to be mounted first.
    #[command(after_help = "Examples:\n  etwhy evtx messages build /mnt/windows -o messages.db\n  \
                            etwhy evtx messages build host-messages.zip -o host.db --language de-DE")]
    Build(build::Args),
    /// What a database, folder or file holds: providers, events, languages, files
    List(list::Args),
    /// The texts of a provider, or of one of its events with its fields
    #[command(
        after_help = "Examples:\n  etwhy evtx messages show messages.db Microsoft-Windows-Security-Auditing\n  \
                            etwhy evtx messages show messages.db Microsoft-Windows-Security-Auditing 4624"
    )]
    Show(show::Args),
    /// Print a PowerShell script that packs what `build` reads on a Windows machine
    #[command(after_help = "Example:\n  etwhy evtx messages collect > collect.ps1")]
    Collect,
}

/// Runs it.
///
/// # Errors
/// If a file cannot be read or written.
pub fn run(args: Args) -> anyhow::Result<Exit> {
    match args.word {
        Word::Build(args) => build::run(args),
        Word::List(args) => list::run(args),
        Word::Show(args) => show::run(args),
        Word::Collect => {
            let mut out = out();
            // Without a mark at its start, old PowerShells read other than ASCII wrongly; there is nothing else in it.
            out.write_all(etwhy_messages::build::COLLECTOR.as_bytes())?;
            out.flush()?;
            Ok(Exit::Done)
        }
    }
}

/// The numbers of languages.
pub(super) fn languages(names: &[String]) -> anyhow::Result<Vec<u16>> {
    names
        .iter()
        .map(|name| {
            lang::parse(name)
                .with_context(|| format!("{name:?} is no language that Windows has: write de-DE, de or 1031"))
        })
        .collect()
}

/// A text of several lines, safe for a terminal, with tabs filled up to columns of eight as Event Viewer does.
fn lines(text: &str) -> Vec<String> {
    text.lines()
        .map(|line| {
            let mut out = String::new();
            for (at, cell) in line.split('\t').enumerate() {
                if at > 0 {
                    let have = etwhy_export::text::width(&out);
                    out.extend(std::iter::repeat_n(' ', 8 - have % 8));
                }
                out.push_str(&etwhy_export::sanitize(cell));
            }
            out
        })
        .collect()
}
