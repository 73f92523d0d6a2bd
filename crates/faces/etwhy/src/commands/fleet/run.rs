//! `etwhy fleet run`.

use super::reading::Reading;
use crate::command::PROGRAM;
use crate::exit::Exit;
use crate::options::document::MarkdownArgs;
use crate::own;
use crate::progress::Bar;
use crate::report::terminal::out;
use anyhow::{Context as _, bail};
use etwhy_base::units::{bytes, duration_ns, thousands};
use etwhy_doc::{Column, Doc, Line, Table};
use etwhy_export::sanitize;
use etwhy_fleet::inbox::{self, Found, Inbox};
use etwhy_fleet::memory::Memory;
use etwhy_fleet::runner::Limits;
use etwhy_fleet::session::{self, Event, Host, Settings, Summary};
use etwhy_fleet::store::Store;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{BufRead as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

#[derive(clap::Args)]
pub struct Args {
    /// Folders with traces (all in them), traces, archives, patterns, or - for a list of these on standard input, one a line
    #[arg(value_name = "INBOX", required = true)]
    inbox: Vec<PathBuf>,
    /// Write to a store: a folder that is made or added to
    #[arg(long, short, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    reading: Reading,
    /// Traces that are read at the same time (default: one for each processor)
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Most time for one trace
    #[arg(long, value_name = "SECONDS", default_value_t = 1800)]
    timeout: u64,
    /// Most memory for one trace (on Linux; files that it maps do not count)
    #[arg(long, value_name = "SIZE", value_parser = crate::open::size, default_value = "8GB")]
    memory: u64,
    /// Traces that are committed together
    #[arg(long, value_name = "N", default_value_t = 64)]
    batch: usize,
    /// Read again what could not be read before
    #[arg(long)]
    retry: bool,
    /// Look for new traces every SECONDS until Ctrl-C; a file is read when it no longer grows
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "10", require_equals = true)]
    watch: Option<u64>,
    /// Print JSON
    #[arg(long, conflicts_with = "watch")]
    json: bool,
    #[command(flatten)]
    markdown: MarkdownArgs,
    /// Show no progress bar
    #[arg(long, short)]
    quiet: bool,
}

/// Traces that a summary names.
const SHOWN: usize = 20;

/// This program, started for a trace.
pub struct Own {
    program: PathBuf,
    options: Vec<std::ffi::OsString>,
    settings_id: String,
    threads: usize,
    memory: u64,
}

impl Own {
    /// So many at a time, each with so much memory.
    pub fn new(reading: &Reading, settings_id: &str, jobs: usize, memory: u64) -> anyhow::Result<Own> {
        Ok(Own {
            program: own::program()?,
            options: reading.options(),
            settings_id: settings_id.to_owned(),
            threads: (processors() / jobs).max(1),
            memory,
        })
    }

    fn command(&self, word: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["fleet", word, "--supervised"]);
        command
    }
}

impl Host for Own {
    fn extract(&self, files: &[&Path], trace_id: Option<&str>, folder: &Path) -> Command {
        let mut command = self.command("extract");
        command.args(&self.options).arg(format!("--threads={}", self.threads));
        command.arg(format!("--settings-id={}", self.settings_id));
        // Tables go to temporary files before the limit is near.
        command.arg(format!("--memory={}", self.memory / 2)).arg("--output").arg(folder);
        if let Some(trace_id) = trace_id {
            command.arg("--merge").arg(format!("--trace-id={trace_id}"));
        }
        own::ending_with(command, files)
    }

