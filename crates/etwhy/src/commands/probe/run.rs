//! `etwhy probe run`.

use super::by_name;
use crate::exit::Exit;
use crate::report::terminal::out;
use anyhow::{Context as _, bail};
use etwhy_export::sanitize;
use etwhy_probe::machine::Machine;
use etwhy_probe::outcome::{Outcome, ProbeOutcome, SCHEMA};
use etwhy_probe::run::{Options, Run};
use etwhy_probe::who::{Watch, products};
use etwhy_probe::{Interrupt, Probe, ProbeError, scratch};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

#[derive(clap::Args)]
pub struct Args {
    /// Probes (default: all that run on this system)
    probes: Vec<String>,
    /// Small numbers: some seconds for each probe
    #[arg(long)]
    quick: bool,
    /// How often everything is repeated: without repetition there is no interval
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Where probes make their files: the place whose cost you want to know
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Change a parameter of a probe (`etwhy probe list NAME` names them)
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Keep the results, for report and compare
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
    /// No progress bar
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    record: super::record::Args,
}

pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let probes: Vec<&'static Probe> = if args.probes.is_empty() {
        etwhy_probe::probes::ALL.iter().copied().filter(|probe| probe.runs_here()).collect()
    } else {
        args.probes.iter().map(|name| by_name(name)).collect::<Result<_, _>>()?
    };
    let set = settings(&probes, &args.set)?;
    let folder = match &args.folder {
        Some(folder) => folder.clone(),
        None => std::env::temp_dir(),
    };
    let folder = std::path::absolute(&folder).with_context(|| format!("{}", folder.display()))?;
    if !folder.is_dir() {
        bail!("{}: no folder; --folder names one that is there", sanitize(&folder.display().to_string()));
    }
    let (removed, left) = scratch::remove_leftovers(&folder);
    if !removed.is_empty() {
        eprintln!("etwhy: {} folders of runs that were killed were removed", removed.len());
    }
    for (path, error) in left {
        eprintln!("etwhy: {}: left by an earlier run, cannot be removed: {error}", path.display());
    }
    let interrupt = Interrupt::new();
    interrupt.at_ctrl_c().context("Ctrl-C cannot be caught")?;
    let program = std::env::current_exe().context("the path of this program")?;
    let options = Options {
        quick: args.quick,
        rounds: args.rounds,
        folder: folder.clone(),
        child: vec![program, "probe".into(), "child".into()],
        set,
    };
    let recording = args.record.start()?;
    let start = Instant::now();
    let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let mut outcome = Outcome {
        schema: SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_utc_s: started,
        took_ns: 0,
        machine: Machine::read(&folder),
        products: products(),
        probes: Vec::new(),
    };
    for probe in probes {
        outcome.probes.push(one(probe, &options, &interrupt, args.quiet || args.json)?);
        if interrupt.is_set() {
            break;
        }
    }
    outcome.took_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let recorded = recording.map(|recording| recording.end(interrupt.is_set()));
    let exit = finish(args, &outcome)?;
    Ok(recorded.map_or(exit, |recorded| recorded.tell(exit)))
}

/// `NAME=VALUE`s, each of which some probe must know.
fn settings(probes: &[&'static Probe], set: &[String]) -> anyhow::Result<Vec<(String, String)>> {
    let mut all = Vec::new();
    for text in set {
        let (name, value) =
            text.split_once('=').with_context(|| format!("--set {text}: NAME=VALUE is needed"))?;
        if !probes.iter().any(|probe| probe.parameters.iter().any(|p| p.name == name)) {
            let mut known: Vec<&str> =
                probes.iter().flat_map(|probe| probe.parameters).map(|p| p.name).collect();
            known.sort_unstable();
            known.dedup();
            bail!("--set {text}: none of these probes has `{name}`; they have {}", known.join(", "));
        }
        all.push((name.to_owned(), value.to_owned()));
    }
    Ok(all)
}

/// Runs one probe, with a bar and somebody who watches.
fn one(
    probe: &'static Probe,
    options: &Options,
    interrupt: &Interrupt,
    quiet: bool,
) -> anyhow::Result<ProbeOutcome> {
    let bar = ProgressBar::new(0);
    if quiet || !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    if let Ok(style) = ProgressStyle::with_template("{prefix:14} [{bar:30}] {pos}/{len} {msg}") {
        bar.set_style(style);
    }
    bar.set_prefix(probe.name);
    let mut progress = |doing: &str, done: u64, total: u64| {
        bar.set_length(total);
        bar.set_position(done);
        bar.set_message(doing.to_owned());
    };
    let mut result = ProbeOutcome {
        probe: probe.name.to_owned(),
        state: String::new(),
        parameters: Default::default(),
        samples: Vec::new(),
        notes: Vec::new(),
        ended: String::new(),
        suspects: Vec::new(),
    };
    if !probe.runs_here() {
        let systems: Vec<&str> = probe.systems.iter().map(|system| system.name()).collect();
        result.ended = format!("it runs on {} only", systems.join(", "));
        return Ok(result);
    }
    let watch = Watch::start(&options.folder);
    let made = Run::of(probe, options, interrupt, &mut progress).map_err(anyhow::Error::msg)?;
    bar.finish_and_clear();
    let seen = watch.finish();
    result.suspects = seen.suspects;
    result.parameters = made.parameters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    result.samples = made.samples;
    result.notes = made.notes;
    result.notes.extend(seen.notes);
    result.ended = made.error.as_ref().map(ProbeError::to_string).unwrap_or_default();
    Ok(result)
}

fn finish(args: &Args, outcome: &Outcome) -> anyhow::Result<Exit> {
    let text = serde_json::to_string_pretty(outcome)?;
    if let Some(path) = &args.output {
        std::fs::write(path, &text).with_context(|| path.display().to_string())?;
    }
    let mut out = out();
    if args.json {
        writeln!(out, "{text}")?;
    } else {
        for result in &outcome.probes {
            writeln!(out, "{}", result.probe)?;
            let probe = by_name(&result.probe)?;
            for sentence in (probe.conclude)(&result.samples) {
                writeln!(out, "  {}", sanitize(&sentence))?;
            }
            if !result.ended.is_empty() {
                writeln!(out, "  ended early: {}", sanitize(&result.ended))?;
            }
        }
    }
    let whole = outcome.probes.iter().all(|probe| probe.ended.is_empty());
    Ok(if whole { Exit::Done } else { Exit::InPart })
}
