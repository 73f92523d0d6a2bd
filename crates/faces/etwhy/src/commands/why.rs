//! `etwhy why`: the verdict.

mod several;

use super::sql::tables_of;
use crate::command::Command;
use crate::exit::Exit;
use crate::open::logs::LogReading;
use crate::open::{Analysed, Opened, Recording, TraceArgs, beside};
use crate::options::document::MarkdownArgs;
use crate::options::time::{TimeArgs, TimeOfDay};
use crate::report::terminal::{out, text};
use crate::report::why::verdict;
use crate::rules::RuleArgs;
use crate::verbose::stage;
use clap::{Args as _, FromArgMatches as _};
use etwhy_analysis::activity;
use etwhy_analysis::cpu::{Scope, Top};
use etwhy_doc::{Doc, markdown};
use etwhy_report::{Form, Report, charts, document, html, json};
use etwhy_rules::{Rule, Subject, evaluate_all};
use etwhy_trace::Part;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Declaration.
pub static COMMAND: Command = Command {
    name: "why",
    about: "Why it was slow: quality of the trace, who used the CPU, .NET, disks, and what cannot be determined",
    long_about: "Reads the trace once and prints the verdict on one screen: what was found and what to do, who cost how much, what the trace \
                 cannot answer, and where to look next. With --full it also prints why each finding matters, which processes, modules, functions and \
                 stacks used the CPU, what .NET and the disks did, and which recording would answer the rest. A trace without kernel events is answered with what it does show: its longest and most frequent operations, rates of \
                 events, errors, and what could not be decoded. Several recordings are answered one by one, with a summary at the end; parts of one recording (its \
                 segments, its kernel and user part) are read as one. --from and --to ask why a part of it was slow.",
    examples: "Examples:\n  etwhy why --demo\n  etwhy why trace.etl\n  etwhy why trace.kernel.etl trace.user.etl\n  etwhy why traces/ --json\n  \
               etwhy why trace.etl.zip --symbols C:\\symbols --top 20\n  cat trace.etl | etwhy why - --json\n  \
               etwhy why trace.etl --from 12s --to 15s\n  etwhy why traces/ --at 14:03\n  \
               etwhy why trace.etl --html why.html --md=why.md\n  etwhy why trace.etl --logs C:\\Windows\\System32\\winevt\\Logs",
    build: |command| Args::augment_args(command),
    run: |matches| run(Args::from_arg_matches(matches)?),
};

#[derive(clap::Args)]
struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    time: TimeArgs,
    /// Of the files given only those that cover this time, local to the machine: 14:03, 14:03:20, "2026-11-24 14:03"
    #[arg(long, value_name = "TIME", value_parser = TimeOfDay::parse)]
    at: Option<TimeOfDay>,
    /// Event logs of the same machine (.evtx, archives, folders), read beside the trace on its time
    #[arg(long, value_name = "LOG")]
    logs: Vec<PathBuf>,
    /// Print JSON (docs/reference/why.schema.json explains it)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    markdown: MarkdownArgs,
    /// Write one HTML page with charts, which needs no network
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// At most N rows per list
    #[arg(long, default_value_t = 10, value_name = "N")]
    top: usize,
    /// Print all: why each finding matters, processes, modules, functions, stacks, .NET, disks
    #[arg(long)]
    full: bool,
    /// Also report why each other pattern was not found or cannot be determined (implies --full)
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    rules: RuleArgs,
    /// Ask for no patterns: only what the trace holds and who used the machine
    #[arg(long, conflicts_with = "rules")]
    no_findings: bool,
    /// Say on standard error how long reading, tables and findings took
    #[arg(long)]
    timings: bool,
    /// Frames per stack (0: all)
    #[arg(long, default_value_t = 16, value_name = "N")]
    frames: usize,
}

/// Tables that the verdict reads.
const TABLES: [&str; 21] = [
    "trace",
    "machine",
    "bill",
    "event_type",
    "unobserved",
    "ledger",
    "logger",
    "kernel_class",
    "process",
    "thread",
    "image",
    "cpu",
    "stack",
    "stack_cost",
    "disk_io",
    "file",
    "clr_gc",
    "clr_exception",
    "clr_jit",
    "clr_contention",
    "mark",
];

fn run(args: Args) -> anyhow::Result<Exit> {
    args.markdown.check(args.json)?;
    let rules = if args.no_findings { Vec::new() } else { args.rules.load()? };
    let mut recordings = args.trace.recordings()?;
    if let Some(at) = args.at {
        recordings = recordings.around(at)?;
    }
    if recordings.list.len() > 1 {
        return several::run(&args, &rules, recordings);
    }
    let Some(recording) = recordings.list.into_iter().next() else { return Ok(Exit::WrongUse) };
    let quiet = args.trace.quiet;
    let Answered { analysed, mut report, notes } = answer(&args, &rules, recording)?;
    let mut out = out();
    if !args.documents() {
        let mut doc = document(&report, &args.form());
        doc.space();
        notes.iter().for_each(|note| doc.text(note));
        write!(out, "{}", text(&doc))?;
        out.flush()?;
        return Ok(analysed.exit);
    }
    for note in &notes {
        say!("etwhy: {note}");
    }
    if args.json {
        json::write(&report, &mut out)?;
    }
    report.add_charts(&analysed.db);
    args.write_markdown(&document(&report, &Form { brief: false, full: true, ..args.form() }), &mut out)?;
    if let Some(path) = &args.html {
        write_file(path, quiet, |out| html::write(&report, out))?;
    }
    out.flush()?;
    Ok(analysed.exit)
}

