//! `etwhy fleet detail`: the tables of single traces that a store leaves out, from the traces themselves.

use crate::exit::Exit;
use anyhow::{Context as _, anyhow, bail};
use etwhy_fleet::files::Files;
use etwhy_fleet::{Fleet, Store};
use std::path::PathBuf;
use std::process::Command;

#[derive(clap::Args)]
pub struct Args {
    /// The store that `etwhy fleet run` wrote
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// Traces (`trace_id`; its beginning is enough)
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<String>,
    /// Write to a folder: one folder of Parquet files for each trace, called trace_id=ID, so that DuckDB and Spark have it as a column
    #[arg(long, short, value_name = "DIR")]
    output: PathBuf,
    /// Tables to write (default: all): sample,cswitch,...
    #[arg(long, value_name = "LIST")]
    only: Option<String>,
    /// Folders where traces lie that are no longer where they were read
    #[arg(long, value_name = "DIR")]
    folder: Vec<PathBuf>,
    /// Show no progress bar
    #[arg(long, short)]
    quiet: bool,
}

pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let store = Store::open(&args.store)?;
    let files = Files::of(&store, &args.folder)?;
    let traces = Fleet::new(store)?.ask("traces")?;
    let mut chosen = Vec::new();
    for wanted in &args.traces {
        let ids = (0..u32::try_from(traces.rows()).unwrap_or(u32::MAX))
            .filter_map(|row| traces.text(row, "trace_id"));
        let found: Vec<&str> = ids.filter(|id| id.starts_with(wanted.as_str())).collect();
        let [id] = found.as_slice() else {
            bail!("{} traces of this store begin with `{wanted}`", found.len());
        };
        let list = files.of_trace(id).map_err(|why| anyhow!("trace {id}: {why}"))?;
        chosen.push((*id, list));
    }
    // A folder for nothing is none.
    etwhy_fleet::store::check_parent(&args.output)?;
    std::fs::create_dir_all(&args.output).with_context(|| format!("{}", args.output.display()))?;
    let mut exit = Exit::Done;
    for (id, list) in &chosen {
        let mut command = Command::new(std::env::current_exe().context("cannot tell where this program is")?);
        command
            .arg("extract")
            .args(list)
            .arg("--merge")
            .arg("-o")
            .arg(args.output.join(format!("trace_id={id}")));
        if let Some(only) = &args.only {
            command.arg("--only").arg(only);
        }
        if args.quiet {
            command.arg("--quiet");
        }
        match command.status().context("cannot start `etwhy extract`")?.code() {
            Some(0) => {}
            Some(1) => exit = Exit::InPart,
            _ => bail!("trace {id} could not be extracted"),
        }
    }
    Ok(exit)
}