    fn identify(&self, files: &[&Path]) -> Command {
        own::ending_with(self.command("identify"), files)
    }
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    args.markdown.check(args.json)?;
    if args.batch == 0 || args.jobs == Some(0) {
        bail!("--jobs and --batch begin at 1");
    }
    let given = given(&args.inbox)?;
    crate::knowledge::load(&args.reading.knowledge)?;
    // A rule that makes no sense is said once, not by each process.
    args.reading.rules.load()?;
    let settings_id = args.reading.settings_id()?;
    let first = inbox::list(&given)?;
    // Without a trace there is no store either, unless traces are waited for.
    if first.files.is_empty() && args.watch.is_none() {
        first.shut.iter().for_each(say_shut);
        bail!("there is no trace in what was given");
    }
    let (store, lock) = Store::create(&args.output)?;
    let jobs = args.jobs.unwrap_or_else(processors);
    let host = Own::new(&args.reading, &settings_id, jobs, args.memory)?;
    let limits = Limits { time: Some(Duration::from_secs(args.timeout)), memory: Some(args.memory) };
    let settings = Settings { program: PROGRAM.to_owned(), settings_id, jobs, limits, batch: args.batch };
    let mut memory = Memory::of(&store, args.retry)?;
    let mut shown = Shown::default();
    let Some(pause) = args.watch else {
        shown.shut = first.shut;
        let summary = once(&store, first.files, &mut memory, &settings, &host, &mut shown, args.quiet)?;
        etwhy_fleet::merge::merge(&store, &lock)?;
        let exit = if shown.shut.is_empty() { exit(&summary) } else { Exit::InPart };
        report(&args, &store, &summary, &shown)?;
        return Ok(exit);
    };
    let (mut before, mut said): (Vec<Found>, Option<String>) = (Vec::new(), None);
    let mut resting = Resting::default();
    loop {
        // A share that does not answer for a while is no reason to end. What is wrong is said when it changes.
        let (now, trouble) = match inbox::list(&given) {
            Ok(Inbox { files, shut }) => {
                shut.iter().filter(|one| !shown.shut.contains(one)).for_each(say_shut);
                shown.shut = shut;
                (files, None)
            }
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        if let Some(trouble) = trouble.as_ref().filter(|_| trouble != said) {
            say!("etwhy: {trouble}; waiting");
        }
        said = trouble;
        // What still grows is not whole: a file is taken when it was there before as it is now.
        let mut still: Vec<Found> =
            now.iter().filter(|file| before.binary_search(file).is_ok()).cloned().collect();
        still.retain(|file| !resting.rests(file));
        before = now;
        let summary = once(&store, still, &mut memory, &settings, &host, &mut shown, args.quiet)?;
        resting.failed(summary.again.clone());
        etwhy_fleet::merge::merge(&store, &lock)?;
        for (outcome, count) in &summary.outcomes {
            say!("etwhy: {} {outcome}", thousands(*count as i128));
        }
        for [path, outcome, reason] in shown.rows.drain(..) {
            say!("etwhy: {outcome}: {path}: {reason}");
        }
        if std::mem::take(&mut shown.more) > 0 {
            say!("etwhy: and more: table `run` of the store has all");
        }
        std::thread::sleep(Duration::from_secs(pause.max(1)));
    }
}

/// Files that could not be read by no fault of theirs. Each is tried again after twice as many looks as before, at most `MOST_LOOKS`: a disk
/// that is full does not cost the time of the whole trace at every look.
#[derive(Default)]
struct Resting(BTreeMap<Found, (u32, u32)>);

impl Resting {
    const MOST_LOOKS: u32 = 64;

    /// True if this look leaves the file out.
    fn rests(&mut self, file: &Found) -> bool {
        let Some((_, left)) = self.0.get_mut(file).filter(|(_, left)| *left > 0) else { return false };
        *left -= 1;
        true
    }

