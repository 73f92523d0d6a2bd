//! `etwhy evtx LOG…`: the records of event logs.

use super::fields::say_unknown;
use super::follow;
use super::select::Select;
use super::shape::{Buffers, CSV_HEAD, Shape, ShapedBatch, Writer};
use crate::catalog;
use crate::exit::Exit;
use crate::open::logs::{LogArgs, Logs, leave_out};
use crate::options::rows::{Written, chosen_format, write_selection};
use crate::report::terminal::{out, width};
use anyhow::{Context as _, Result, bail};
use etwhy_evtx::filter::Filter;
use etwhy_evtx::read::LogFile;
use etwhy_evtx::render::Renderer;
use etwhy_evtx::scan::{ScanOptions, scan};
use etwhy_evtx::tables::{Fields, LogRecordRow, LogTypeRow};
use etwhy_messages::{Messages, Options as MessageOptions};
use etwhy_sql::{Engine, may_ask_for, texts, words};
use etwhy_table::{Database, Selection, SortKey};
use std::collections::{BTreeSet, VecDeque};
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Arguments.
#[derive(clap::Args)]
#[group(skip)]
pub struct Args {
    #[command(flatten)]
    logs: LogArgs,
    #[command(flatten)]
    select: Select,
    /// Only records that have this text in their time, level, provider, event id, channel, computer, user, fields (Name=value) or, with
    /// --messages, message (case does not matter)
    #[arg(long, value_name = "TEXT")]
    grep: Option<String>,
    /// Texts of events: databases that `etwhy evtx messages build` wrote, folders of DLLs, DLLs
    #[arg(long, value_name = "DB")]
    messages: Vec<PathBuf>,
    /// Languages of texts, the best first (en-US)
    #[arg(long, value_name = "LANGUAGE")]
    language: Vec<String>,
    /// Show well-known SIDs in messages by name, as Event Viewer's window does
    #[arg(long)]
    name_sids: bool,
    /// The whole text of each record, on several lines
    #[arg(long, conflicts_with_all = ["json", "xml", "csv", "counts", "columns", "sql"])]
    full: bool,
    /// Print JSON, an object on each line
    #[arg(long, conflicts_with_all = ["xml", "csv"])]
    json: bool,
    /// XML as Windows writes it, an event on each line
    #[arg(long, conflicts_with = "csv")]
    xml: bool,
    /// Comma-separated values; fields as JSON in the last column
    #[arg(long)]
    csv: bool,
    /// How often there is which kind of event, and how many bytes; reads no fields unless a filter asks for them
    #[arg(long, conflicts_with_all = ["columns", "sql", "follow", "last"])]
    counts: bool,
    /// A column for each field, with its type: one table for each event id (choose with --id)
    #[arg(long, conflicts_with_all = ["sql", "follow", "last"])]
    columns: bool,
    /// Answer a question in SQL over log_file, log_type, log_record, event_4624 (one for each id, with its fields as columns)
    #[arg(long, value_name = "QUERY", conflicts_with_all = ["follow", "last"])]
    sql: Option<String>,
    /// Format of --counts, --columns, --sql and of files: table, csv, json, parquet, …
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// Write to a file; its ending chooses the format (.csv, .json, .xml, .parquet, .arrow)
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// At most N records, the first; with --counts, --columns and --sql rows
    #[arg(long, visible_alias = "top", value_name = "N", conflicts_with = "last")]
    first: Option<usize>,
    /// Only the last N records
    #[arg(long, value_name = "N")]
    last: Option<usize>,
    /// Wait for new records and show them as they come
    #[arg(long, short, conflicts_with_all = ["output", "first"])]
    follow: bool,
    /// Cut lines to the terminal's width (by itself only on a terminal)
    #[arg(long)]
    cut: bool,
}

