//! What all commands that read traces share: their arguments, opening, the pass. An extract opens like a trace.

pub mod beside;
mod events;
mod folder;
mod given;
mod loggers;
pub mod logs;
mod recordings;

pub use events::Events;
pub use folder::folder_limits;
pub use recordings::{Recording, Recordings, SeveralRecordings};

use crate::exit::{self, Exit};
use crate::options::time::{TimeArgs, When, in_order};
use crate::progress::Bar;
use crate::symbol_args::{SymbolArgs, compact_cache};
use crate::verbose::stage;
use anyhow::Context as _;
use clap::{Args as _, FromArgMatches as _};
use etwhy_analysis::{closure, derive};
use etwhy_decode::{Decoder, DecoderOptions};
use etwhy_etl::Ledger;
use etwhy_etl::read::{EtlFile, OpenOptions};
use etwhy_export::extract::Folder;
use etwhy_input::{InputFile, InputOptions};
use etwhy_scratch::Scratch;
use etwhy_symbols::{NameStyle, Resolver};
use etwhy_table::{Database, Memory};
use etwhy_trace::catalog::event::RowsLater;
use etwhy_trace::catalog::kernel_class;
use etwhy_trace::logger_text::ListedLogger;
use etwhy_trace::{Part, Symbols};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Which traces, and how to read them.
#[derive(clap::Args, Clone, Debug)]
pub struct TraceArgs {
    /// Traces: .etl files, .zip, .7z, .gz, .zst, .lz4, .xz, .bz2 or .diagsession with traces inside, folders, or - for standard input.
    /// Files of one recording (its segments, its kernel and user part) are read as one. Instead, one folder that `etwhy extract` wrote
    #[arg(value_name = "TRACE", required_unless_present = "demo")]
    pub traces: Vec<PathBuf>,
    /// Use the demonstration trace that is built into the program
    #[arg(long)]
    pub demo: bool,
    /// Where symbols come from.
    #[command(flatten)]
    pub symbols: SymbolArgs,
    /// How functions are named: short (without parameters), full (with them) or raw (as the linker has them)
    #[arg(long, value_name = "FORM", default_value = "short")]
    pub names: NameStyle,
    /// Folders or files of provider manifests (.man, .xml)
    #[arg(long, value_name = "DIR")]
    pub manifests: Vec<PathBuf>,
    /// Folders or files of WPP message formats (.tmf)
    #[arg(long, value_name = "DIR")]
    pub tmf: Vec<PathBuf>,
    /// Files (CSV) with facts of your own about drivers, libraries and programs; they win over those that ship and over
    /// those in `etwhy/knowledge.csv` of your configuration folder (~/.config, %APPDATA%)
    #[arg(long, value_name = "FILE")]
    pub knowledge: Vec<PathBuf>,
    /// Files with stack tags in the format of WPA (.stacktags); they come before those that ship
    #[arg(long, value_name = "FILE")]
    pub tags: Vec<PathBuf>,
    /// Text of `xperf -loggers`, `tracelog -l`, `logman query -ets` or `wpr -status collectors -details`, saved
    /// when the trace was made; TRACE.loggers.txt, loggers.txt and xperf-loggers.txt next to it are picked up
    /// automatically
    #[arg(long, value_name = "FILE")]
    pub loggers: Vec<PathBuf>,
    /// Move tables into temporary files when the program holds more memory than this (e.g. 2GB; without it tables may have
    /// a third of the traces' size, at least 256MB). What is known of processes, files and stacks stays in memory
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
    /// Threads to use (default: all processors)
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Folder for temporary files
    #[arg(long, value_name = "DIR")]
    pub temp_dir: Option<PathBuf>,
    /// Most bytes that archives may unpack to (default: 64GiB)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_unpacked: Option<u64>,
    /// Maximum expansion ratio of an archive (default: 1000)
    #[arg(long, value_name = "N")]
    pub max_unpack_ratio: Option<u64>,
    /// Read all traces as one, also those of different recordings or machines (their process ids, times and totals get mixed)
    #[arg(long)]
    pub merge: bool,
    /// Look for traces in folders inside folders too
    #[arg(long)]
    pub recursive: bool,
    /// Read files in pieces of this size instead of mapping them
    #[arg(long, value_name = "SIZE", value_parser = piece)]
    pub chunk: Option<u64>,
    /// Show no progress bar
    #[arg(long, short)]
    pub quiet: bool,
}

