//! `etwhy evtx messages build`.

use crate::exit::Exit;
use crate::report::terminal::out;
use etwhy_base::units::thousands;
use etwhy_export::sanitize;
use etwhy_messages::build::{BuildOptions, build_file};
use etwhy_messages::{Messages, Options, lang};
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// A folder of DLLs, a Windows folder or mounted image, a DLL, a .zip or .7z
    #[arg(required = true, value_name = "SOURCE")]
    sources: Vec<PathBuf>,
    /// Write the database to this file
    #[arg(short, long, value_name = "DB")]
    output: PathBuf,
    /// Keep texts in this language, beside neutral ones and English; may be repeated. All are kept without it
    #[arg(long, value_name = "LANGUAGE")]
    language: Vec<String>,
    /// Replace the database if it is there
    #[arg(long)]
    force: bool,
    /// Show no progress bar
    #[arg(short, long)]
    quiet: bool,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    let options = BuildOptions { languages: super::languages(&args.language)? };
    anyhow::ensure!(
        !args.output.exists() || args.force,
        "{} is there already: choose another name, or say --force to replace it",
        args.output.display()
    );
    let bar = match args.quiet || !std::io::stderr().is_terminal() {
        true => indicatif::ProgressBar::hidden(),
        false => indicatif::ProgressBar::new_spinner(),
    };
    let report = build_file(&args.sources, &args.output, &options, args.force, &mut |name| {
        bar.set_message(sanitize(name).into_owned());
        bar.tick();
    })?;
    bar.finish_and_clear();
    let messages = Messages::open(std::slice::from_ref(&args.output), &Options::default())?;
    let counts = messages.counts()?;
    let mut out = out();
    let n = |count: u64| thousands(count.into());
    writeln!(
        out,
        "{}: {} texts, {} types of events of {} providers, {} classic providers; from {} of {} files.",
        sanitize(&args.output.display().to_string()),
        n(counts.messages),
        n(counts.events),
        n(counts.manifest_providers),
        n(counts.classic_providers),
        n(report.files_used),
        n(report.files_seen),
    )?;
    let languages: Vec<String> = messages
        .languages()?
        .iter()
        .take(8)
        .map(|(l, count)| format!("{} {}", lang::name(*l), n(*count)))
        .collect();
    if !languages.is_empty() {
        writeln!(out, "Languages: {}.", languages.join(", "))?;
    }
    match report.registries.is_empty() {
        true => writeln!(
            out,
            "No registry was there: which file belongs to a classic provider will be guessed, and marked as a guess."
        )?,
        false => {
            let names: Vec<_> = report.registries.iter().map(|name| sanitize(name)).collect();
            writeln!(out, "Providers as registered in {}: {}.", names.join(", "), n(report.registered))?;
        }
    }
    out.flush()?;
    for line in &report.failed {
        say!("etwhy: {line}");
    }
    if report.more_failed > 0 {
        say!("etwhy: and {} more", n(report.more_failed));
    }
    Ok(match report.failed.is_empty() {
        true => Exit::Done,
        false => Exit::InPart,
    })
}