/// Runs it.
///
/// # Errors
/// If no log can be read, or what is asked for cannot be understood.
pub fn run(args: &Args) -> Result<Exit> {
    if args.logs.logs.is_empty() {
        bail!("name event logs (.evtx) or folders of them; `etwhy evtx --help` shows what can be asked");
    }
    if let Some(word) = args.logs.logs.first().and_then(|path| path.to_str())
        && word.chars().all(|c| c.is_ascii_alphabetic())
        && !Path::new(word).exists()
    {
        let meant = catalog::meant(word, super::NAMES.into_iter());
        bail!("`evtx` has no command `{word}`, and there is no file of this name{meant}");
    }
    let mut filter = args.select.filter()?;
    let messages = messages(args)?.map(Arc::new);
    if let Some(text) = &args.grep {
        filter.search(text);
        filter.messages.clone_from(&messages);
    }
    let of_tables = args.counts || args.sql.is_some() || args.columns || is_table_file(args);
    if of_tables && (args.last.is_some() || args.follow) {
        bail!("--last and --follow go with records as lines, JSON, CSV and XML, not with tables");
    }
    if of_tables {
        // A format that is not there is said before the logs are read.
        written(args)?;
    }
    let mut logs = args.logs.open()?;
    if of_tables {
        logs.filter = filter;
        return tables(args, logs);
    }
    let shape = shape(args);
    let exit = match &args.output {
        Some(path) => {
            let mut result = Ok(Exit::Done);
            let replaced = etwhy_export::replace_file(path, |out| {
                result = records(args, &mut logs, &filter, messages.as_deref(), shape, out);
                // What stood in the file before stays there.
                if result.is_ok() {
                    Ok(())
                } else {
                    Err(io::Error::other("the records were not written").into())
                }
            });
            let nameless = |error: &anyhow::Error| error.is::<io::Error>();
            let named = |error| anyhow::Error::context(error, format!("cannot write {}", path.display()));
            let exit = result.map_err(|error| if nameless(&error) { named(error) } else { error })?;
            replaced?;
            if !args.logs.reading.quiet {
                say!("{}: written", path.display());
            }
            exit
        }
        None => {
            let mut out = out();
            let exit = records(args, &mut logs, &filter, messages.as_deref(), shape, &mut out)?;
            out.flush()?;
            exit
        }
    };
    if let Some(messages) = &messages {
        say_wanted(messages);
    }
    say_unknown(&filter.conditions, &logs.files, logs.threads);
    Ok(exit)
}

/// The texts of messages, if some are named.
fn messages(args: &Args) -> Result<Option<Messages>> {
    if args.messages.is_empty() {
        return Ok(None);
    }
    let mut options = MessageOptions { name_sids: args.name_sids, ..MessageOptions::default() };
    if !args.language.is_empty() {
        options.languages = super::messages::languages(&args.language)?;
    }
    Ok(Some(Messages::open(&args.messages, &options)?))
}

/// The shape that is asked for.
fn shape(args: &Args) -> Shape {
    let ending =
        args.output.as_deref().and_then(Path::extension).and_then(|e| e.to_str()).map(str::to_lowercase);
    let format = args.format.as_deref().map(str::to_lowercase);
    let is = |flag: bool, name: &str| {
        flag || format.as_deref() == Some(name) || (format.is_none() && ending.as_deref() == Some(name))
    };
    if is(args.json, "json") || is(args.json, "jsonl") {
        Shape::Json
    } else if is(args.xml, "xml") {
        Shape::Xml
    } else if is(args.csv, "csv") {
        Shape::Csv
    } else if args.full {
        Shape::Full
    } else {
        let cut = args.cut || (args.output.is_none() && std::io::stdout().is_terminal());
        Shape::Lines(if cut { width() } else { 0 })
    }
}

/// True for formats that are written from tables.
fn is_table_file(args: &Args) -> bool {
    let ending =
        args.output.as_deref().and_then(Path::extension).and_then(|e| e.to_str()).map(str::to_lowercase);
    let streamed = ["json", "jsonl", "xml", "csv", "txt", "log"];
    match (args.format.as_deref().map(str::to_lowercase), ending) {
        _ if args.json || args.xml || args.csv || args.full => false,
        (Some(format), _) => !streamed.contains(&format.as_str()),
        (None, Some(ending)) => !streamed.contains(&ending.as_str()),
        (None, None) => false,
    }
}