/// A number of bytes with an optional unit, as `filter` understands it.
pub fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text.get(digits.len()..).unwrap_or("").to_ascii_lowercase();
    let number: f64 =
        digits.trim().parse().map_err(|_| format!("`{text}` is an invalid size; try 512MB or 2GiB"))?;
    let factor: f64 = match unit.as_str() {
        "" | "b" => 1.0,
        "kb" | "k" => 1e3,
        "mb" | "m" => 1e6,
        "gb" | "g" => 1e9,
        "tb" | "t" => 1e12,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(format!("unknown unit `{unit}` in `{text}`; known: B KB MB GB TB KiB MiB GiB")),
    };
    if !(number >= 0.0 && number * factor < 1e18) {
        return Err(format!("`{text}` is out of range"));
    }
    Ok((number * factor) as u64)
}

/// A size of pieces. Reading a few bytes at a time would take longer than anybody waits.
fn piece(text: &str) -> Result<u64, String> {
    match size(text)? {
        0..64 => Err(format!("`{text}` is too small a piece; try 16MB")),
        bytes => Ok(bytes),
    }
}

/// Opened traces, or an extract in their place.
pub struct Opened {
    source: Source,
    memory: Memory,
    quiet: bool,
}

enum Source {
    Traces(Box<Traces>),
    /// With whether stacks are tagged anew, and the columns to read of tables that are not read whole.
    Extract(Box<Folder>, bool, BTreeMap<String, BTreeSet<String>>),
}

/// Traces of one recording, opened but not read.
pub struct Files {
    /// Each.
    pub list: Vec<EtlFile>,
    /// What was found on the way.
    pub ledger: Ledger,
    /// Keeps unpacked files alive.
    _inputs: Vec<InputFile>,
    /// Keeps the demonstration trace alive.
    _demo: Option<Scratch>,
}

/// Files that were found, opened but not read.
struct Found {
    files: Vec<EtlFile>,
    /// What was found on the way.
    ledger: Ledger,
    /// Keeps unpacked files alive.
    inputs: Vec<InputFile>,
    /// Keeps the demonstration trace alive.
    demo: Option<Scratch>,
}

struct Traces {
    files: Vec<EtlFile>,
    /// What was found on the way.
    ledger: Ledger,
    /// Where symbols are looked for.
    symbols: Symbols,
    /// Keeps unpacked files alive.
    inputs: Vec<InputFile>,
    /// Keeps the demonstration trace alive.
    demo: Option<Scratch>,
    decoder: Decoder,
    loggers: Vec<ListedLogger>,
    threads: usize,
    /// What is asked of them.
    part: Part,
    /// Rows of table `event` are to be made when they are wanted.
    late_events: bool,
}

/// Tables that are smaller than this are not worth a temporary file.
const LEAST_MEMORY: u64 = 256_000_000;

impl TraceArgs {
    /// Opens all traces, which have to be of one recording unless `--merge` is given. Files that are no traces are reported on standard
    /// error as long as one is.
    ///
    /// # Errors
    /// If no trace can be opened, or if they are of several recordings.
    pub fn open(&self) -> anyhow::Result<Opened> {
        crate::knowledge::load(&self.knowledge)?;
        let retag = crate::knowledge::load_tags(&self.tags)?;
        if let Some(extract) = self.extract()? {
            let memory = self.table_memory(extract.manifest().tables.iter().map(|t| t.bytes).sum());
            let (path, tables) = (extract.path().display(), extract.manifest().tables.len());
            tracing::info!(
                "{path}: an extract with {tables} tables, written by {}",
                extract.manifest().program
            );
            let source = Source::Extract(Box::new(extract), retag, BTreeMap::new());
            return Ok(Opened { source, memory, quiet: self.quiet });
        }
        let found = stage("input", || self.find())?;
        recordings::check(&found, self.merge)?;
        self.read(found)
    }