    fn failed(&mut self, files: Vec<Found>) {
        for file in files {
            let (looks, left) = self.0.entry(file).or_default();
            *looks = looks.saturating_mul(2).clamp(1, Self::MOST_LOOKS);
            *left = *looks;
        }
    }
}

/// Processors of this machine.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Whatever was given, with lists from standard input.
pub fn given(inbox: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for path in inbox {
        if path != Path::new("-") {
            all.push(path.clone());
            continue;
        }
        for line in std::io::stdin().lock().lines() {
            let line = line.context("cannot read the list on standard input")?;
            let line = line.trim_end_matches('\r');
            if !line.is_empty() {
                all.push(PathBuf::from(line));
            }
        }
    }
    Ok(all)
}

/// Traces that were not read well.
#[derive(Default)]
struct Shown {
    rows: Vec<[String; 3]>,
    more: usize,
    /// Folders that could not be looked through.
    shut: Vec<(PathBuf, String)>,
}

pub fn say_shut((folder, why): &(PathBuf, String)) {
    say!("etwhy: not looked through: {}: {why}", folder.display());
}

fn once(
    store: &Store,
    files: Vec<Found>,
    memory: &mut Memory,
    settings: &Settings,
    host: &Own,
    shown: &mut Shown,
    quiet: bool,
) -> anyhow::Result<Summary> {
    let bar = Bar::new("reading", quiet);
    let (mut done, mut total) = (0u64, 0u64);
    let summary = session::run(store, files, memory, settings, host, &mut |event| match event {
        Event::Planned { bytes, .. } => {
            total = *bytes;
            bar.set(0, total);
        }
        Event::Read { bytes, outcome, path, reason } => {
            done = done.saturating_add(*bytes);
            bar.set(done, total);
            tracing::info!("{path}: {outcome}");
            if !matches!(*outcome, "read" | "copy") {
                match shown.rows.len() < SHOWN {
                    true => shown.rows.push([
                        path.clone(),
                        (*outcome).to_owned(),
                        reason.clone().unwrap_or_default(),
                    ]),
                    false => shown.more = shown.more.saturating_add(1),
                }
            }
        }
    })?;
    Ok(summary)
}

fn exit(summary: &Summary) -> Exit {
    let of = |name: &str| summary.outcomes.get(name).copied().unwrap_or(0);
    let all: usize = summary.outcomes.values().sum();
    let well = of("read").saturating_add(of("copy"));
    if all == well { Exit::Done } else { Exit::InPart }
}

fn report(args: &Args, store: &Store, summary: &Summary, shown: &Shown) -> anyhow::Result<()> {
    let mut out = out();
    if args.json {
        let outcomes: BTreeMap<&str, usize> = summary.outcomes.clone();
        let value = json!({
            "schema": "etwhy.fleet-run/1", "store": store.path().display().to_string(), "files": summary.files,
            "known": summary.known, "outcomes": outcomes, "cpu_ns": summary.cpu_ns, "bytes": summary.bytes,
            "store_bytes": store.bytes()?,
            "unread_folders": shown.shut.iter().map(|(folder, why)| json!({ "folder": inbox::text(folder), "reason": why })).collect::<Vec<_>>(),
        });
        etwhy_report::json::to_writer_pretty(&mut out, &value)?;
        writeln!(out)?;
        out.flush()?;
        return Ok(());
    }
    args.markdown.write(&document(store, summary, shown)?, &mut out)?;
    out.flush()?;
    Ok(())
}

fn files(count: usize) -> String {
    format!("{} file{}", thousands(count as i128), if count == 1 { "" } else { "s" })
}

fn document(store: &Store, summary: &Summary, shown: &Shown) -> anyhow::Result<Doc> {
    let mut doc = Doc::titled("Traces read");
    let number = |count: usize| thousands(count as i128);
    doc.text(
        format!(
            "{} given, {} known. {}",
            files(summary.files),
            match summary.known {
                known if known == summary.files => "all".to_owned(),
                0 => "none".to_owned(),
                known => number(known),
            },
            if summary.outcomes.is_empty() { "Nothing is new." } else { "" }
        )
        .trim_end(),
    );
    let mut table = Table::new([Column::word("Outcome"), Column::number("Traces"), Column::text("")]);
    for (outcome, count) in &summary.outcomes {
        table.row([Line::from(*outcome), number(*count).into(), meaning(outcome).into()]);
    }
    doc.table(table);
    if !shown.rows.is_empty() {
        doc.heading("Not read, or not wholly");
        let mut table = Table::new([Column::name("Trace"), Column::word("Outcome"), Column::text("Why")]);
        for [path, outcome, reason] in &shown.rows {
            table.row([Line::name(path), outcome.into(), sanitize(reason).into_owned().into()]);
        }
        table.more = shown.more;
        table.hint = "table `run` of the store has all".to_owned();
        doc.table(table);
    }
    if !shown.shut.is_empty() {
        doc.heading("Folders that were not looked through");
        let mut table = Table::new([Column::name("Folder"), Column::text("Why")]);
        for (folder, why) in &shown.shut {
            table.row([Line::name(inbox::text(folder)), why.into()]);
        }
        doc.table(table.at_most(SHOWN));
    }
    if summary.bytes > 0 {
        doc.text(format!(
            "{} in {} of CPU time. The store has {}.",
            bytes(i64::try_from(summary.bytes).unwrap_or(i64::MAX)),
            duration_ns(i64::try_from(summary.cpu_ns).unwrap_or(i64::MAX)),
            bytes(i64::try_from(store.bytes()?).unwrap_or(i64::MAX))
        ));
    }
    Ok(doc)
}

fn meaning(outcome: &str) -> &'static str {
    match outcome {
        "read" => "wholly",
        "in_part" => "something is damaged or missing: the ledger says what",
        "copy" => "of a trace that the store has under another name, or the beginning of one",
        "not_a_trace" => "something else under that name",
        "too_new" => "newer than this program",
        "timeout" => "took longer than --timeout",
        "memory" => "needed more than --memory",
        "crashed" => "ended its process",
        _ => "could not be read",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_tried_less_and_less_often() {
        let file = Found { path: "a.etl".into(), bytes: 1, modified_ns: 1 };
        let changed = Found { bytes: 2, ..file.clone() };
        let mut resting = Resting::default();
        let mut tried = Vec::new();
        for look in 0..300 {
            assert!(!resting.rests(&changed), "a file that has changed is another one");
            if !resting.rests(&file) {
                tried.push(look);
                resting.failed(vec![file.clone()]);
            }
        }
        assert_eq!(tried, [0, 2, 5, 10, 19, 36, 69, 134, 199, 264]);
    }
}
