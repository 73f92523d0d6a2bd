//! `etwhy why`: the verdict.

use super::sql::tables_of;
use crate::command::Command;
use crate::exit::Exit;
use crate::open::TraceArgs;
use crate::report::terminal::out;
use crate::report::why::{self, Verdict};
use clap::{Args as _, FromArgMatches as _};
use etwhy_query::cpu::{Scope, Top};
use etwhy_query::findings::{Rule, builtin, evaluate_all, load_folder};
use etwhy_query::sql::Engine;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;

/// Declaration.
pub static COMMAND: Command = Command {
    name: "why",
    about: "Why it was slow: quality of the trace, who used the CPU, .NET, disks, and what cannot be told",
    long_about: "Reads the trace once and prints first how good it is, then which processes, modules, functions and \
                 stacks used the CPU, what .NET and the disks did, and at last what this trace cannot answer and which \
                 recording would.",
    examples: "Examples:\n  etwhy why --demo\n  etwhy why trace.etl\n  etwhy why trace.kernel.etl trace.user.etl\n  \
               etwhy why trace.etl.zip --symbols C:\\symbols --top 20\n  cat trace.etl | etwhy why - --json",
    build: |command| Args::augment_args(command),
    run: |matches| run(Args::from_arg_matches(matches)?),
};

#[derive(clap::Args)]
struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Rows per list
    #[arg(long, default_value_t = 10, value_name = "N")]
    top: usize,
    /// Say of every pattern why it was not found or cannot be told
    #[arg(long)]
    all: bool,
    /// Folder of findings of your own (`etwhy rules` explains their form)
    #[arg(long, value_name = "DIR")]
    rules: Vec<PathBuf>,
    /// Frames per stack (0: all)
    #[arg(long, default_value_t = 16, value_name = "N")]
    frames: usize,
}

/// Tables that the verdict reads.
const TABLES: [&str; 17] = [
    "trace",
    "event_type",
    "ledger",
    "logger",
    "kernel_class",
    "process",
    "thread",
    "image",
    "sample",
    "stack",
    "disk_io",
    "file",
    "clr_gc",
    "clr_exception",
    "clr_jit",
    "clr_contention",
    "mark",
];

/// The findings that ship and the user's own, which take the place of shipped ones of the same id.
fn rules(folders: &[PathBuf]) -> anyhow::Result<Vec<Rule>> {
    let mut rules = builtin();
    for folder in folders {
        for rule in load_folder(folder)? {
            rules.retain(|known| known.id != rule.id);
            rules.push(rule);
        }
    }
    Ok(rules)
}

fn run(args: Args) -> anyhow::Result<Exit> {
    let rules = rules(&args.rules)?;
    let opened = args.trace.open()?;
    let mut tables: BTreeSet<String> = TABLES.iter().map(|t| (*t).to_owned()).collect();
    tables.extend(tables_of(rules.iter().flat_map(Rule::words)));
    let analysed = opened.analyse(Some(tables))?;
    let engine = Engine::new(&analysed.db)?;
    let outcomes = evaluate_all(&engine, &rules);
    drop(engine);
    let top = Top { processes: args.top, per_process: 5.min(args.top), overall: args.top };
    let verdict = Verdict::of(&analysed.db, &Scope::default(), top, outcomes);
    let mut out = out();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &verdict).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        why::print(&mut out, &verdict, args.frames, args.all)?;
    }
    out.flush()?;
    Ok(analysed.exit)
}
