//! `etwhy fleet extract`: one recording as rows of a store.

use super::reading::Reading;
use crate::commands::why::{TOP, answers};
use crate::exit::{self, Exit};
use crate::open::Recording;
use anyhow::Context as _;
use etwhy_etl::read::{file_sha256, joint_trace_id};
use etwhy_fleet::runner::{END, End, EndOfRecording, own_usage};
use etwhy_fleet::{Ids, contract, ids, rows, stamp, store};
use etwhy_rules::Rule;
use etwhy_trace::Part;
use etwhy_trace::catalog::trace::TraceRow;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct Args {
    /// Files of one recording, or an archive with some
    #[arg(value_name = "FILE", required = true)]
    traces: Vec<PathBuf>,
    /// Write to a folder: one folder of Parquet files for each recording, and how it went (end.json)
    #[arg(long, short, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    reading: Reading,
    /// Read all files as one recording, whatever they say
    #[arg(long)]
    merge: bool,
    /// Threads to use (default: all processors)
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Move tables into temporary files when the program holds more memory than this
    #[arg(long, value_name = "SIZE", value_parser = crate::open::size)]
    memory: Option<u64>,
    /// What decides what is found, by its name: who starts many processes finds it out once
    #[arg(long, hide = true)]
    settings_id: Option<String>,
    /// Name of the trace, given by who compares it with others
    #[arg(long, hide = true, requires = "merge")]
    trace_id: Option<String>,
    /// End when standard input ends: nobody waits any more
    #[arg(long, hide = true)]
    supervised: bool,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    if args.supervised {
        etwhy_child::end_with_standard_input(|| etwhy_scratch::exit(Exit::InPart as i32));
    }
    std::fs::create_dir_all(&args.output).with_context(|| format!("{}", args.output.display()))?;
    let mut end = End::default();
    let result = read(&args, &mut end);
    if let Err(error) = &result {
        end.exit = exit::of_error(error) as i32;
        end.again = exit::is_full(error);
        end.message = Some(crate::message(error));
    }
    let usage = own_usage();
    end.cpu_ns = usage.map(|usage| usage.cpu_ns);
    end.memory_bytes = usage.map(|usage| usage.memory_bytes);
    let file = args.output.join(END);
    let text = serde_json::to_string_pretty(&end)?;
    std::fs::write(&file, text).with_context(|| format!("{}", file.display()))?;
    result
}

fn read(args: &Args, end: &mut End) -> anyhow::Result<Exit> {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let mut traces = args.reading.trace_args(args.traces.clone(), args.threads.unwrap_or(all), args.memory);
    traces.merge = args.merge;
    let rules = args.reading.rules.load()?;
    let settings = args.settings_id.clone().map_or_else(|| args.reading.settings_id(), Ok)?;
    let given = args.traces.first().and_then(|path| args.reading.machine_of(path));
    let recordings = traces.recordings()?;
    end.sha256 = args.traces.iter().map(|path| file_sha256(path).ok()).collect();
    let merged: Option<Vec<String>> = end.sha256.iter().cloned().collect();
    for (number, recording) in recordings.list.into_iter().enumerate() {
        let files = recording.files.clone();
        let mut row = EndOfRecording {
            file: files.first().cloned().unwrap_or_default(),
            files: files.len(),
            trace_id: format!("{}-{number}", ids::extract_id(&files.join("\n"), "")),
            // What is no archive was hashed as it is.
            sha256: if args.merge { merged.as_deref().map(joint_trace_id) } else { recording.sha256() },
            ..EndOfRecording::default()
        };
        let name = format!("{number}");
        let names = (args.trace_id.as_deref(), given.as_deref());
        match one(recording, &rules, names, &settings, &args.output.join(&name), &mut row) {
            Ok(()) => row.part = Some(name),
            Err(error) => {
                row.exit = exit::of_error(&error) as i32;
                row.again = exit::is_full(&error);
                row.message = Some(crate::message(&error));
            }
        }
        if row.extract_id.is_empty() {
            row.extract_id = ids::extract_id(&row.trace_id, &settings);
        }
        end.exit = if end.exit == 0 { row.exit } else { end.exit };
        end.recordings.push(row);
    }
    Ok(match end.exit {
        0 => Exit::Done,
        4 => Exit::TooNew,
        _ => Exit::InPart,
    })
}

/// Reads one recording and writes its rows. The trace and its machine may have been given names.
fn one(
    recording: Recording,
    rules: &[Rule],
    (trace, given): (Option<&str>, Option<&str>),
    settings: &str,
    folder: &Path,
    row: &mut EndOfRecording,
) -> anyhow::Result<()> {
    let more = contract::sources().map(str::to_owned);
    let (analysed, report) = answers(recording, rules, TOP, Part::default(), more)?;
    let db = &analysed.db;
    let facts = rows::Facts::of(db);
    let machine = ids::machine_id(given, facts.computer.as_deref(), &facts.boot_id);
    let sizes = db.read_or_empty::<TraceRow>();
    let file = trace.filter(|_| sizes.len() == 1).map(str::to_owned);
    let trace = trace.map_or(facts.trace_id, str::to_owned);
    let extract = ids::extract_id(&trace, settings);
    let ids = Ids { trace, machine: machine.id.clone(), extract, file };
    let own = rows::tables(db, &report.findings, &report.sentence, &machine)?;
    store::write_part(folder, &stamp::all(db, &own, &ids)?)?;
    row.size_bytes = sizes.iter().map(|file| u64::try_from(file.size_bytes()).unwrap_or(0)).sum();
    Ids { trace: row.trace_id, machine: row.machine_id, extract: row.extract_id, .. } = ids;
    row.exit = analysed.exit as i32;
    row.message = exit::missing(db).or_else(|| analysed.newer_than_known.first().cloned());
    Ok(())
}
