//! What is done with a recording that runs.

use super::merge::merge_parts;
use crate::exit::Exit;
use crate::report::terminal::{out, path, text};
use etwhy_base::{time, units};
use etwhy_doc::Doc;
use etwhy_record::run::{Here, Journal, Mode, Phase, Recorder, Refused, State, Status, loggers};
use serde_json::json;
use std::io::Write as _;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct StatusArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub struct MarkArgs {
    /// The text
    #[arg(value_name = "TEXT")]
    text: String,
}

#[derive(clap::Args)]
pub struct OutputArgs {
    /// Write the merged trace to FILE
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Leave the files as Windows has written them: the kernel's events in FILE, others beside it (trace.user.etl)
    #[arg(long)]
    no_merge: bool,
    /// Replace FILE if it is there
    #[arg(long)]
    force: bool,
}

pub fn status(args: &StatusArgs) -> anyhow::Result<Exit> {
    let status = Here::open()?.step(|recorder| recorder.status())?;
    let text = match (&status, args.json) {
        (None, true) => "null\n".to_owned(),
        (None, false) => "No recording of etwhy is there.\n".to_owned(),
        (Some(status), true) => serde_json::to_string_pretty(&as_json(status))? + "\n",
        (Some(status), false) => text(&as_doc(status)),
    };
    let mut out = out();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(Exit::Done)
}

fn as_json(status: &Status) -> serde_json::Value {
    let live: Vec<_> = status
        .live
        .iter()
        .map(|(entry, live)| {
            json!({
                "session": entry.name,
                "runs": live.is_some(),
                "events_lost": live.as_ref().map(|l| l.events_lost),
                "buffers_lost": live.as_ref().map(|l| l.buffers_lost),
                "buffers_written": live.as_ref().map(|l| l.buffers_written),
            })
        })
        .collect();
    json!({ "journal": status.journal, "live": live, "bytes": status.bytes })
}

fn as_doc(status: &Status) -> Doc {
    let journal = &status.journal;
    let mut doc = Doc::default();
    doc.heading(format!("{} since {}", journal.profiles.join(", "), utc(journal.began_ms)));
    let bytes = units::bytes(i64::try_from(status.bytes).unwrap_or(i64::MAX));
    doc.note("files", format!("{bytes} in {}", journal.folder.display()));
    let mode = match journal.mode {
        Mode::File => "all of it".to_owned(),
        Mode::Rotate { every_ms, keep } => format!(
            "files of {}, {} are kept",
            units::duration(every_ms as f64 * 1e6),
            units::bytes(i64::try_from(keep).unwrap_or(i64::MAX))
        ),
        Mode::Ring { mebibytes } => format!("the last {mebibytes} MiB, in memory"),
    };
    doc.note("keeps", mode);
    if journal.phase == Phase::Boot {
        doc.note("records", "one start of Windows; `etwhy record stop` ends it");
    }
    if !journal.programs.is_empty() {
        doc.note("providers of", journal.programs.join(", "));
    }
    for (entry, live) in &status.live {
        let state = match (live, entry.state) {
            (Some(live), _) => format!(
                "records; {} buffers written, {} events and {} buffers lost",
                live.buffers_written, live.events_lost, live.buffers_lost
            ),
            (None, State::Stopped) => "stopped".to_owned(),
            (None, State::Lost) => "was ended or taken over by another program".to_owned(),
            (None, _) if journal.phase == Phase::Boot => {
                "does not record yet: it begins with the next start of Windows".to_owned()
            }
            (None, _) => {
                "does not run: another program has ended it, or the machine has restarted".to_owned()
            }
        };
        doc.note(entry.name.clone(), state);
    }
    for remark in &journal.remarks {
        doc.note(utc(remark.ms), remark.text.clone());
    }
    doc
}

/// `2026-11-24 10:00:00 UTC`.
fn utc(ms: u64) -> String {
    let ns = i64::try_from(ms).unwrap_or(0).saturating_mul(1_000_000);
    format!("{} UTC", time::filetime_text(time::filetime(ns), 0).trim_end_matches('Z').replace('T', " "))
}

pub fn mark(args: &MarkArgs) -> anyhow::Result<Exit> {
    Here::open()?.step(|recorder| recorder.mark(&args.text))?;
    Ok(Exit::Done)
}

pub fn save(args: &OutputArgs) -> anyhow::Result<Exit> {
    let mut here = Here::open()?;
    let (saved, is_ring) = here.step(|recorder| {
        let known = remarks(recorder)?;
        let saved = recorder.keep()?;
        let Some(status) = recorder.status()? else { return Ok((saved, false)) };
        tell_since(&status.journal, known);
        Ok((saved, matches!(status.journal.mode, Mode::Ring { .. })))
    })?;
    let files = match &args.output {
        None => saved,
        Some(output) => {
            let parts = here.step(|recorder| recorder.take(&saved, output, args.force))?;
            if args.no_merge { parts } else { merge_parts(parts) }
        }
    };
    let exit = print_files(&files)?;
    if is_ring {
        // What was in memory is as long as it happens to be.
        let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        say!("etwhy: what the last minute of it says: etwhy why {} --from -60s", names.join(" "));
    }
    Ok(exit)
}

