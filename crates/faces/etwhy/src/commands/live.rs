//! `etwhy live`: this machine while it is recorded, or a recording as if it were made now.

use super::follow::{FollowArgs, Speed, What};
use super::record::followed;
use crate::command::Command;
use crate::exit::Exit;
use crate::open::size;
use clap::{Args as _, FromArgMatches as _};
use std::path::{Path, PathBuf};
use std::process;

/// Declaration.
pub static COMMAND: Command = Command {
    name: "live",
    about: "Record this machine and look at it live, or play a finished trace again as if it were recorded now",
    long_about: "On Windows, records profiles (`etwhy record --list` has them) and follows the recording as `etwhy follow` does, until Ctrl-C or until a \
                 condition is met. The newest files stay on disk (--keep), in a folder that is named at the end.\n\n\
                 With --replay, on any system, plays a finished trace again: its buffers come when they were written. With --speed max each second of the \
                 trace is looked at once, whatever it takes.\n\n\
                 No Windows has recorded with etwhy yet: it is tested against a double of the functions of Windows, under Wine.",
    examples: "Examples:\n  etwhy live cpu\n  etwhy live cpu,file,ui --process outlook\n  etwhy live cpu,dpc --open\n  etwhy live --replay trace.etl\n  \
               etwhy live --replay trace.etl --speed 10 --open\n  etwhy live --replay trace.etl --speed max --json\n  \
               etwhy live --replay trace.etl --speed max --until-finding cpu.starvation",
    build: |command| Args::augment_args(command),
    run: |matches| run(&Args::from_arg_matches(matches)?),
};

#[derive(clap::Args)]
struct Args {
    /// Profiles to record on this machine, separated by commas (`etwhy record --list`)
    #[arg(
        value_name = "PROFILES",
        value_delimiter = ',',
        required_unless_present = "replay",
        conflicts_with = "replay"
    )]
    profiles: Vec<String>,
    /// Files of the recording that are kept: the oldest are deleted when all together are larger
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "4GB", conflicts_with = "replay")]
    keep: u64,
    /// The finished trace
    #[arg(long, value_name = "TRACE")]
    replay: Option<PathBuf>,
    /// How many times faster than it was recorded: 1, 10, max
    #[arg(long, value_name = "N|max", default_value = "1", value_parser = Speed::parse, requires = "replay")]
    speed: Speed,
    /// The folder into which another process of this program records
    #[arg(long, value_name = "DIR", hide = true)]
    recorded: Option<PathBuf>,
    #[command(flatten)]
    follow: FollowArgs,
}

fn run(args: &Args) -> anyhow::Result<Exit> {
    match (&args.replay, &args.recorded) {
        (Some(trace), _) => args.follow.run(COMMAND.name, &What::Replay(trace.clone(), args.speed)),
        (None, Some(folder)) => args.follow.run(COMMAND.name, &What::Recorded(folder.clone())),
        (None, None) => {
            // What cannot be asked of a recording is said before anything is recorded.
            args.follow.refuse()?;
            followed::run(&args.profiles, args.keep, follower)
        }
    }
}

/// This program, as it was started, to follow the recording in a folder.
fn follower(folder: &Path) -> anyhow::Result<process::Command> {
    let mut command = process::Command::new(crate::own::program()?);
    command.args(std::env::args_os().skip(1)).arg("--recorded").arg(folder);
    Ok(command)
}
