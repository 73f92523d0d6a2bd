//! `etwhy symbols fetch`: downloads symbol files, the heaviest modules first.

use super::modules::{
    as_json, attempts_json, cpu, nothing_to_ask, pdb_id, pdb_name, read, reason, reason_word, wanted,
};
use crate::exit::Exit;
use crate::open::TraceArgs;
use crate::report::symbols::columns;
use crate::report::terminal::out;
use etwhy_analysis::operators::stack_modules::StackModule;
use etwhy_symbols::source::{Attempt, Outcome};
use etwhy_symbols::{Candidate, Sources, WantedModule};
use serde_json::json;
use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    /// Also modules that are on no stack
    #[arg(long)]
    all: bool,
    /// At most N modules
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Files at the same time
    #[arg(long, value_name = "N", default_value_t = 4)]
    jobs: usize,
    /// Give a file up after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1800)]
    timeout: u64,
    /// Ask again for files that a server did not have during the last day
    #[arg(long)]
    retry_missing: bool,
    /// Fetch the images of modules without a PDB: functions that they export get names
    #[arg(long)]
    with_images: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What came of a module.
struct Done {
    wanted: WantedModule,
    candidate: Option<Candidate>,
    attempts: Vec<Attempt>,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    let path = args.trace.symbols.path()?;
    if !path.names_a_server() && !args.trace.quiet {
        say!(
            "etwhy: the symbol path names no server, so nothing can be downloaded; give --symbols or set _NT_SYMBOL_PATH, e.g. \
             srv*FOLDER*https://msdl.microsoft.com/download/symbols"
        );
    }
    let mut modules = read(&args.trace, args.all)?;
    modules.list.truncate(args.top.unwrap_or(usize::MAX));
    let mut options = args.trace.symbols.options(&args.trace.traces, args.trace.quiet);
    options.fetch_images = args.with_images;
    options.server.jobs = args.jobs.clamp(1, 32);
    options.server.whole = Duration::from_secs(args.timeout.max(1));
    options.server.retry_missing = args.retry_missing;
    let sources = path.sources(options);
    let done = search_all(&sources, &modules.list, args.jobs.clamp(1, 32));
    let missing = done.iter().filter(|done| done.candidate.is_none()).count();
    let exit = if missing > 0 { Exit::InPart } else { modules.exit };
    if args.json {
        print_json(&path.to_string(), &modules.list, &done)?;
    } else {
        print(&modules.list, &done)?;
    }
    Ok(exit)
}

/// Looks for all modules, in their order, several at the same time.
fn search_all(sources: &Sources, modules: &[StackModule], jobs: usize) -> Vec<Done> {
    let next = AtomicUsize::new(0);
    let found: Mutex<Vec<(usize, Done)>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(modules.len()) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(module) = modules.get(at) else { break };
                    let wanted = wanted(module);
                    let (candidates, attempts) = sources.search(&wanted);
                    let done = Done { wanted, candidate: candidates.into_iter().next(), attempts };
                    found.lock().unwrap_or_else(PoisonError::into_inner).push((at, done));
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, done)| done).collect()
}

/// Bytes that came over the network.
fn fetched(done: &Done) -> Option<u64> {
    done.attempts.iter().find_map(|attempt| match attempt.outcome {
        Outcome::Fetched { bytes, .. } => Some(bytes),
        _ => None,
    })
}

fn state(done: &Done) -> &'static str {
    match (&done.candidate, fetched(done)) {
        (Some(_), Some(_)) => "fetched",
        (Some(_), None) => "present",
        (None, _) => "missing",
    }
}

fn why(done: &Done) -> String {
    match (&done.candidate, nothing_to_ask(&done.wanted)) {
        (Some(candidate), _) => candidate.file.display().to_string(),
        (None, Some(reason)) => reason,
        (None, None) => reason(&done.attempts),
    }
}

fn size(bytes: u64) -> String {
    etwhy_base::units::bytes(i64::try_from(bytes).unwrap_or(i64::MAX))
}

fn print(modules: &[StackModule], done: &[Done]) -> anyhow::Result<()> {
    let mut out = out();
    let rows: Vec<Vec<String>> = modules
        .iter()
        .zip(done)
        .map(|(module, done)| {
            let size = fetched(done).map_or_else(|| "-".to_owned(), size);
            let (state, why) = (state(done).to_owned(), why(done));
            vec![state, size, cpu(module), module.name.clone(), pdb_name(&done.wanted), why]
        })
        .collect();
    let headings = [
        ("", false),
        ("size", true),
        ("CPU time", true),
        ("module", false),
        ("PDB", false),
        ("file, or why it is missing", false),
    ];
    columns(&mut out, &headings, &rows)?;
    let count = |wanted: &str| done.iter().filter(|done| state(done) == wanted).count();
    let bytes: u64 = done.iter().filter_map(fetched).sum();
    writeln!(
        out,
        "\n{} modules: {} fetched ({}), {} present before, {} missing",
        done.len(),
        count("fetched"),
        size(bytes),
        count("present"),
        count("missing")
    )?;
    out.flush()?;
    Ok(())
}

fn print_json(path: &str, modules: &[StackModule], done: &[Done]) -> anyhow::Result<()> {
    let objects: Vec<serde_json::Value> = modules
        .iter()
        .zip(done)
        .map(|(module, done)| {
            let mut object = as_json(module, &done.wanted);
            if let Some(map) = object.as_object_mut() {
                let reason = match (&done.candidate, &done.wanted.pdb) {
                    (Some(_), _) => None,
                    (None, None) => Some("no PDB recorded"),
                    (None, Some(_)) => Some(reason_word(&done.attempts)),
                };
                map.insert("state".to_owned(), json!(state(done)));
                map.insert("file".to_owned(), json!(done.candidate.as_ref().map(|c| &c.file)));
                map.insert("fetched_bytes".to_owned(), json!(fetched(done)));
                map.insert("reason".to_owned(), json!(reason));
                map.insert("id".to_owned(), json!(pdb_id(&done.wanted)));
                map.insert("attempts".to_owned(), attempts_json(&done.attempts));
            }
            object
        })
        .collect();
    let mut out = out();
    super::json(&mut out, &json!({ "symbol_path": path, "modules": objects }))?;
    out.flush()?;
    Ok(())
}
