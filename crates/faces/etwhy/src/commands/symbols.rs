//! `etwhy symbols`: where symbols come from, what is missing, fetching it.

mod apply;
mod fetch;
mod missing;
mod modules;
mod path;
mod plan;
mod verify;

use crate::command::Command;
use crate::exit::Exit;
use clap::{FromArgMatches as _, Subcommand as _};
use std::io::Write;

/// Declaration.
pub static COMMAND: Command = Command {
    name: "symbols",
    about: "Symbol files: what is needed, where it would come from, fetch it, what is missing, does a file fit",
    long_about: "Function names need the symbol files (PDBs) of exactly the builds that ran. The symbol path says where they are: \
                 --symbols, then _NT_ALT_SYMBOL_PATH and _NT_SYMBOL_PATH, in the syntax of Microsoft's debuggers; files next to \
                 the trace come first.\n\n\
                 Servers are asked only if the path names one (srv*FOLDER*https://SERVER), and are sent only the names \
                 asked for: file name, GUID and age of PDBs.",
    examples: "Examples:\n  etwhy symbols plan trace.etl --top 10\n  \
               etwhy symbols fetch trace.etl --symbols 'srv*~/symbols*https://msdl.microsoft.com/download/symbols'\n  \
               etwhy symbols missing trace.etl\n  etwhy symbols apply extract-folder --symbols C:\\symbols\n  etwhy symbols path\n  etwhy symbols verify app.pdb trace.etl",
    build: |command| {
        Word::augment_subcommands(command).subcommand_required(true).arg_required_else_help(true)
    },
    run: |matches| run(Word::from_arg_matches(matches)?),
};

#[derive(clap::Subcommand)]
enum Word {
    /// What would be asked for: modules by CPU time, their PDBs, where these would be looked for
    Plan(plan::Args),
    /// Download the PDBs of modules that stand on stacks, the heaviest first
    Fetch(Box<fetch::Args>),
    /// Modules on stacks whose functions have no names, and why
    Missing(missing::Args),
    /// Name the functions of an extract, without its trace
    Apply(apply::Args),
    /// How the symbol path is understood, element by element
    Path(path::Args),
    /// Which build a PDB, Breakpad file or image is for, and whether a trace has it
    Verify(verify::Args),
}

fn run(word: Word) -> anyhow::Result<Exit> {
    match word {
        Word::Plan(args) => plan::run(args),
        Word::Fetch(args) => fetch::run(*args),
        Word::Missing(args) => missing::run(args),
        Word::Apply(args) => apply::run(args),
        Word::Path(args) => path::run(args),
        Word::Verify(args) => verify::run(args),
    }
}

fn json(out: &mut impl Write, value: &serde_json::Value) -> anyhow::Result<()> {
    etwhy_report::json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)?;
    Ok(())
}
