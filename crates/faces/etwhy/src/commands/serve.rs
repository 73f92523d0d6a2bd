//! `etwhy serve`: the page where an investigator looks first.

use super::sql::tables_of;
use crate::catalog;
use crate::command::Command;
use crate::exit::Exit;
use crate::open::logs::LogReading;
use crate::open::{Opened, TraceArgs, beside};
use crate::progress::{go_on, unless_given_up};
use crate::report::explain::Knowledge;
use crate::report::missing::{recording_for, why_empty};
use crate::report::why::verdict;
use crate::rules::RuleArgs;
use anyhow::anyhow;
use clap::{Args as _, FromArgMatches as _};
use etwhy_analysis::cpu::{Scope, Top};
use etwhy_analysis::derive::is_beside_traces;
use etwhy_hud::{Deferred, Host, Loaded, Options, Patience};
use etwhy_rules::{Rule, Subject, evaluate_all};
use etwhy_sql::Engine;
use etwhy_table::{Database, TableSpec};
use etwhy_trace::catalog::event_type::EventTypeRow;
use std::any::Any;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Declaration.
pub static COMMAND: Command = Command {
    name: "serve",
    about: "Look at traces in the browser: findings, timeline, stacks, pivot tables, SQL, comparison",
    long_about: "Reads each trace and serves a page with all of it, on this machine alone. The address that is printed \
                 holds a random token: who does not know it gets nothing. Several traces are shown beside each other and can be \
                 compared; --merge reads them as one, as other commands do. Ctrl-C ends it.",
    examples: "Examples:\n  etwhy serve --demo\n  etwhy serve trace.etl\n  etwhy serve before.etl after.etl\n  \
               etwhy serve trace.etl --port 8000 --readonly",
    build: |command| Args::augment_args(command),
    run: |matches| run(Args::from_arg_matches(matches)?),
};

#[derive(clap::Args)]
struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    rules: RuleArgs,
    /// Port to listen on (0: any that is free)
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    /// Address to listen on. Others than 127.0.0.1 let other machines in: whoever has the address with its token can read
    /// the traces
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind: IpAddr,
    /// Names of this machine that the page may be asked under, behind a proxy or with --bind; without it only its addresses
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Leave tables out. `event` (all events with their fields) takes longer than all others: it is made when the page first
    /// asks for it, and not at all if it is left out
    #[arg(long, value_name = "TABLES", value_delimiter = ',')]
    without: Vec<String>,
    /// Event logs of the same machine (.evtx, archives, folders), read beside each trace on its time: their records are marks
    /// in the timeline, findings over logs are asked, and their tables can be asked in SQL
    #[arg(long, value_name = "LOG")]
    logs: Vec<PathBuf>,
    /// The page cannot open other traces
    #[arg(long)]
    readonly: bool,
    /// Folders whose traces the page may open, besides those that the given traces lie in
    #[arg(long, value_name = "DIR", conflicts_with = "readonly")]
    folder: Vec<PathBuf>,
}

fn run(args: Args) -> anyhow::Result<Exit> {
    let rules = args.rules.load()?;
    if let Some(name) =
        args.without.iter().find(|name| !catalog::specs().any(|spec| spec.name == name.as_str()))
    {
        return Err(anyhow!("there is no table `{name}`; `etwhy dump --list` names them"));
    }
    let reader =
        Reader { trace: args.trace.clone(), rules, without: args.without.clone(), logs: args.logs.clone() };
    let mut exit = Exit::Done;
    let mut loaded = Vec::new();
    for trace in each_argument(&args.trace) {
        let name = names(&trace.traces, trace.demo);
        let read = reader.read_all(&trace, &name, &mut loaded);
        match read {
            Ok(end) => exit = if exit == Exit::Done { end } else { exit },
            // One bad file of several does not end the rest.
            Err(error) if args.trace.traces.len() > 1 && !args.trace.merge => {
                eprintln!(
                    "etwhy: {}: {} (left out)",
                    etwhy_export::sanitize(&name),
                    etwhy_export::sanitize(&format!("{error:#}"))
                );
                exit = Exit::InPart;
            }
            Err(error) => return Err(error),
        }
    }
    if loaded.is_empty() {
        return Err(anyhow!("there is no trace in what was given"));
    }
    let folders = folders(&args)?;
    let options = Options {
        address: SocketAddr::new(args.bind, args.port),
        hosts: args.host,
        readonly: args.readonly,
        folders,
        token: None,
        patience: Patience::default(),
    };
    let mut running = etwhy_hud::start(Box::new(reader), loaded, &options).map_err(|text| anyhow!(text))?;
    // The server ends in order, with its traces.
    etwhy_scratch::leave_interrupts();
    running.take_interrupts();
    if !args.bind.is_loopback() {
        eprintln!(
            "etwhy: other machines can reach this page; without encryption, and whoever has the address sees everything"
        );
    }
    writeln!(crate::stdout::watched(), "{}", running.url)?;
    if !args.trace.quiet {
        eprintln!("etwhy: open this address in a browser; Ctrl-C ends it");
    }
    running.wait();
    Ok(exit)
}