    /// These traces, with the default of every option.
    ///
    /// # Errors
    /// If an option without a default is added: a defect.
    pub fn of(traces: &[PathBuf]) -> anyhow::Result<TraceArgs> {
        let command = TraceArgs::augment_args(clap::Command::new("traces").no_binary_name(true));
        let args = TraceArgs::from_arg_matches(&command.try_get_matches_from(["--demo"])?)?;
        Ok(TraceArgs { traces: traces.to_vec(), demo: false, ..args })
    }

    /// Opens all traces as files, for who copies them. They have to be of one recording unless `--merge` is given.
    ///
    /// # Errors
    /// Those of [`TraceArgs::open`].
    pub fn files(&self) -> anyhow::Result<Files> {
        let found = stage("input", || self.find())?;
        recordings::check(&found, self.merge)?;
        let Found { files: list, ledger, inputs, demo } = found;
        Ok(Files { list, ledger, _inputs: inputs, _demo: demo })
    }

    /// Threads to use.
    pub fn threads(&self) -> usize {
        let all = std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or(all).max(1)
    }

    /// Opens the files that were given.
    fn find(&self) -> anyhow::Result<Found> {
        let mut ledger = Ledger::new();
        let mut paths = self.traces.clone();
        let demo = if self.demo { Some(write_demo(self.temp_dir.as_deref())?) } else { None };
        if let Some(folder) = &demo {
            paths = vec![folder.path().join("demo.etl")];
        }
        let options = self.input_options();
        let bar = Bar::new("unpacking", self.quiet);
        let mut progress =
            |p: etwhy_input::Progress<'_>| bar.set(p.unpacked, p.claimed.unwrap_or(p.unpacked));
        let inputs = etwhy_input::open(&paths, &options, &mut progress, &mut ledger)?;
        drop(bar);
        let open = OpenOptions { chunk: self.chunk.and_then(|c| usize::try_from(c).ok()) };
        let mut files = Vec::new();
        let mut refused = Vec::new();
        for input in &inputs {
            // The temporary path of the demonstration trace says nothing to anybody.
            let shown = if self.demo { Path::new("demo.etl") } else { &input.shown };
            match EtlFile::open(&input.path, shown, &open) {
                Ok(file) => files.push(file),
                Err(error) => refused.push(error),
            }
        }
        if files.is_empty() {
            let first = refused.into_iter().next();
            return Err(
                first.map_or_else(|| anyhow::anyhow!("there is no trace in what was given"), Into::into)
            );
        }
        for error in refused {
            say!("etwhy: {error} (left out)");
        }
        for file in &files {
            let (name, size) = (file.shown().display(), etwhy_base::units::bytes(file.len() as i64));
            let (buffers, session) = (file.buffers().len(), &file.header().session_name);
            tracing::info!("{name}: opened, {size} in {buffers} buffers, session {session}");
        }
        Ok(Found { files, ledger, inputs, demo })
    }

