//! What all commands that read event logs share: their arguments, opening, tables.

use super::{Analysed, size};
use crate::exit::{self, Exit};
use crate::progress::Bar;
use crate::verbose::stage;
use anyhow::{Context as _, Result};
use etwhy_analysis::derive::is_beside_traces;
use etwhy_analysis::{LOG_FIELDS, closure, derive};
use etwhy_etl::Ledger;
use etwhy_evtx::EvtxError;
use etwhy_evtx::filter::Filter;
use etwhy_evtx::read::LogFile;
use etwhy_evtx::tables::{Fields, Options, make};
use etwhy_input::{InputFile, InputOptions, WantedFiles};
use etwhy_table::{Database, Memory};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Which event logs, and how to read them.
#[derive(clap::Args, Clone, Debug)]
pub struct LogArgs {
    /// Event logs: .evtx files, archives (.zip, .7z, .gz, .zst, .lz4, .xz, .bz2) or folders with logs inside, or - for standard input
    #[arg(value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    #[command(flatten)]
    pub reading: LogReading,
}

/// How to read event logs.
#[derive(clap::Args, Clone, Debug)]
pub struct LogReading {
    /// Look for logs in folders inside folders too
    #[arg(long)]
    pub recursive: bool,
    /// Threads to use (default: all processors)
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Use at most about this much memory for tables; the rest goes into temporary files (e.g. 2GB)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
    /// Folder for temporary files
    #[arg(long, value_name = "DIR")]
    pub temp_dir: Option<PathBuf>,
    /// Show no progress bar
    #[arg(long, short)]
    pub quiet: bool,
}

/// Opened logs.
pub struct Logs {
    /// The logs, in order.
    pub files: Vec<LogFile>,
    /// What was found on the way to them.
    pub ledger: Ledger,
    /// Threads to read them with.
    pub threads: usize,
    /// Which records `log_record` and `event_<id>` have.
    pub filter: Filter,
    /// Event ids that become tables `event_<id>`.
    pub ids: Vec<u16>,
    /// What somebody reads in `log_record.fields`, beside the tables that are made from records.
    pub fields: Fields,
    /// For tables.
    pub memory: Memory,
    inputs: Vec<InputFile>,
}

impl LogReading {
    /// As traces are read.
    pub fn beside(trace: &super::TraceArgs) -> LogReading {
        LogReading {
            recursive: trace.recursive,
            threads: trace.threads,
            memory: trace.memory,
            temp_dir: trace.temp_dir.clone(),
            quiet: trace.quiet,
        }
    }
}

impl LogArgs {
    /// Opens all logs; those that cannot be opened are reported on standard error as long as one can.
    ///
    /// # Errors
    /// If none can be opened.
    pub fn open(&self) -> Result<Logs> {
        open(&self.logs, &self.reading)
    }
}

/// Opens all logs that `paths` name.
///
/// # Errors
/// If none can be opened.
pub fn open(paths: &[PathBuf], reading: &LogReading) -> Result<Logs> {
    let mut ledger = Ledger::new();
    let options = InputOptions {
        temp_dir: reading.temp_dir.clone(),
        recursive: reading.recursive,
        wanted: WantedFiles::Logs,
        ..InputOptions::default()
    };
    let bar = Bar::new("unpacking", reading.quiet);
    let mut progress = |p: etwhy_input::Progress<'_>| bar.set(p.unpacked, p.claimed.unwrap_or(p.unpacked));
    let (mut inputs, mut none) = (Vec::new(), Vec::new());
    for path in paths {
        // One that is none does not keep the others from being read.
        match etwhy_input::open(std::slice::from_ref(path), &options, &mut progress, &mut ledger) {
            Ok(opened) => inputs.extend(opened),
            Err(error) => none.push(error),
        }
    }
    drop(bar);
    if inputs.is_empty() {
        let first = none.into_iter().next();
        return Err(
            first.map_or_else(|| anyhow::anyhow!("there is no event log in what was given"), Into::into)
        );
    }
    for text in none.iter().map(ToString::to_string) {
        leave_out(text, &mut ledger);
    }
    let mut files = Vec::new();
    let mut refused: Vec<EvtxError> = Vec::new();
    for input in &inputs {
        match LogFile::open(&input.path, &input.shown) {
            Ok(file) => files.push(file),
            Err(error) => refused.push(error),
        }
    }
    if files.is_empty() {
        let first = refused.into_iter().next();
        return Err(
            first.map_or_else(|| anyhow::anyhow!("there is no event log in what was given"), Into::into)
        );
    }
    for error in refused {
        leave_out(error.to_string(), &mut ledger);
    }
    for file in &files {
        let size = etwhy_base::units::bytes(file.size as i64);
        tracing::info!("{}: opened, {size} in {} chunks", file.path.display(), file.chunks.len());
    }
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = reading.threads.unwrap_or(all).max(1);
    let folder = reading.temp_dir.clone();
    let memory = match reading.memory {
        Some(limit) => Memory::of_process(limit, folder),
        None => Memory::with_budget(1_000_000_000, folder),
    };
    let (filter, ids) = (Filter::default(), Vec::new());
    Ok(Logs { files, ledger, threads, filter, ids, fields: Fields::All, memory, inputs })
}

