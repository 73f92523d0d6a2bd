//! `etwhy fleet`: many traces.

mod answer;
mod coverage;
mod detail;
mod extract;
mod identify;
mod outliers;
mod plan;
mod rank;
mod reading;
mod regressions;
mod run;
mod show;
mod trend;

use crate::command::Command;
use crate::exit::Exit;
use clap::{FromArgMatches as _, Subcommand as _};

/// Declaration.
pub static COMMAND: Command = Command {
    name: "fleet",
    about: "Many traces of many machines: read them all into a store, then ask who costs most, what changed, who is an outlier",
    long_about: "`etwhy fleet run` reads traces, each in a process of its own with limits, and keeps what was found in each in a store: a folder \
                 of Parquet files that DuckDB and Spark read too. A run goes on where the last one ended. The other commands ask the store.",
    examples: "Examples:\n  etwhy fleet run //server/traces -o store\n  etwhy fleet run *.etl -o store --symbols C:\\symbols\n  \
               etwhy fleet run inbox -o store --watch\n  etwhy fleet rank drivers store\n  \
               etwhy fleet regressions store\n  etwhy fleet outliers store --html outliers.html\n  etwhy fleet show PC-0042 store\n  \
               duckdb -c \"select * from 'store/batches/*/finding.parquet'\"",
    build: |command| {
        Word::augment_subcommands(command).subcommand_required(true).arg_required_else_help(true)
    },
    run: |matches| run(Word::from_arg_matches(matches)?),
};

#[derive(clap::Subcommand)]
enum Word {
    /// Read all traces of folders, archives and lists into a store; what was read before is left out
    Run(Box<run::Args>),
    /// Who costs most over all machines, or which findings are found most
    Rank(rank::Args),
    /// New versions of drivers and programs that cost more or less than the old ones, on the same machines
    Regressions(regressions::Args),
    /// Machines that differ from those of the same model and build
    Outliers(outliers::Args),
    /// What takes the time, day by day
    Trend(trend::Args),
    /// What could be told where, and what to record for the rest
    Coverage(coverage::Args),
    /// A machine or a trace of the store
    Show(show::Args),
    /// All tables of single traces of the store, from the traces themselves
    Detail(detail::Args),
    /// Print what a run would read, one line of JSON for each recording: for clusters, where others start the runs
    Plan(Box<plan::Args>),
    /// Read one recording as rows of a store: what `fleet run` starts for each trace
    Extract(Box<extract::Args>),
    /// Say of trace files which machine and which recording they are of, one line of JSON for each
    Identify(identify::Args),
}

fn run(word: Word) -> anyhow::Result<Exit> {
    match word {
        Word::Run(args) => run::run(*args),
        Word::Rank(args) => rank::run(&args),
        Word::Regressions(args) => regressions::run(&args),
        Word::Outliers(args) => outliers::run(&args),
        Word::Trend(args) => trend::run(&args),
        Word::Coverage(args) => coverage::run(&args),
        Word::Show(args) => show::run(&args),
        Word::Detail(args) => detail::run(&args),
        Word::Plan(args) => plan::run(&args),
        Word::Extract(args) => extract::run(*args),
        Word::Identify(args) => identify::run(&args),
    }
}