/// What is read for itself: each argument, or all of them together.
fn each_argument(trace: &TraceArgs) -> Vec<TraceArgs> {
    if trace.merge || trace.demo {
        return vec![trace.clone()];
    }
    trace.traces.iter().map(|path| TraceArgs { traces: vec![path.clone()], ..trace.clone() }).collect()
}

/// Folders whose traces the page may open: those that were named, and those of the traces.
fn folders(args: &Args) -> anyhow::Result<Vec<PathBuf>> {
    let mut folders = args.folder.clone();
    if let Some(none) = folders.iter().find(|folder| !folder.is_dir()) {
        return Err(anyhow!("{}: --folder wants a folder", none.display()));
    }
    for trace in args.trace.traces.iter().filter(|trace| *trace != Path::new("-")) {
        let folder = if trace.is_dir() { trace } else { trace.parent().unwrap_or(trace) };
        // A bare name lies in the folder that the program was started in.
        folders.push(if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_path_buf() });
    }
    Ok(folders)
}

/// What a trace of one or more files is called.
fn names(paths: &[PathBuf], demo: bool) -> String {
    if demo {
        return "demo.etl".to_owned();
    }
    let name = |path: &PathBuf| {
        let last = path.file_name().map(|name| name.to_string_lossy().into_owned());
        last.unwrap_or_else(|| path.display().to_string())
    };
    paths.iter().map(name).collect::<Vec<_>>().join(" + ")
}

/// Reads traces as the arguments say.
struct Reader {
    trace: TraceArgs,
    rules: Vec<Rule>,
    without: Vec<String>,
    logs: Vec<PathBuf>,
}

impl Reader {
    /// Reads every recording of an argument: a folder or an archive may hold several.
    fn read_all(&self, trace: &TraceArgs, name: &str, loaded: &mut Vec<Loaded>) -> anyhow::Result<Exit> {
        let mut exit = Exit::Done;
        let recordings = trace.recordings()?.list;
        let several = recordings.len() > 1;
        for (number, recording) in recordings.into_iter().enumerate() {
            let files: Vec<PathBuf> = recording.files.iter().map(PathBuf::from).collect();
            let name = if several { names(&files, false) } else { name.to_owned() };
            let (one, end) = self.read(recording.open()?, name, trace, number)?;
            loaded.push(one);
            exit = if exit == Exit::Done { end } else { exit };
        }
        Ok(exit)
    }