    /// Makes files ready to be read as one.
    fn read(&self, found: Found) -> anyhow::Result<Opened> {
        let Found { files, mut ledger, inputs, demo } = found;
        let mut sources = self.symbols.options(&self.traces, self.quiet);
        for dir in inputs.iter().filter_map(|i| i.symbols_dir.clone()) {
            if !sources.beside.contains(&dir) {
                tracing::info!("{}: symbols that came with the trace", dir.display());
                sources.beside.push(dir);
            }
        }
        let locators = self.symbols.path()?.locators(sources);
        let resolver = Resolver::new(locators, compact_cache());
        resolver.describe().iter().for_each(|place| tracing::info!("symbols from {place}"));
        let symbols = Symbols::with_resolver(resolver, self.names);
        let decoder = Decoder::new(
            &DecoderOptions { manifests: self.manifests.clone(), tmf: self.tmf.clone() },
            &mut ledger,
        );
        given::descriptions(&mut ledger);
        given::symbols(self, &mut ledger)?;
        let memory = self.table_memory(files.iter().map(EtlFile::len).sum());
        let threads = self.threads();
        let loggers = self.listed_loggers()?;
        let part = Part::default();
        let late_events = false;
        let traces =
            Traces { files, ledger, symbols, inputs, demo, decoder, loggers, threads, part, late_events };
        let source = Source::Traces(Box::new(traces));
        Ok(Opened { source, memory, quiet: self.quiet })
    }

    /// What input may unpack to.
    fn input_options(&self) -> InputOptions {
        let mut options = InputOptions {
            temp_dir: self.temp_dir.clone(),
            recursive: self.recursive,
            ..InputOptions::default()
        };
        options.max_unpacked_bytes = self.max_unpacked.unwrap_or(options.max_unpacked_bytes);
        options.max_ratio = self.max_unpack_ratio.unwrap_or(options.max_ratio);
        options
    }

    /// Memory for tables, from input of this size.
    fn table_memory(&self, read: u64) -> Memory {
        match self.memory {
            Some(limit) => Memory::of_process(limit, self.temp_dir.clone()),
            None => Memory::with_budget((read / 3).max(LEAST_MEMORY), self.temp_dir.clone()),
        }
    }
}

/// The demonstration scenario as a trace in a temporary folder.
fn write_demo(temp_dir: Option<&Path>) -> anyhow::Result<Scratch> {
    let folder =
        Scratch::new(temp_dir).context("cannot make a temporary folder for the demonstration trace")?;
    let scenario = etwhy_synth::Scenario::parse(etwhy_synth::DEMO, "demo")?;
    etwhy_synth::write(&scenario, &folder.path().join("demo.etl"), &mut |_| {})?;
    Ok(folder)
}

/// The result of a pass and how the run ends.
pub struct Analysed {
    /// Tables, with `ledger` among them.
    pub db: Database,
    /// Exit code, unless something else goes wrong.
    pub exit: Exit,
    /// Where columns are held.
    pub memory: Memory,
    /// What was newer than known, in words.
    pub newer_than_known: Vec<String>,
    /// Anomalies that are those of some tables; see [`etwhy_trace::Output::ledgers`].
    pub ledgers: Vec<(Vec<&'static str>, Ledger)>,
    /// Threads that may be used.
    pub threads: usize,
    /// The rows of table `event`, where they are made when they are wanted ([`Opened::with_late_events`]).
    pub events: Option<Events>,
    /// Keeps the files alive.
    _inputs: Vec<InputFile>,
    _demo: Option<Scratch>,
}

impl Opened {
    /// Tables will be those of a part of the trace: what came before it is known in it, and counts for nothing.
    ///
    /// # Errors
    /// If it is an extract, whose tables are those of all of its trace.
    pub fn within(mut self, part: Part) -> anyhow::Result<Opened> {
        if part == Part::default() {
            return Ok(self);
        }
        let Source::Traces(traces) = &mut self.source else {
            anyhow::bail!(
                "an extract holds the tables of its whole trace; a part of it can only be told from the trace itself"
            );
        };
        traces.part = part;
        Ok(self)
    }

