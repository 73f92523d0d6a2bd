//! `etwhy follow`: a trace that is still being written.

mod page;
mod run;
mod show;

pub(super) use run::{FollowArgs, Speed, What};

use crate::command::Command;
use crate::exit::Exit;
use crate::options::time::duration;
use clap::{Args as _, FromArgMatches as _};
use std::path::PathBuf;
use std::time::Duration;

/// Declaration.
pub static COMMAND: Command = Command {
    name: "follow",
    about: "Follow a trace while it is written: who uses the machine, what was found, since when",
    long_about: "Reads a growing .etl file, or all traces of a folder to which a session adds files, and looks at the last minute again and again \
                 (--window): who used the processors, which findings began and ended, what was lost. Each window shows what `etwhy why` \
                 would show of that time range of the finished trace. At most half of one processor is used: a window that takes long is looked at less \
                 often, and its last seconds up to twice a second, so that a finding appears within two seconds of its evidence. Each finding says which \
                 time range it is about, and how old that is.\n\n\
                 Buffers that come late are put where they belong, as long as the window has not passed them; the lines say how many came late. \
                 Names that a trace holds at its end only (the rundown of sessions that are merged afterwards) are not known before that. \
                 It ends when the session closes the file, when a condition is met (--until-finding, --stop-when), or when nothing came for --patience.",
    examples: "Examples:\n  etwhy follow recording.etl\n  etwhy follow C:\\traces --window 30s\n  \
               etwhy follow C:\\traces --process chrome\n  etwhy follow C:\\traces --open\n  etwhy follow recording.etl --json\n  \
               etwhy follow C:\\traces --until-finding dpc.over-limit\n  etwhy follow C:\\traces --stop-when exit:setup",
    build: |command| Args::augment_args(command),
    run: |matches| run(&Args::from_arg_matches(matches)?),
};

#[derive(clap::Args)]
struct Args {
    /// A trace that is being written, or a folder of them
    #[arg(value_name = "TRACE|FOLDER")]
    path: PathBuf,
    /// End when nothing came for so long
    #[arg(long, value_name = "TIME", value_parser = duration)]
    patience: Option<i64>,
    #[command(flatten)]
    follow: FollowArgs,
}

fn run(args: &Args) -> anyhow::Result<Exit> {
    let patience = args.patience.map(|ns| Duration::from_nanos(u64::try_from(ns).unwrap_or(0)));
    args.follow.run(COMMAND.name, &What::Grows(args.path.clone(), patience))
}
