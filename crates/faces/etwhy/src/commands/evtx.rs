//! `etwhy evtx`: event logs.

mod fields;
mod follow;
mod messages;
mod select;
mod shape;
mod show;
mod why;

use crate::command::Command;
use crate::exit::Exit;
use clap::{Args as _, FromArgMatches as _};

/// Declaration.
pub static COMMAND: Command = Command {
    name: "evtx",
    about: "Event logs: records, fields and texts, and what fills them",
    long_about: "Reads Windows event logs (.evtx) on any system: also dirty, cut and damaged ones, of which it gives what is \
                 readable and counts the rest. Without more, a line for each record. `messages` makes databases of the \
                 texts that Event Viewer shows. Times without a zone are UTC, -2h is before now.",
    examples: "Examples:\n  etwhy evtx Security.evtx --counts\n  etwhy evtx System.evtx --level critical,error --last 50\n  \
               etwhy evtx logs/ --id 4624 --where LogonType=10 --json\n  \
               etwhy evtx Security.evtx --messages messages.db --full --last 3\n  \
               etwhy evtx Security.evtx --sql \"SELECT TargetUserName, count(*) FROM event_4624 GROUP BY 1 ORDER BY 2 DESC\"\n  \
               etwhy evtx Security.evtx --id 4688 --columns -o starts.parquet\n  etwhy evtx System.evtx --follow\n  \
               etwhy evtx why Security.evtx --retention 90d --max-size 1GB\n  \
               etwhy evtx messages build C:\\Windows\\System32 -o messages.db",
    build: |command| Args::augment_args(command),
    run: |matches| run(Args::from_arg_matches(matches)?),
};

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_precedence_over_arg = true)]
struct Args {
    #[command(subcommand)]
    part: Option<Sub>,
    #[command(flatten)]
    show: show::Args,
}

#[derive(clap::Subcommand)]
enum Sub {
    /// Texts of events: build a database of them from DLLs, see what it holds
    Messages(messages::Args),
    /// What fills the logs: rates, bursts, how far back they reach, processes, accounts, findings
    Why(Box<why::Args>),
}

/// The names of [`Sub`].
const NAMES: [&str; 2] = ["messages", "why"];

fn run(args: Args) -> anyhow::Result<Exit> {
    match args.part {
        Some(Sub::Messages(args)) => messages::run(args),
        Some(Sub::Why(args)) => why::run(&args),
        None => show::run(&args.show),
    }
}
