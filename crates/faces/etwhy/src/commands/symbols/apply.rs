//! `etwhy symbols apply`: names for the addresses of an extract, without the trace.

use crate::exit::Exit;
use crate::open::folder_limits;
use crate::resolve_extract;
use crate::symbol_args::SymbolArgs;
use anyhow::bail;
use etwhy_base::units::{bytes, thousands};
use etwhy_export::extract::{Folder, Writer, is_extract};
use etwhy_export::sanitize;
use etwhy_symbols::{NameStyle, Resolver};
use etwhy_table::{Memory, Table};
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// Folder that `etwhy extract` made
    #[arg(value_name = "DIR")]
    extract: PathBuf,
    /// Write a new extract instead of replacing this one
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Replace what is there even if it was not extracted
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    symbols: SymbolArgs,
    /// How functions are named: short (without parameters), full (with them) or raw (as the linker has them)
    #[arg(long, value_name = "FORM", default_value = "short")]
    names: NameStyle,
    /// Files with stack tags in the format of WPA (.stacktags); they come before those that ship
    #[arg(long, value_name = "FILE")]
    tags: Vec<PathBuf>,
    /// Files (CSV) with facts of your own about drivers, libraries and programs
    #[arg(long, value_name = "FILE")]
    knowledge: Vec<PathBuf>,
    /// Print errors only
    #[arg(long, short)]
    quiet: bool,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    if !is_extract(&args.extract) {
        bail!(
            "{}: no extract; `etwhy extract TRACE -o DIR` makes one, and for a trace --symbols is enough",
            args.extract.display()
        );
    }
    crate::knowledge::load(&args.knowledge)?;
    crate::knowledge::load_tags(&args.tags)?;
    let mut extract = Folder::open(&args.extract, folder_limits())?;
    let sources = args.symbols.options(std::slice::from_ref(&args.extract), args.quiet);
    let resolver = Resolver::new(args.symbols.path()?.locators(sources), crate::symbol_args::compact_cache());
    let target = args.output.clone().unwrap_or_else(|| args.extract.clone());
    // Said before much is read.
    drop(Writer::new(&target, Vec::new(), args.force)?);
    let done = resolve_extract::apply(&mut extract, &resolver, args.names, &Memory::unlimited())?;
    for problem in &done.problems {
        say!("etwhy: {}", sanitize(&problem.text));
    }
    let old = extract.manifest();
    let mut writer = Writer::new(&target, old.traces.clone(), args.force)?;
    let mut size = 0;
    let tables: Vec<&Table> = done.db.tables().filter(|table| extract.has(table.name())).collect();
    for table in &tables {
        size += writer.table(table)?;
    }
    writer.manifest().left_out.clone_from(&old.left_out);
    writer.manifest().end = old.end.clone();
    writer.finish()?;
    if args.quiet {
        return Ok(exit(&done));
    }
    say!(
        "etwhy: {}: {} of {} places without a name have one now; {} tables, {}",
        target.display(),
        thousands(done.named as i128),
        thousands(done.unnamed as i128),
        tables.len(),
        bytes(size as i64)
    );
    Ok(exit(&done))
}

/// Nothing named is a partial result at best.
fn exit(done: &resolve_extract::Applied) -> Exit {
    if done.named == 0 && done.unnamed > 0 { Exit::InPart } else { Exit::Done }
}