/// Writes records, and waits for more with `--follow`.
fn records(
    args: &Args,
    logs: &mut Logs,
    filter: &Filter,
    messages: Option<&Messages>,
    shape: Shape,
    out: &mut dyn Write,
) -> Result<Exit> {
    let buffers = Buffers::default();
    let make = || Writer::new(shape, filter, messages.map(Renderer::new), &buffers);
    match shape {
        Shape::Csv => out.write_all(CSV_HEAD.as_bytes())?,
        Shape::Xml => out.write_all(b"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<Events>\n")?,
        _ => {}
    }
    // With --follow as `tail` does it: the last ten, then what comes.
    let last = args.last.or(args.follow.then_some(10));
    let mut kept: VecDeque<Vec<u8>> = VecDeque::new();
    let mut left = args.first.unwrap_or(usize::MAX);
    let mut followed: Vec<(LogFile, u64)> = Vec::new();
    for log in &logs.files {
        let mut failed: Option<std::io::Error> = None;
        let mut seen = 0;
        let options = ScanOptions { threads: logs.threads, in_order: true };
        let take = |part: ShapedBatch| {
            seen = seen.max(part.last);
            match last {
                Some(last) => {
                    let mut from = 0;
                    for end in &part.ends {
                        kept.push_back(part.text.get(from..*end).unwrap_or(&[]).to_owned());
                        from = *end;
                        if kept.len() > last {
                            kept.pop_front();
                        }
                    }
                }
                None => {
                    let end = if part.ends.len() > left {
                        left.checked_sub(1).and_then(|n| part.ends.get(n)).copied().unwrap_or(0)
                    } else {
                        part.ends.last().copied().unwrap_or(0)
                    };
                    left = left.saturating_sub(part.ends.len());
                    if let Err(error) = out.write_all(part.text.get(..end).unwrap_or(&[])) {
                        failed = Some(error);
                    }
                }
            }
            buffers.give(part.text);
            failed.is_none() && left > 0
        };
        let scanned = scan(log, &options, make, take);
        if let Some(error) = failed {
            return Err(error.into());
        }
        // What was read before stays, and other logs are read.
        let damage = match scanned {
            Ok(damage) => damage,
            Err(error) => {
                leave_out(error.to_string(), &mut logs.ledger);
                continue;
            }
        };
        for entry in damage.entries() {
            logs.ledger
                .note(entry.anomaly, entry.count, || format!("{}: {}", log.path.display(), entry.first));
        }
        followed.push((log.clone(), seen));
        if left == 0 {
            break;
        }
    }
    for text in kept {
        out.write_all(&text)?;
    }
    if args.follow {
        out.flush()?;
        follow::follow(followed, make(), out)?;
    }
    if shape == Shape::Xml {
        out.write_all(b"</Events>\n")?;
    }
    Logs::exit_of(&logs.ledger)
}

/// How tables are written.
fn written(args: &Args) -> Result<Written<'_>> {
    let named = if args.json {
        Some("json")
    } else if args.csv {
        Some("csv")
    } else {
        args.format.as_deref()
    };
    let format = chosen_format(named, args.output.as_deref())?;
    Ok(Written { format, path: args.output.as_deref(), hex: false, exact: false, threads: 1 })
}

