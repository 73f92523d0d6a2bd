//! `etwhy fleet detail`: the tables of single traces that a store leaves out, from the traces themselves.

use crate::exit::Exit;
use crate::own;
use anyhow::{Context as _, anyhow, bail};
use etwhy_fleet::files::Files;
use etwhy_fleet::{Fleet, Store};
use std::ffi::OsString;
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
        match extract(args, id, list)?.status().context("cannot start `etwhy extract`")?.code() {
            Some(0) => {}
            Some(1) => exit = Exit::InPart,
            _ => bail!("trace {id} could not be extracted"),
        }
    }
    Ok(exit)
}

/// Ids and paths are the store's, and a store may come from anybody.
fn extract(args: &Args, id: &str, files: &[PathBuf]) -> anyhow::Result<Command> {
    let mut command = Command::new(own::program()?);
    let mut output = OsString::from("--output=");
    output.push(args.output.join(format!("trace_id={id}")));
    command.args(["extract", "--merge"]).arg(output);
    if let Some(only) = &args.only {
        command.arg(format!("--only={only}"));
    }
    if args.quiet {
        command.arg("--quiet");
    }
    Ok(own::ending_with(command, files))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_a_store_is_no_option() {
        let args = Args {
            store: "store".into(),
            traces: Vec::new(),
            output: "-out".into(),
            only: Some("-x".to_owned()),
            folder: Vec::new(),
            quiet: true,
        };
        let files = ["--force".into(), "--sqlite=x".into(), "/a.etl".into()];
        let command = extract(&args, "a1", &files).unwrap();
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
        let (options, paths) = words.split_at(words.iter().position(|word| word == "--").unwrap());
        assert_eq!(paths, ["--", "--force", "--sqlite=x", "/a.etl"]);
        assert_eq!(options[..2], ["extract", "--merge"]);
        assert!(
            options[2].starts_with("--output=-out") && options[2].ends_with("trace_id=a1"),
            "{options:?}"
        );
        assert_eq!(options[3..], ["--only=-x", "--quiet"]);
    }
}