/// What must be known of the verdict of a part.
const PART: &str = "only what lies between --from and --to counts (what ends there counts as a whole); losses, sessions and who is who are of \
                    the whole trace";

/// The same of files around a time.
const AROUND: &str = "only what lies in the files that cover that time counts; other files of the session were read to know who is who, and losses \
                      are those of all of them";

impl Args {
    /// Something else than text for a terminal is wanted.
    fn documents(&self) -> bool {
        self.json || self.html.is_some() || self.markdown.is_wanted()
    }

    fn form(&self) -> Form {
        Form { brief: !(self.full || self.all), full: false, all: self.all, frames: self.frames }
    }

    /// Prints a document as Markdown or writes it to a file, as wanted.
    fn write_markdown(&self, doc: &Doc, out: &mut impl Write) -> anyhow::Result<()> {
        if self.markdown.is_printed() {
            write!(out, "{}", markdown::render(doc))?;
        }
        if let Some(path) = self.markdown.file() {
            write_file(path, self.trace.quiet, |out| write!(out, "{}", markdown::render(doc)))?;
        }
        Ok(())
    }
}

/// How many names of each kind a verdict has where nobody asked for a number.
pub(crate) const TOP: Top = Top { processes: 10, per_process: 5, overall: 10 };

/// Reads a recording with its findings and `more` tables, and says what `why` says of it.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn answers(
    recording: Recording,
    rules: &[Rule],
    top: Top,
    part: Part,
    more: impl Iterator<Item = String>,
) -> anyhow::Result<(Analysed, Report)> {
    let mut opened = recording.open()?.within(part)?;
    let mut wanted = tables(rules, &mut opened)?;
    wanted.extend(more);
    let analysed = opened.analyse(Some(wanted))?;
    let outcomes = stage("findings", || evaluate_all(&analysed.db, rules, analysed.threads))?;
    let report = verdict(&analysed.db, &Scope::default(), top, outcomes);
    Ok((analysed, report))
}

/// Tables that the verdict and findings over the trace read.
fn tables(rules: &[Rule], opened: &mut Opened) -> anyhow::Result<BTreeSet<String>> {
    let mut tables: BTreeSet<String> = TABLES.iter().map(|t| (*t).to_owned()).collect();
    tables.extend(tables_of(of(rules, Subject::Trace).flat_map(Rule::words)));
    tables.extend(opened.without_kernel(&activity::TABLES, &activity::WHO_IS_WHO)?);
    Ok(tables)
}

fn of(rules: &[Rule], subject: Subject) -> impl Iterator<Item = &Rule> {
    rules.iter().filter(move |rule| rule.over == subject)
}

/// The verdict of one recording.
struct Answered {
    analysed: Analysed,
    report: Report,
    /// What event logs beside it brought.
    notes: Vec<String>,
}

/// Reads a recording and asks everything that is wanted of it.
fn answer(args: &Args, rules: &[Rule], recording: Recording) -> anyhow::Result<Answered> {
    let mut clock = Clock { on: args.timings, last: Instant::now() };
    let around = recording.is_part();
    let mut opened = recording.open()?.within_time(&args.time)?;
    let mut tables = tables(rules, &mut opened)?;
    if args.documents() {
        tables.extend(charts::TABLES.iter().map(|t| (*t).to_owned()));
    }
    let mut analysed = opened.analyse(Some(tables))?;
    clock.lap("reading and tables");
    let beside = if args.logs.is_empty() {
        None
    } else {
        let mut of_logs = tables_of(of(rules, Subject::Logs).flat_map(Rule::words));
        // Tables of the trace that a finding over logs names are those that were read.
        of_logs.insert("log_record".to_owned());
        let beside = beside::add(
            &args.logs,
            &LogReading::beside(&args.trace),
            &mut analysed.db,
            &of_logs,
            &analysed.memory,
        )?;
        if analysed.exit == Exit::Done {
            analysed.exit = beside.exit;
        }
        clock.lap("event logs");
        Some(beside)
    };
    let mut outcomes = stage("findings", || evaluate_all(&analysed.db, rules, analysed.threads))?;
    if let Some(beside) = &beside {
        beside.caution(&mut outcomes);
    }
    let mut notes = beside.map(|beside| beside.notes).unwrap_or_default();
    let timed = args.time.from.is_some() || args.time.to.is_some();
    if timed {
        notes.push(PART.to_owned());
    } else if around {
        notes.push(AROUND.to_owned());
    }
    clock.lap("findings");
    let top = Top { processes: args.top, per_process: 5.min(args.top), overall: args.top };
    let report = verdict(&analysed.db, &Scope::default(), top, outcomes);
    clock.lap("lists");
    // Else the verdict would say that nothing of this kind was recorded.
    anyhow::ensure!(
        !timed || report.quality.events > 0,
        "no event lies between --from and --to; `etwhy info` says how long the trace is"
    );
    Ok(Answered { analysed, report, notes })
}

/// Says how long parts took, if that is wanted.
struct Clock {
    on: bool,
    last: Instant,
}

impl Clock {
    fn lap(&mut self, part: &str) {
        if self.on {
            say!("etwhy: {part}: {:.3} s", self.last.elapsed().as_secs_f64());
        }
        self.last = Instant::now();
    }
}

/// Writes a report to a file and says so, unless nothing is to be said.
fn write_file(
    path: &Path,
    quiet: bool,
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> anyhow::Result<()> {
    etwhy_export::replace_file(path, |out| Ok(write(out)?))?;
    if !quiet {
        say!("{}: written", path.display());
    }
    Ok(())
}
