//! `etwhy synth`: a scenario as a trace.

use crate::command::Command;
use crate::exit::Exit;
use crate::progress::Bar;
use crate::stdout::watched;
use anyhow::{Context as _, bail};
use clap::{Args as _, FromArgMatches as _};
use etwhy_base::files::read_at_most;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Declaration.
pub static COMMAND: Command = Command {
    name: "synth",
    about: "Write a scenario (a text file) as an .etl trace with known truth",
    long_about: "Writes a trace from a scenario: a TOML file with a machine, processes, images and events. Beside the \
                 trace stand its symbols (symbols/name.pdb/GUIDAGE/name.sym) and the truth (name.truth.json). \
                 docs/scenarios.md explains the format.",
    examples: "Examples:\n  etwhy synth scenario.toml -o trace.etl\n  etwhy synth scenario.toml -o big.etl --size 1GB\n  \
               etwhy synth scenario.toml -o small.etl --scale 0.01 --drop-buffers 10%\n  \
               etwhy synth scenario.toml -o trace.etl --without DPC,CSwitch,Stack\n  \
               etwhy synth scenario.toml -o healthy.etl --no-cause\n  etwhy synth --demo -o demo.etl\n  etwhy synth --demo --print",
    build: |command| Args::augment_args(command),
    run: |matches| run(Args::from_arg_matches(matches)?),
};

#[derive(clap::Args)]
struct Args {
    /// Scenario file
    #[arg(value_name = "SCENARIO", required_unless_present = "demo")]
    scenario: Option<PathBuf>,
    /// Use the built-in demonstration scenario
    #[arg(long)]
    demo: bool,
    /// Write the trace to a file (default: the scenario's name with .etl, in the current folder)
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Repeat the scenario's load until the trace has about this size
    #[arg(long, value_name = "SIZE", value_parser = crate::open::size)]
    size: Option<u64>,
    /// Write this part of the story, or a multiple: counts, totals and time times this factor
    #[arg(long, value_name = "FACTOR", conflicts_with = "size")]
    scale: Option<f64>,
    /// Leave out this share of the buffers, as a machine that is too busy does (10%)
    #[arg(long, value_name = "SHARE", value_parser = share)]
    drop_buffers: Option<f64>,
    /// Leave out kinds of events, as if they had not been recorded: names of events (CSwitch, FileIo/Create), groups
    /// (Registry, Stack), kernel keywords (PROFILE) and providers
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    without: Vec<String>,
    /// Leave out what the scenario marks as the planted cause
    #[arg(long)]
    no_cause: bool,
    /// Print the scenario's text instead of writing a trace
    #[arg(long)]
    print: bool,
    /// Show no progress bar
    #[arg(long, short)]
    quiet: bool,
}

/// `10%` or `0.1`.
fn share(text: &str) -> Result<f64, String> {
    let (digits, factor) = text.strip_suffix('%').map_or((text, 1.0), |digits| (digits, 0.01));
    match digits.trim().parse::<f64>() {
        Ok(number) if (0.0..=1.0).contains(&(number * factor)) => Ok(number * factor),
        _ => Err(format!("{text:?} is no share; write 10% or 0.1")),
    }
}

/// Bytes of a scenario at most.
const MOST_BYTES: u64 = 64 << 20;

fn run(args: Args) -> anyhow::Result<Exit> {
    let (text, name) = match &args.scenario {
        Some(path) => {
            let cannot = || format!("{}: cannot read", path.display());
            let text = String::from_utf8(read_at_most(path, MOST_BYTES).with_context(cannot)?);
            let text = text.with_context(cannot)?;
            (text, path.display().to_string())
        }
        None => (etwhy_synth::DEMO.to_owned(), "demo.toml".to_owned()),
    };
    if args.print {
        watched().write_all(text.as_bytes())?;
        return Ok(Exit::Done);
    }
    let mut scenario = etwhy_synth::Scenario::parse(&text, &name)?;
    if args.no_cause {
        scenario.without_cause()?;
    }
    scenario.without_events(&args.without)?;
    if let Some(factor) = args.scale {
        scenario.scale(factor)?;
    }
    if let Some(bytes) = args.size {
        scenario.scale_to_bytes(bytes)?;
    }
    let output = match args.output {
        Some(path) if path == Path::new("-") => {
            bail!("a trace has its symbols and its truth beside it; name a file with -o")
        }
        Some(path) => path,
        // In the folder of work: the scenario's own may be somebody else's.
        None => Path::new(&name).with_extension("etl").file_name().map_or("trace.etl".into(), PathBuf::from),
    };
    let bar = Bar::new("writing", args.quiet);
    let report =
        etwhy_synth::write(&scenario, &output, &mut |done| bar.set(done, args.size.unwrap_or(done)))?;
    drop(bar);
    if let Some(share) = args.drop_buffers {
        let dropped = etwhy_synth::drop_buffers(&output, share, 1)
            .with_context(|| format!("{}: cannot remove buffers", output.display()))?;
        writeln!(watched(), "{} of {} buffers left out", dropped.buffers, dropped.of)?;
    }
    let size = etwhy_base::units::bytes(report.bytes as i64);
    let records = etwhy_base::units::thousands(report.records.into());
    let name = output.display().to_string();
    writeln!(watched(), "{}: {records} records, {size}", etwhy_export::sanitize(&name))?;
    Ok(Exit::Done)
}
