//! `etwhy record merge`: files of one recording as one trace, with the identities of images.

use crate::exit::Exit;
use crate::open::{Files, TraceArgs};
use crate::report::terminal::{out, path};
use anyhow::{Context as _, bail};
use etwhy_base::units::{bytes, thousands};
use etwhy_etl::read::EtlFile;
use etwhy_etl::{Ledger, Severity, Stage};
use etwhy_record::merge::{MachineFacts, MergeOptions, Merged, merge};
use etwhy_scratch::Scratch;
use etwhy_symbols::{SourceOptions, SymbolPath};
use etwhy_trace::identity::Identity;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

pub const EXAMPLES: &str = "Examples:\n  etwhy record merge slow.etl slow.user.etl -o merged.etl\n  \
                            etwhy record merge slow.etl slow.user.etl --images /mnt/disk-of-that-machine -o merged.etl\n  \
                            etwhy record merge C:\\traces -o week.etl";

#[derive(clap::Args)]
pub struct Args {
    /// Traces of one recording: its kernel and user part, its segments
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<PathBuf>,
    /// Write the merged trace to FILE
    #[arg(long, short, value_name = "FILE", required = true)]
    output: PathBuf,
    /// Folders with images (.exe, .dll, .sys), or copies of disks: events of images get the PDB, version and name of the file of the
    /// same time stamp and size. On the Windows machine that was recorded its own disks are looked at without this
    #[arg(long, value_name = "DIR")]
    images: Vec<PathBuf>,
    /// Replace FILE if it is there
    #[arg(long)]
    force: bool,
    /// Read all traces as one, also those of different recordings or machines (their process ids, times and totals get mixed)
    #[arg(long)]
    merge: bool,
    /// Look for traces in folders inside folders too
    #[arg(long)]
    recursive: bool,
    /// Threads to use (default: all processors)
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Show no progress bar
    #[arg(long, short)]
    quiet: bool,
}

pub fn run(args: &Args) -> anyhow::Result<Exit> {
    if etwhy_export::is_stdout(&args.output) {
        bail!("a merged trace is no stream: name a file");
    }
    if let Some(folder) = args.images.iter().find(|folder| !folder.is_dir()) {
        bail!("--images {}: no such folder", folder.display());
    }
    let given = TraceArgs {
        merge: args.merge,
        recursive: args.recursive,
        threads: args.threads,
        quiet: args.quiet,
        ..TraceArgs::of(&args.traces)?
    };
    let files = given.files()?;
    if files.list.iter().any(|file| is_same(file.shown(), &args.output)) {
        bail!("{} is one of the traces that are to be merged: name another file", args.output.display());
    }
    let own = is_of_this_machine(&files.list);
    let machine = if own { MachineFacts::of_this_one() } else { MachineFacts::default() };
    let facts = MachineFacts { images: [args.images.as_slice(), &machine.images].concat(), ..machine };
    let replace = if args.force { Replace::Yes } else { Replace::No };
    let done = write(files, &args.output, replace, &facts, given.threads())?;
    tell(&done);
    let mut out = out();
    writeln!(out, "{}", path(&args.output))?;
    out.flush()?;
    Ok(if is_in_part(&done.ledger) { Exit::InPart } else { Exit::Done })
}

/// Whether all traces that name their computer were recorded on this one, and one does. No other system than Windows records any.
fn is_of_this_machine(files: &[EtlFile]) -> bool {
    let Some(own) = std::env::var("COMPUTERNAME").ok().filter(|_| cfg!(windows)) else { return false };
    let names: Vec<String> =
        files.iter().filter_map(|file| Identity::from_file(file).machine.computer).collect();
    !names.is_empty() && names.iter().all(|name| name.eq_ignore_ascii_case(&own))
}

