//! `etwhy evtx`: event logs.

mod messages;
mod why;

use crate::command::Command;
use crate::exit::Exit;
use clap::{Args as _, FromArgMatches as _};

/// Declaration.
pub static COMMAND: Command = Command {
    name: "evtx",
    about: "Event logs: records, fields and texts, and what fills them",
    long_about: "Reads Windows event logs (.evtx) on any system.",
    examples: "Examples:\n  etwhy evtx messages build C:\\Windows\\System32 -o messages.db",
    build: |command| Args::augment_args(command),
    run: |matches| run(Args::from_arg_matches(matches)?),
};

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_precedence_over_arg = true)]
struct Args {
    #[command(subcommand)]
    part: Part,
}

#[derive(clap::Subcommand)]
enum Part {
    /// Texts of events: build a database of them from DLLs, see what it holds
    Messages(messages::Args),
    /// What fills the logs: rates, bursts, how far back they reach, processes, accounts, findings
    Why(Box<why::Args>),
}

fn run(args: Args) -> anyhow::Result<Exit> {
    match args.part {
        Part::Messages(args) => messages::run(args),
        Part::Why(args) => why::run(&args),
    }
}