/// Counts, columns, SQL and files of tables.
fn tables(args: &Args, mut logs: Logs) -> Result<Exit> {
    let written = written(args)?;
    let ids: BTreeSet<u16> = match &args.sql {
        Some(query) => words(query).into_iter().chain(texts(query)).filter_map(event_of).collect(),
        None if args.columns => wanted_ids(&logs)?,
        None => BTreeSet::new(),
    };
    if args.columns && ids.len() > 1 && args.output.is_some() {
        bail!(
            "--columns gives a table for each event id, here {}; choose one with --id to write it to a file",
            ids.len()
        );
    }
    let mut asked: BTreeSet<String> = match &args.sql {
        Some(query) => words(query).into_iter().chain(texts(query)).map(str::to_owned).collect(),
        None if args.counts || args.columns => BTreeSet::new(),
        None => BTreeSet::from(["log_record".to_owned()]),
    };
    asked.insert("log_type".to_owned());
    logs.ids = ids.into_iter().collect();
    if args.sql.as_ref().is_some_and(|query| !may_ask_for(query, "fields")) {
        logs.fields = Fields::None;
    }
    let names: Vec<String> = logs.ids.iter().map(|id| format!("event_{id}")).collect();
    let (conditions, files, threads) = (logs.filter.conditions.clone(), logs.files.clone(), logs.threads);
    let analysed = logs.analyse(&asked, None)?;
    let mut out = out();
    match &args.sql {
        Some(query) => {
            let engine = Engine::new(&analysed.db)?;
            let result = engine.query("result", query).map_err(catalog::explained)?;
            let selection = limited(Selection::all(&result), args);
            write_selection(&selection, &written, result.rows(), &mut out)?;
        }
        None if args.columns => {
            for name in &names {
                let table = analysed.db.get(name).context("the table was not made")?;
                if names.len() > 1 {
                    writeln!(out, "{name}")?;
                }
                write_selection(&limited(Selection::all(table), args), &written, table.rows(), &mut out)?;
            }
        }
        None if args.counts => counts(&analysed.db, args, &written, &mut out)?,
        None => {
            let table = analysed.db.table::<LogRecordRow>()?;
            write_selection(&limited(Selection::all(table), args), &written, table.rows(), &mut out)?;
        }
    }
    out.flush()?;
    say_unknown(&conditions, &files, threads);
    if let Some(path) = &args.output
        && !args.logs.reading.quiet
    {
        say!("{}: written", path.display());
    }
    Ok(analysed.exit)
}

fn limited<'t>(selection: Selection<'t>, args: &Args) -> Selection<'t> {
    match args.first {
        Some(first) => selection.top(first),
        None => selection,
    }
}

/// The id of `event_4624`.
fn event_of(word: &str) -> Option<u16> {
    word.to_ascii_lowercase().strip_prefix("event_")?.parse().ok()
}

/// Event ids that are wanted and there.
fn wanted_ids(logs: &Logs) -> Result<BTreeSet<u16>> {
    let mut ids = BTreeSet::new();
    for log in &logs.files {
        let counts = etwhy_evtx::counts::count_wanted(log, logs.threads, &logs.filter)?;
        ids.extend(counts.wanted().iter().map(|(kind, _)| kind.event_id));
    }
    Ok(ids)
}

fn counts(db: &Database, args: &Args, written: &Written<'_>, out: &mut (impl Write + Send)) -> Result<()> {
    let table = db.table::<LogTypeRow>()?;
    let key = SortKey::parse("-records", table.spec())?;
    let mut selection = Selection::all(table).sort(&[key], args.first);
    if written.path.is_none() && written.format.name == "table" {
        selection = selection.columns("records,bytes,channel,provider,event_id,level,task,audit")?;
    }
    write_selection(&selection, written, table.rows(), out)?;
    Ok(())
}

/// Says which files would have the texts that were missing.
fn say_wanted(messages: &Messages) {
    const MOST: usize = 8;
    let wanted = messages.wanted();
    if wanted.is_empty() {
        return;
    }
    say!(
        "etwhy: texts of {} providers are missing; `etwhy evtx messages collect` prints a script that packs them:",
        wanted.len()
    );
    for one in wanted.iter().take(MOST) {
        let events: Vec<String> = one.events.iter().take(6).map(u16::to_string).collect();
        let more = if one.events.len() > 6 { ", …" } else { "" };
        let files = if one.files.is_empty() {
            "file unknown: the registry of the machine names it".to_owned()
        } else {
            one.files.join(", ")
        };
        let line = format!("  {} (events {}{more}): {files}", one.provider, events.join(", "));
        say!("{line}");
    }
    if wanted.len() > MOST {
        say!("  and {} more", wanted.len() - MOST);
    }
}