pub fn stop(args: &OutputArgs) -> anyhow::Result<Exit> {
    let asked = Ending { output: args.output.clone(), replace: args.force, parts: args.no_merge };
    let end = Here::open()?.step(|recorder| finish(recorder, &asked))?;
    end.tell()
}

/// What is asked of the files of a recording that ends, besides what was asked when it began.
#[derive(Clone, Debug, Default)]
pub struct Ending {
    output: Option<PathBuf>,
    replace: bool,
    parts: bool,
}

/// A recording that has ended.
pub struct Ended {
    files: Vec<PathBuf>,
    /// They become one trace.
    merge: bool,
    /// They are no parts of one trace.
    apart: bool,
}

/// Ends the recording and moves its files to where they belong. All of it is one step, so that the guard and another command do not
/// both do it.
pub fn finish(recorder: &mut Recorder<'_>, asked: &Ending) -> Result<Ended, Refused> {
    // While they run: what the others record is told nowhere else.
    let sessions = recorder.sessions.list().unwrap_or_default();
    let known = remarks(recorder)?;
    let journal = recorder.stop()?;
    tell_since(&journal, known);
    let named = asked.output.clone().or_else(|| journal.output.clone());
    let output = named.unwrap_or_else(|| {
        let began = utc(journal.began_ms).replace(" UTC", "").replace(' ', "-").replace(':', "");
        PathBuf::from(format!("etwhy-{}-{began}.etl", journal.profiles.join("-")))
    });
    let replace = asked.replace || journal.replace;
    let files = recorder.collect(&output, replace)?;
    // Segments lie in a folder of others.
    if !matches!(journal.mode, Mode::Rotate { .. }) && !files.is_empty() && !sessions.is_empty() {
        write_loggers(&output, &loggers(&sessions), replace);
    }
    let apart = match journal.mode {
        // Days of segments: `etwhy segments` finds the one that is worth a look.
        Mode::Rotate { .. } => true,
        // What was saved earlier may hold the same events once more. The kernel's, those of providers, and the names are one recording.
        Mode::Ring { .. } => files.len() > 3,
        // A session has one file, unless Windows has started again and numbered the next.
        Mode::File => journal.sessions.iter().any(|entry| entry.files.len() > 1),
    };
    Ok(Ended { files, merge: !(apart || asked.parts || journal.parts), apart })
}

/// How many remarks a recording has.
fn remarks(recorder: &mut Recorder<'_>) -> Result<usize, Refused> {
    Ok(recorder.status()?.map_or(0, |status| status.journal.remarks.len()))
}

/// Says what was remarked since.
fn tell_since(journal: &Journal, known: usize) {
    for remark in journal.remarks.iter().skip(known) {
        say!("etwhy: {}", remark.text);
    }
}

/// Writes the list of sessions beside the trace, where it is looked for. The trace is good without it.
fn write_loggers(trace: &Path, list: &str, replace: bool) {
    let path = trace.with_extension("loggers.txt");
    let mut options = std::fs::OpenOptions::new();
    if replace {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    let written = options.write(true).open(&path).and_then(|mut file| file.write_all(list.as_bytes()));
    if let Err(error) = written {
        say!("etwhy: {}: the list of sessions is not written: {error}", path.display());
    }
}

impl Ended {
    /// Its files.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Merges the files, and tells which there are and what to do with them.
    pub fn tell(self) -> anyhow::Result<Exit> {
        if self.files.is_empty() {
            say!("etwhy: no file was written: Windows has recorded nothing");
            return Ok(Exit::InPart);
        }
        let files = if self.merge { merge_parts(self.files) } else { self.files };
        let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        let names = if names.len() > 8 { "FILES".to_owned() } else { names.join(" ") };
        let exit = print_files(&files)?;
        say!("etwhy: what it says: etwhy why {names}");
        if !self.merge && !self.apart {
            say!(
                "etwhy: before they leave this machine: `etwhy record merge {names} -o merged.etl` adds the identities of images, \
                 without which symbols cannot be found"
            );
        }
        Ok(exit)
    }
}

/// One file a line.
pub fn print_files(files: &[PathBuf]) -> anyhow::Result<Exit> {
    let mut out = out();
    for file in files {
        writeln!(out, "{}", path(file))?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

pub fn cancel() -> anyhow::Result<Exit> {
    let ended = Here::open()?.step(|recorder| recorder.cancel())?;
    if ended.is_empty() {
        say!("etwhy: no recording of etwhy is there");
    }
    let mut out = out();
    for name in ended {
        writeln!(out, "ended: {name}")?;
    }
    out.flush()?;
    Ok(Exit::Done)
}