/// Says and counts that something that was given is no log.
/// Says that a log, or the rest of it, is not in the results.
pub fn leave_out(text: String, ledger: &mut Ledger) {
    say!("etwhy: {text} (left out)");
    ledger.note(&etwhy_evtx::read::anomalies::LEFT_OUT, 1, || text);
}

impl Logs {
    /// Reads the logs into a database: the tables of event logs, those that are made from them, and the ledger.
    /// `zero_utc_ns` is the start of the trace that they are read beside.
    ///
    /// # Errors
    /// Those of the system and of the table builder.
    pub fn analyse(mut self, tables: &BTreeSet<String>, zero_utc_ns: Option<i64>) -> Result<Analysed> {
        let mut db = Database::new();
        let closed = closure(tables);
        // What is made from records reads their fields. Other names may be columns of the query.
        let plain = ["log_file", "log_record", "log_type"];
        let made = closed.iter().any(|name| is_beside_traces(name) && !plain.contains(&name.as_str()));
        if made && self.fields == Fields::None {
            self.fields = Fields::Named(LOG_FIELDS);
        }
        stage("records", || self.add_to(&mut db, closed.contains("log_record"), zero_utc_ns))?;
        stage("derived tables", || derive(&mut db, Some(&closed), &self.memory, self.threads))?;
        db.insert(etwhy_trace::catalog::ledger::table(&self.ledger)?);
        let exit = exit::of_ledger(&db);
        say_in_part(&db);
        Ok(Analysed {
            db,
            exit,
            memory: self.memory,
            newer_than_known: Vec::new(),
            ledgers: Vec::new(),
            threads: self.threads,
            events: None,
            _inputs: self.inputs,
            _demo: None,
        })
    }

    /// Adds the tables of event logs to a database, and what was wrong to [`Logs::ledger`].
    ///
    /// # Errors
    /// Those of the system and of the table builder.
    pub fn add_to(&mut self, db: &mut Database, records: bool, zero_utc_ns: Option<i64>) -> Result<()> {
        let options = Options {
            threads: self.threads,
            zero_utc_ns,
            records,
            fields: self.fields,
            ids: self.ids.clone(),
            filter: self.filter.clone(),
            memory: self.memory.clone(),
        };
        let made = make(&self.files, &options).context("event logs")?;
        for table in made.tables {
            db.insert(table);
        }
        for (path, damage) in &made.damage {
            let mut named = Ledger::new();
            for entry in damage.entries() {
                named.note(entry.anomaly, entry.count, || format!("{}: {}", path.display(), entry.first));
            }
            self.ledger.merge(&named);
        }
        Ok(())
    }

    /// The exit code for what was wrong so far.
    pub fn exit_of(ledger: &Ledger) -> Result<Exit> {
        let mut db = Database::new();
        db.insert(etwhy_trace::catalog::ledger::table(ledger)?);
        say_in_part(&db);
        Ok(exit::of_ledger(&db))
    }
}

/// Says what could not be read, if anything.
fn say_in_part(db: &Database) {
    if let Some(text) = exit::in_part(db) {
        let ask = "`etwhy evtx LOG --sql \"SELECT * FROM ledger\"`";
        say!("etwhy: {}", text.replace("`etwhy dump ledger` on it", ask));
    }
}