    /// `number`: which of the recordings of `trace` it is.
    fn read(
        &self,
        opened: Opened,
        name: String,
        trace: &TraceArgs,
        number: usize,
    ) -> anyhow::Result<(Loaded, Exit)> {
        // What was extracted is there, and standard input cannot be read twice.
        let once = opened.is_extract() || trace.traces.iter().any(|path| path == Path::new("-"));
        let defer = !once && !self.without.iter().any(|name| name == EVENTS);
        let mut without = self.without.clone();
        without.extend(defer.then(|| EVENTS.to_owned()));
        let mut analysed = opened.analyse_everything(&without)?;
        let mut beside = None;
        if !self.logs.is_empty() {
            let mut tables =
                tables_of(self.rules.iter().filter(|r| r.over == Subject::Logs).flat_map(Rule::words));
            tables.insert("log_record".to_owned());
            let reading = LogReading::beside(trace);
            let added = beside::add(&self.logs, &reading, &mut analysed.db, &tables, &analysed.memory)?;
            for note in &added.notes {
                eprintln!("etwhy: {}", etwhy_export::sanitize(note));
            }
            if analysed.exit == Exit::Done {
                analysed.exit = added.exit;
            }
            beside = Some(added);
        }
        go_on();
        let engine = Engine::new(&analysed.db)?;
        let mut outcomes = evaluate_all(&engine, &self.rules);
        drop(engine);
        if let Some(beside) = beside {
            beside.caution(&mut outcomes);
        }
        let top = Top { processes: 20, per_process: 5, overall: 20 };
        let mut report = verdict(&analysed.db, &Scope::default(), top, outcomes);
        report.add_charts(&analysed.db);
        let exit = analysed.exit;
        // Tables share their columns: this copies handles, and what stays keeps temporary files alive.
        let db = analysed.db.clone();
        let deferred = defer.then(|| deferred(&db, trace.clone(), number));
        Ok((Loaded { name, db, report, keep: Box::new(analysed), deferred }, exit))
    }
}

/// The table that takes longer than all others. It is made when somebody asks for it.
const EVENTS: &str = "event";

/// The events of a recording of `trace`, which is read again for them.
fn deferred(db: &Database, trace: TraceArgs, number: usize) -> Deferred {
    let counts = db.read_or_empty::<EventTypeRow>();
    let rows: i64 = counts.iter().map(|row| row.count()).sum();
    let make = move |given_up: Arc<dyn Fn() -> bool>| {
        let read = unless_given_up(Box::new(move || given_up()), || {
            let recording = trace.recordings()?.list.into_iter().nth(number);
            let recording = recording.ok_or_else(|| anyhow!("the trace is no longer there"))?;
            recording.open()?.analyse(Some([EVENTS.to_owned()].into()))
        });
        let analysed = read.ok_or_else(|| "given up".to_owned())?.map_err(|error| format!("{error:#}"))?;
        let db = analysed.db.clone();
        Ok((db, Box::new(analysed) as Box<dyn Any + Send + Sync>))
    };
    Deferred { tables: vec![(EVENTS.to_owned(), usize::try_from(rows).unwrap_or(0))], make: Box::new(make) }
}

impl Host for Reader {
    fn program(&self) -> String {
        format!("etwhy {}", env!("CARGO_PKG_VERSION"))
    }

    fn specs(&self) -> Vec<&'static TableSpec> {
        let mut specs: Vec<&'static TableSpec> =
            catalog::all().filter(|s| !self.logs.is_empty() || !is_beside_traces(&s.name)).collect();
        specs.sort_by(|a, b| a.name.cmp(&b.name));
        specs
    }

    fn why_empty(&self, db: &Database, table: &str) -> Option<String> {
        if self.without.iter().any(|name| name == table) {
            return Some(format!(
                "table {table} was left out: etwhy serve was started with --without {table}"
            ));
        }
        why_empty(db, table)
    }

    fn recording_for(&self, table: &str) -> String {
        recording_for(table)
    }

    fn knowledge(&self, name: &str) -> serde_json::Value {
        serde_json::to_value(Knowledge::about(name, &self.rules)).unwrap_or_default()
    }

    fn open(&self, path: &Path, given_up: Arc<dyn Fn() -> bool>) -> Result<Loaded, String> {
        let trace = TraceArgs { traces: vec![path.to_path_buf()], demo: false, ..self.trace.clone() };
        let name = names(&trace.traces, false);
        let read = unless_given_up(Box::new(move || given_up()), || {
            trace.open().and_then(|opened| self.read(opened, name, &trace, 0))
        });
        match read {
            Some(loaded) => loaded.map(|(loaded, _)| loaded).map_err(|error| format!("{error:#}")),
            None => Err("given up".to_owned()),
        }
    }
}
