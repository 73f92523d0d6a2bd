//! `etwhy record`: the recording that makes something visible, printed for other recorders or started.

mod control;
mod evidence;
pub(super) mod followed;
mod merge;
mod print;
mod reader;
mod remote;
mod selftest;
mod start;

use crate::command::Command;
use crate::exit::Exit;
use clap::{Args as _, FromArgMatches as _};

/// Declaration.
pub static COMMAND: Command = Command {
    name: "record",
    about: "Record on Windows, or print the recording (wpr, xperf, logman) that makes something visible",
    long_about: "On Windows, `start` records profiles and guards the recording: losses and other programs that take the kernel session \
                 over are said, and recording goes on in a private session. `--list` tells what each profile makes visible, which \
                 tables it fills and what it costs. `--print` prints the same recording as a file or commands for other recorders, on \
                 any system. `merge` makes one trace of the files of a recording, with the identities of images, on any system too. \
                 `start --boot` records the next start of Windows.\n\nNo Windows has run `start` yet: it is tested against a \
                 double of the functions of Windows, under Wine. `--evidence` tells more.",
    examples: "Examples:\n  etwhy record --list\n  etwhy record start cpu --for 60s -o slow.etl\n  \
               etwhy record start cpu,dpc --rotate 5m --keep 40GB --folder D:\\traces\n  \
               etwhy record start cpu --ring 512MB\n  etwhy record save -o slow.etl\n  \
               etwhy record start cpu,file --boot\n  \
               etwhy record merge slow.etl slow.user.etl --images DISK -o merged.etl\n  \
               etwhy record start dpc --stop-when \"counter:\\Processor(_Total)\\% DPC Time>20 for 5s\" -o dpc.etl\n  \
               etwhy record --print cpu -o cpu.wprp\n  \
               etwhy record --print cpu,registry --format xperf\n  etwhy record --print dpc --large=192 --format wpr\n  \
               etwhy record --print syscall --when-taken",
    build: |command| RecordArgs::augment_args(command),
    run: |matches| run(RecordArgs::from_arg_matches(matches)?),
};

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_precedence_over_arg = true)]
struct RecordArgs {
    #[command(subcommand)]
    part: Option<Sub>,
    #[command(flatten)]
    print: print::Args,
}

#[derive(clap::Subcommand)]
enum Sub {
    /// Record, and guard the recording until it ends or Ctrl-C ends it
    Start(Box<start::Args>),
    /// Guard a recording that runs without its guard
    Guard(start::GuardArgs),
    /// Tell how the recording is
    Status(control::StatusArgs),
    /// Write a text into the recording
    Mark(control::MarkArgs),
    /// Keep what was recorded until now, and go on: of a flight recorder or a rotating recording
    Save(control::OutputArgs),
    /// End the recording and keep its files
    Stop(control::OutputArgs),
    /// End the recording and delete its files
    Cancel,
    /// One line for each file of a rotating recording: `etwhy segments`, under the name by which recorders look for it
    #[command(hide = true)]
    List(Box<super::segments::Args>),
    /// Make one trace of the files of a recording, with the identities of images: on any system
    #[command(after_help = merge::EXAMPLES)]
    Merge(Box<merge::Args>),
    /// Record a few seconds of work whose truth is known, compare, and write a bundle to send
    Selftest(selftest::Args),
}

fn run(args: RecordArgs) -> anyhow::Result<Exit> {
    match args.part {
        Some(Sub::Start(args)) => start::run(*args),
        Some(Sub::Guard(args)) => start::guard_again(&args),
        Some(Sub::Status(args)) => control::status(&args),
        Some(Sub::Mark(args)) => control::mark(&args),
        Some(Sub::Save(args)) => control::save(&args),
        Some(Sub::Stop(args)) => control::stop(&args),
        Some(Sub::Merge(args)) => merge::run(&args),
        Some(Sub::List(args)) => super::segments::run(&args),
        Some(Sub::Cancel) => control::cancel(),
        Some(Sub::Selftest(args)) => selftest::run(&args),
        None => print::run(&args.print),
    }
}
