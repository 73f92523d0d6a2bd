//! `etwhy probe`: measures this machine.

mod ab;
mod compare;
mod list;
mod record;
mod report;
mod rounds;
mod run;

use crate::command::Command;
use crate::exit::Exit;
use clap::{Args as _, FromArgMatches as _};
use etwhy_probe::Probe;

/// Declaration.
pub static COMMAND: Command = Command {
    name: "probe",
    about: "Measure what security products and bad API use cost on this machine, and who it is",
    long_about: "Runs small workloads that do one thing many times (open files, start processes, sleep, ask for memory) and says what \
                 it costs here, how the cost grows, and who makes it so. Probes touch nothing but a folder of their own, which \
                 they remove, also after Ctrl-C.",
    examples: "Examples:\n  etwhy probe list\n  etwhy probe list file-open\n  etwhy probe run file-open --quick\n  \
               etwhy probe run file-open name-search --rounds 5 --output before.json\n  \
               etwhy probe run file-open --folder D:\\work --set files=5000\n  \
               etwhy probe run file-open --ab 'systemctl start scanner' 'systemctl stop scanner' --settle 5 -o ab.json\n  \
               etwhy probe report before.json --html before.html\n  \
               etwhy probe compare before.json after.json --per-day 200000",
    build: |command| Args::augment_args(command),
    run: |matches| run(Args::from_arg_matches(matches)?),
};

#[derive(clap::Args)]
struct Args {
    #[command(subcommand)]
    part: Sub,
}

#[derive(clap::Subcommand)]
enum Sub {
    /// Which probes there are; with a name its manual page
    List(list::Args),
    /// Run probes
    Run(run::Args),
    /// Show results of earlier runs: tables, growth, suspects; as text, page, JSON or rows
    Report(report::Args),
    /// Compare results: what became slower, how surely, and what that costs
    Compare(compare::Args),
    /// What probes start this program for
    #[command(hide = true)]
    Child {
        /// Name of the probe
        probe: String,
        /// What it is to do
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

fn run(args: Args) -> anyhow::Result<Exit> {
    match args.part {
        Sub::List(args) => list::run(&args),
        Sub::Run(args) => run::run(&args),
        Sub::Report(args) => report::run(&args),
        Sub::Compare(args) => compare::run(&args),
        Sub::Child { probe, arguments } => {
            let child = by_name(&probe)?.child;
            let Some(child) = child else { anyhow::bail!("{probe} starts no processes") };
            std::process::exit(child(&arguments).into());
        }
    }
}

/// The probe of that name.
fn by_name(name: &str) -> anyhow::Result<&'static Probe> {
    let all = etwhy_probe::probes::ALL;
    all.iter().find(|probe| probe.name == name).copied().ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|probe| probe.name).collect();
        anyhow::anyhow!("there is no probe `{name}`; there are {}", names.join(", "))
    })
}