/// Whether two names are of one file.
fn is_same(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Something in the files could not be used.
fn is_in_part(ledger: &Ledger) -> bool {
    ledger.entries().any(|entry| match entry.anomaly.severity {
        Severity::Error => true,
        Severity::DataLoss => matches!(entry.anomaly.stage, Stage::Input | Stage::Read),
        _ => false,
    })
}

/// Merges the files that a recording of this machine has left into the first of them, and deletes the others. If that fails they all
/// stay as they are, and why is said.
pub fn merge_parts(parts: Vec<PathBuf>) -> Vec<PathBuf> {
    let Some(target) = parts.first().cloned() else { return parts };
    say!("etwhy: merging, and looking for the identities of images");
    let merged = || -> anyhow::Result<Merged> {
        // They are of one recording, whatever their contents look like.
        let given = TraceArgs { merge: true, ..TraceArgs::of(&parts)? };
        let files = given.files()?;
        if files.list.len() != parts.len() {
            bail!("a file of the recording cannot be read");
        }
        write(files, &target, Replace::ByAllOfIt, &MachineFacts::of_this_one(), given.threads())
    };
    match merged() {
        Ok(done) => tell(&done),
        Err(error) => {
            say!("etwhy: the files are not merged: {error:#}");
            return parts;
        }
    }
    for part in parts.iter().skip(1) {
        if let Err(error) = std::fs::remove_file(part) {
            let target = target.display();
            say!("etwhy: {} is merged into {target} and can be deleted: {error}", part.display());
        }
    }
    vec![target]
}

/// Whether a file that is there is replaced.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Replace {
    No,
    Yes,
    /// It is one of the files that are merged, and the others go: only if the result has everything that stands in them.
    ByAllOfIt,
}

fn write(
    files: Files,
    output: &Path,
    replace: Replace,
    facts: &MachineFacts,
    threads: usize,
) -> anyhow::Result<Merged> {
    if output.exists() && replace == Replace::No {
        bail!("{} is there already: name another file, or --force", output.display());
    }
    let failed = || format!("{}: cannot be written", output.display());
    let options = SourceOptions { images: facts.images.clone(), offline: true, ..SourceOptions::default() };
    let sources = SymbolPath::default().sources(options);
    let options = MergeOptions { images: Some(&sources), volumes: &facts.volumes, threads };
    let scratch = Scratch::beside(output).with_context(failed)?;
    let whole = scratch.path().join("merged.etl");
    let mut file = BufWriter::with_capacity(1 << 20, File::create(&whole).with_context(failed)?);
    let mut done = merge(&files.list, &options, &mut file)?;
    done.ledger.merge(&files.ledger);
    if replace == Replace::ByAllOfIt && is_in_part(&done.ledger) {
        bail!("something in them cannot be read");
    }
    let file = file.into_inner().map_err(|error| error.into_error()).with_context(failed)?;
    file.sync_all().with_context(failed)?;
    // Windows renames and replaces no file that is open.
    drop((file, files));
    std::fs::rename(&whole, output).with_context(failed)?;
    Ok(done)
}

fn tell(done: &Merged) {
    let number = |n: u64| thousands(n.into());
    let size = bytes(i64::try_from(done.bytes).unwrap_or(i64::MAX));
    if done.unchanged {
        say!("etwhy: that is a merged trace to which nothing can be added: copied as it is, {size}");
    } else {
        let added =
            if done.added == 0 { String::new() } else { format!(" and {} added", number(done.added)) };
        say!("etwhy: {} records copied{added}, {size}", number(done.copied));
    }
    let missing = done.images.saturating_sub(done.identified);
    if missing > 0 {
        say!(
            "etwhy: {} of {} images have no identity: --images names folders with their files",
            number(missing as u64),
            number(done.images as u64)
        );
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn parts_go_only_when_all_of_them_is_in_the_merged_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut scenario = etwhy_synth::Scenario::parse(etwhy_synth::DEMO, "demo").unwrap();
        scenario.scale(0.01).unwrap();
        let part = folder.path().join("slow.etl");
        etwhy_synth::write(&scenario, &part, &mut |_| {}).unwrap();
        let mut whole = std::fs::read(&part).unwrap();
        // As a session leaves it: not merged.
        for name in ["Relogger", "[multiple files]"] {
            let name: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
            while let Some(at) = whole.windows(name.len()).position(|bytes| bytes == name) {
                whole.get_mut(at..at + 2).unwrap().copy_from_slice(b"S\0");
            }
        }
        // The header of the last buffer but one says nonsense.
        let mut damaged = whole.clone();
        let at = (whole.len() / 0x10000).saturating_sub(2) * 0x10000;
        damaged.get_mut(at..at + 0x40).unwrap().fill(0xFF);
        std::fs::write(&part, &damaged).unwrap();
        assert_eq!(merge_parts(vec![part.clone()]), std::slice::from_ref(&part));
        assert!(std::fs::read(&part).unwrap() == damaged, "it stays as it was");
        std::fs::write(&part, &whole).unwrap();
        assert_eq!(merge_parts(vec![part.clone()]), std::slice::from_ref(&part));
        assert!(std::fs::read(&part).unwrap() != whole, "it is packed now");
    }
}