    /// The same for times as a user gives them.
    ///
    /// # Errors
    /// As [`Opened::within`], and if a time is none or the end is not later than the begin.
    pub fn within_time(self, time: &TimeArgs) -> anyhow::Result<Opened> {
        let part = match &self.source {
            Source::Traces(traces) => {
                let span = recordings::span(&traces.files);
                let start = span.start_ns.unwrap_or(0);
                let ns = |when: Option<When>| -> anyhow::Result<Option<i64>> {
                    when.map(|when| Ok(span.utc_ns(when)?.saturating_sub(start))).transpose()
                };
                let (from_ns, to_ns) = in_order(ns(time.from)?, ns(time.to)?)?;
                Part { from_ns: from_ns.filter(|ns| *ns > 0), to_ns }
            }
            // Any part will be refused.
            Source::Extract(..) => Part { from_ns: time.from.map(|_| 0), to_ns: time.to.map(|_| 0) },
        };
        self.within(part)
    }

    /// The same for moments, in nanoseconds since 1970 (UTC).
    ///
    /// # Errors
    /// As [`Opened::within`].
    fn within_utc(self, (from, to): (i64, i64)) -> anyhow::Result<Opened> {
        let start = match &self.source {
            Source::Traces(traces) => recordings::span(&traces.files).start_ns.unwrap_or(0),
            Source::Extract(..) => return Ok(self),
        };
        let (from_ns, to_ns) = (from.saturating_sub(start), to.saturating_sub(start));
        self.within(Part { from_ns: Some(from_ns).filter(|ns| *ns > 0), to_ns: Some(to_ns) })
    }

    /// Tables for a trace that has no kernel events but of these classes: all of `tables` if it seems to be one, else none. Of an
    /// extract those that it holds.
    ///
    /// # Errors
    /// Those of an extract that cannot be read.
    pub fn without_kernel(&mut self, tables: &[&str], but: &[&str]) -> anyhow::Result<Vec<String>> {
        let holds_others = match &mut self.source {
            Source::Traces(traces) => {
                traces.files.iter().any(|file| kernel_class::seems_to_hold_others(file, but))
            }
            Source::Extract(extract, ..) => {
                let there = folder::all_there(extract);
                !tables.iter().all(|name| there.contains(*name))
                    || folder::holds_other_classes(extract, but, &self.memory)?
            }
        };
        Ok(if holds_others { Vec::new() } else { tables.iter().map(|name| (*name).to_owned()).collect() })
    }

    /// Table `event` will not be held: [`Analysed::events`] makes its rows when they are wanted. An extract gives the table itself.
    pub fn with_late_events(mut self) -> Opened {
        if let Source::Traces(traces) = &mut self.source {
            traces.late_events = true;
        }
        self
    }

    /// Runs the analyses for `tables` (`None`: all that are not on demand).
    ///
    /// # Errors
    /// Those of the table builder, and of an extract that does not hold the tables.
    pub fn analyse(self, tables: Option<BTreeSet<String>>) -> anyhow::Result<Analysed> {
        self.analyse_stretches(tables, Vec::new())
    }

    /// True for tables that were extracted before.
    pub fn is_extract(&self) -> bool {
        matches!(self.source, Source::Extract(..))
    }

    /// As [`Opened::analyse`], but of an extract only the columns that are read of each table; of a table that `columns` does not name all.
    ///
    /// # Errors
    /// Those of [`Opened::analyse`].
    pub fn analyse_columns(
        mut self,
        tables: BTreeSet<String>,
        columns: BTreeMap<String, BTreeSet<String>>,
    ) -> anyhow::Result<Analysed> {
        if let Source::Extract(_, _, wanted) = &mut self.source {
            *wanted = columns;
        }
        self.analyse(Some(tables))
    }

    /// As [`Opened::analyse`] for every table but those `without`, those on demand among them; of an extract those that it holds
    /// or that can be made.
    ///
    /// # Errors
    /// Those of the table builder.
    pub fn analyse_everything(self, without: &[String]) -> anyhow::Result<Analysed> {
        let mut tables: BTreeSet<String> = match &self.source {
            Source::Traces(_) => crate::catalog::specs().map(|spec| spec.name.to_string()).collect(),
            Source::Extract(extract, ..) => folder::all_there(extract),
        };
        tables.retain(|name| !without.contains(name) && !etwhy_analysis::derive::is_beside_traces(name));
        self.analyse(Some(tables))
    }

