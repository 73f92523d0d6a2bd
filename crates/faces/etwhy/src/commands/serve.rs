//! `etwhy serve`: the page where an investigator looks first.

mod browser;
pub(super) mod page;
pub(super) mod reader;
mod store;
pub(super) mod worker;

use crate::catalog;
use crate::command::Command as Declaration;
use crate::exit::Exit;
use crate::open::TraceArgs;
use crate::rules::RuleArgs;
use anyhow::{Context as _, anyhow};
use clap::{Args as _, FromArgMatches as _};
use etwhy_hud::{Options, Patience, Policy, Source};
use etwhy_scratch::Scratch;
use page::Own;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Declaration.
pub static COMMAND: Declaration = Declaration {
    name: "serve",
    about: "Look at traces in the browser: findings, timeline, stacks, pivot tables, SQL, comparison",
    long_about: "Serves a page at once, on this machine alone, and reads each trace while the page shows how far that is. The address that is \
                 printed holds a random token: who does not know it gets nothing. Several traces are shown beside each other and can be \
                 compared; --merge reads them as one, as other commands do. Each trace is read and asked in a process of its own: one that \
                 brings it down costs only itself. A store that `etwhy fleet run` wrote has a page of its own: who costs most on which machines, \
                 and from there to each trace. Ctrl-C ends it.",
    examples: "Examples:\n  etwhy serve --demo\n  etwhy serve trace.etl\n  etwhy serve before.etl after.etl\n  \
               etwhy serve trace.etl --port 8000 --readonly\n  ETWHY_TOKEN=choose-a-long-word etwhy serve traces/ --port 8000\n  \
               etwhy serve store --folder D:\\traces",
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
    /// Open the page in a browser, which is done anyway where there is a desktop
    #[arg(long)]
    open: bool,
    /// Open no browser
    #[arg(long, conflicts_with = "open")]
    no_open: bool,
    /// What the address begins with, instead of a random token: 16 letters, digits, - and _ at least. Links then survive a restart (with
    /// --port). Others on this machine see command lines: better set it in the environment variable ETWHY_TOKEN
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Most bytes of a file that is dropped onto the page (0: none); files in its folders are read where they are
    #[arg(long, value_name = "SIZE", value_parser = crate::open::size, default_value = "4GB")]
    max_upload: u64,
    /// Memory that a trace may take before its process is ended (default: three quarters of the machine's; only Linux tells)
    #[arg(long, value_name = "SIZE", value_parser = crate::open::size)]
    memory_limit: Option<u64>,
    /// The page cannot open other traces
    #[arg(long)]
    readonly: bool,
    /// Folders whose traces the page may open, besides those that the given traces lie in
    #[arg(long, value_name = "DIR", conflicts_with = "readonly")]
    folder: Vec<PathBuf>,
    /// Read a trace for another process of this program
    #[arg(long, hide = true)]
    worker: bool,
    /// What to read then (-: all that is given, as one trace)
    #[arg(long, hide = true, allow_hyphen_values = true)]
    of: Vec<PathBuf>,
    /// Which of its recordings (-1: the first)
    #[arg(long, hide = true, allow_hyphen_values = true)]
    number: Vec<i64>,
}

fn run(args: Args) -> anyhow::Result<Exit> {
    if args.worker {
        return worker::run(&args);
    }
    check(&args)?;
    let token = page::token(args.token.as_deref())?;
    let folders = folders(&args)?;
    let options = Options {
        address: SocketAddr::new(args.bind, args.port),
        hosts: args.host.clone(),
        token,
        patience: Patience::default(),
    };
    let policy = Policy {
        readonly: args.readonly,
        folders,
        upload_bytes: args.max_upload,
        temp_dir: args.trace.temp_dir.clone(),
        memory: args.memory_limit.or_else(|| etwhy_child::machine_memory().map(|all| all / 4 * 3)),
        views: crate::knowledge::folder().map(|folder| folder.join("views")),
    };
    let store = store::given(&args.trace.traces, &args.folder)?;
    let is_store = store.is_some();
    let launcher = Own::new(COMMAND.name)?.with_store(store);
    let opens = if args.no_open { false } else { args.open || (!args.trace.quiet && browser::is_desktop()) };
    let show = page::Show { opens, quiet: args.trace.quiet, path: if is_store { "store/" } else { "" } };
    page::run(Box::new(launcher), policy, &options, &show, |front| {
        for (name, source, keep) in if is_store { Vec::new() } else { sources(&args.trace)? } {
            front.add(name, vec![source], keep).map_err(|fault| anyhow!("{fault}"))?;
        }
        Ok(())
    })
}

/// What makes no sense is said before a port is open.
fn check(args: &Args) -> anyhow::Result<()> {
    args.rules.load()?;
    crate::knowledge::load(&args.trace.knowledge)?;
    if let Some(name) =
        args.without.iter().find(|name| !catalog::specs().any(|spec| spec.name == name.as_str()))
    {
        return Err(catalog::no_table(name));
    }
    for path in args.trace.traces.iter().filter(|path| *path != Path::new("-")) {
        std::fs::metadata(path).with_context(|| format!("{}: cannot open", path.display()))?;
    }
    if args.trace.traces.len() > MOST_GIVEN && !args.trace.merge {
        return Err(anyhow!(
            "the page shows {MOST_GIVEN} traces at a time; --merge reads files of one recording as one"
        ));
    }
    Ok(())
}

/// Traces that may be given.
const MOST_GIVEN: usize = 32;

/// A trace that was given: its name, where it is read from, and what keeps it.
type Given = (String, Source, Option<Arc<Scratch>>);

/// What is read for itself: each argument, or all of them together.
fn sources(trace: &TraceArgs) -> anyhow::Result<Vec<Given>> {
    if trace.merge || trace.demo {
        return Ok(vec![(names(&trace.traces, trace.demo), Source::default(), None)]);
    }
    let one = |path: &PathBuf| {
        if path != Path::new("-") {
            let source = Source { path: Some(path.clone()), number: None };
            return Ok((names(std::slice::from_ref(path), false), source, None));
        }
        // The process of a trace has another standard input, and a trace may be read again.
        let scratch = Scratch::new(trace.temp_dir.as_deref()).context("cannot keep standard input")?;
        let path = scratch.path().join("stdin");
        let mut file = std::fs::File::create(&path).context("cannot keep standard input")?;
        std::io::copy(&mut std::io::stdin(), &mut file).context("cannot keep standard input")?;
        Ok(("-".to_owned(), Source { path: Some(path), number: None }, Some(Arc::new(scratch))))
    };
    trace.traces.iter().map(one).collect()
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
