//! `etwhy live`: a recording as if it were made now.

use super::follow::{FollowArgs, Speed, What};
use crate::command::Command;
use crate::exit::Exit;
use clap::{Args as _, FromArgMatches as _};
use std::path::PathBuf;

/// Declaration.
pub static COMMAND: Command = Command {
    name: "live",
    about: "Play a finished trace again as if it were recorded now",
    long_about: "Plays a finished trace again: its buffers come when they were written, and windows are looked at as `etwhy follow` does. With --speed max \
                 each second of the trace is looked at once, whatever it takes.\n\n\
                 To see this machine live, record it and follow the recording: `etwhy record start` writes a folder, `etwhy follow FOLDER` shows it.",
    examples: "Examples:\n  etwhy live --replay trace.etl\n  etwhy live --replay trace.etl --speed 10 --open\n  etwhy live --replay trace.etl --speed 10 --process chrome\n  \
               etwhy live --replay trace.etl --speed max --json\n  etwhy live --replay trace.etl --speed max --until-finding cpu.starvation",
    build: |command| Args::augment_args(command),
    run: |matches| run(&Args::from_arg_matches(matches)?),
};

#[derive(clap::Args)]
struct Args {
    /// The finished trace
    #[arg(long, value_name = "TRACE")]
    replay: PathBuf,
    /// How many times faster than it was recorded: 1, 10, max
    #[arg(long, value_name = "N|max", default_value = "1", value_parser = Speed::parse)]
    speed: Speed,
    #[command(flatten)]
    follow: FollowArgs,
}

fn run(args: &Args) -> anyhow::Result<Exit> {
    args.follow.run(COMMAND.name, &What::Replay(args.replay.clone(), args.speed))
}