    /// As [`Opened::analyse`], with stretches whose critical path is wanted.
    ///
    /// # Errors
    /// Those of the table builder, and of an extract that does not hold the tables.
    pub fn analyse_stretches(
        self,
        mut tables: Option<BTreeSet<String>>,
        stretches: Vec<etwhy_trace::catalog::critical_path::Stretch>,
    ) -> anyhow::Result<Analysed> {
        if let Some(tables) = &mut tables {
            // It decides how the run ends.
            tables.insert("ledger".to_owned());
        }
        if let Some(tables) = &tables {
            tracing::debug!("tables: {}", Vec::from_iter(tables.iter().map(String::as_str)).join(", "));
        }
        let Opened { source, memory, quiet } = self;
        let analysed = match source {
            Source::Traces(traces) => traces.analyse(tables, stretches, memory, quiet)?,
            Source::Extract(mut extract, retag, columns) => {
                let wanted = folder::Wanted { tables, columns: &columns };
                stage("extract", || folder::load(&mut extract, wanted, &stretches, memory, retag))?
            }
        };
        if let Some(failure) = analysed.memory.failure() {
            say!("etwhy: columns could not be moved out of memory: {failure}");
        }
        if let Some(text) = exit::in_part(&analysed.db) {
            say!("etwhy: {text}");
        }
        for text in &analysed.newer_than_known {
            say!("etwhy: {text}");
        }
        Ok(analysed)
    }
}

impl Analysed {
    fn of(db: Database, memory: Memory, newer_than_known: Vec<String>) -> Analysed {
        let exit = if newer_than_known.is_empty() { exit::of_ledger(&db) } else { Exit::TooNew };
        let (ledgers, _inputs) = (Vec::new(), Vec::new());
        Analysed {
            db,
            exit,
            memory,
            newer_than_known,
            ledgers,
            threads: 1,
            events: None,
            _inputs,
            _demo: None,
        }
    }
}

impl Traces {
    fn analyse(
        self,
        tables: Option<BTreeSet<String>>,
        stretches: Vec<etwhy_trace::catalog::critical_path::Stretch>,
        memory: Memory,
        quiet: bool,
    ) -> anyhow::Result<Analysed> {
        let mut bar = Bar::new("reading", quiet);
        let mut inputs = etwhy_trace::Inputs::default().with(stretches).with(self.loggers);
        if self.late_events {
            inputs = inputs.with(vec![RowsLater]);
        }
        let options = etwhy_trace::Options {
            tables: tables.as_ref().map(closure),
            threads: self.threads,
            memory: memory.clone(),
            symbols: self.symbols,
            decoder: self.decoder,
            inputs,
        };
        let mut output = etwhy_trace::analyse_part(&self.files, options, self.part, &mut bar, self.ledger)?;
        drop(bar);
        let closed = tables.as_ref().map(closure);
        stage("derived tables", || derive(&mut output.db, closed.as_ref(), &memory, self.threads))?;
        let newer = self.files.iter().filter_map(EtlFile::newer_than_known).map(|e| e.to_string());
        let analysed = Analysed::of(output.db, memory, newer.collect());
        let events = output.events.map(|late| Events::new(late, self.files, self.threads));
        let (threads, ledgers) = (self.threads, output.ledgers);
        Ok(Analysed { ledgers, threads, events, _inputs: self.inputs, _demo: self.demo, ..analysed })
    }
}

#[cfg(test)]
mod tests {
    use super::{piece, size};

    #[test]
    fn sizes() {
        assert_eq!(size("512MB"), Ok(512_000_000));
        assert_eq!(size("2GiB"), Ok(2 << 30));
        assert_eq!(size("100"), Ok(100));
        assert!(size("many").is_err());
        assert!(size("5 parsecs").is_err());
        assert_eq!(piece("100"), Ok(100));
        assert!(piece("0").is_err());
    }
}
