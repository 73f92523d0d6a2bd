//! `etwhy probe run`.

use super::ab::{self, Switch};
use super::report::{WIDE, positive};
use super::{by_name, rounds};
use crate::exit::Exit;
use crate::report::terminal::{self, out, width};
use anyhow::{Context as _, bail};
use etwhy_export::{ExportError, replace_file, sanitize};
use etwhy_probe::compare::{self, tax::PER_DAY};
use etwhy_probe::machine::Machine;
use etwhy_probe::outcome::{Outcome, SCHEMA};
use etwhy_probe::run::Options;
use etwhy_probe::show::{compared, page, results};
use etwhy_probe::who::products;
use etwhy_probe::{Interrupt, Probe, scratch};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

#[derive(clap::Args)]
pub struct Args {
    /// Probes (default: all that run on this system)
    probes: Vec<String>,
    /// Small numbers: some seconds for each probe
    #[arg(long)]
    quick: bool,
    /// How often everything is repeated: fewer than 6 rounds give no interval
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Where probes make their files: the place whose cost you want to know
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Change a parameter of a probe (`etwhy probe list NAME` names them)
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Write the results to a file, for report and compare
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Change a state of the machine before each round, with commands of the system's shell: the first makes the state that is
    /// measured, the second undoes it (also at the end, after errors and after Ctrl-C); prints the comparison
    #[arg(long, num_args = 2, value_names = ["ON", "OFF"])]
    ab: Vec<String>,
    /// Seconds to wait after each command of --ab
    #[arg(long, value_name = "S", default_value_t = 1.0, requires = "ab", value_parser = seconds)]
    settle: f64,
    /// Operations per day for which costs are shown (default: 10,000)
    #[arg(long, value_name = "N", value_parser = positive)]
    per_day: Option<f64>,
    /// n that growth laws are extended to: your number of files, calls, … (default: ten times the largest measured)
    #[arg(long, value_name = "N", value_parser = positive)]
    scale: Option<f64>,
    /// Write one HTML page with charts
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Show no progress bar
    #[arg(long, short)]
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
    let (mut removed, mut left) = scratch::remove_leftovers(&folder);
    for (_, other) in set.iter().filter(|(name, value)| name == "other-folder" && !value.is_empty()) {
        let (more, stay) = scratch::remove_leftovers(Path::new(other));
        removed.extend(more);
        left.extend(stay);
    }
    if !removed.is_empty() {
        say!("etwhy: {} folders of runs that were killed were removed", removed.len());
    }
    for (path, error) in left {
        say!("etwhy: {}: left by an earlier run, cannot be removed: {error}", path.display());
    }
    let interrupt = Interrupt::new();
    interrupt.at_ctrl_c().context("Ctrl-C cannot be caught")?;
    let program = crate::own::program()?;
    let options = Options {
        quick: args.quick,
        rounds: args.rounds,
        folder: folder.clone(),
        child: vec![program, "probe".into(), "child".into()],
        set,
    };
    for probe in &probes {
        probe.values(&options).map_err(anyhow::Error::msg)?;
    }
    for path in args.output.iter().chain(&args.html) {
        check_folder_of(path)?;
    }
    let recording = args.record.start()?;
    if recording.is_some() {
        interrupt.leaves(super::record::LEFT);
    }
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
    if let [on, off] = args.ab.as_slice() {
        let switch = Switch::new(on, off, args.settle);
        outcome.probes = ab::run(&probes, &options, &interrupt, args.quiet || args.json, &switch)?;
    } else if !args.ab.is_empty() {
        bail!("--ab takes one pair of commands");
    } else {
        for probe in probes {
            outcome.probes.push(rounds::run(
                probe,
                &options,
                0..args.rounds,
                &interrupt,
                args.quiet || args.json,
            )?);
            if interrupt.is_set() {
                break;
            }
        }
    }
    outcome.took_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let recorded = recording.map(|recording| recording.end(interrupt.is_set()));
    interrupt.settled(super::record::LEFT);
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

/// Says before a long run that a file cannot be made after it.
fn check_folder_of(path: &Path) -> anyhow::Result<()> {
    let shown = || sanitize(&path.display().to_string()).into_owned();
    if path.is_dir() {
        bail!("{}: is a folder; a file is needed", shown());
    }
    // Devices of Windows, such as NUL, have none.
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty())
        && !folder.is_dir()
    {
        bail!("{}: its folder is not there", shown());
    }
    Ok(())
}

/// Shows and keeps results. They are shown first, so that a file that cannot be written costs the file alone.
fn finish(args: &Args, outcome: &Outcome) -> anyhow::Result<Exit> {
    let text = serde_json::to_string_pretty(outcome)?;
    let comparison = if args.ab.is_empty() {
        None
    } else {
        // What was interrupted early may have nothing to compare; its samples are still worth showing.
        compare::states(outcome, ["off".to_owned(), "on".to_owned()]).ok()
    };
    let per_day = args.per_day.unwrap_or(PER_DAY);
    let shown = print(args, outcome, comparison.as_ref(), &text);
    let mut whole = outcome.probes.iter().all(|probe| probe.ended.is_empty());
    if let Some(path) = &args.output {
        whole &= kept(path, &text);
    }
    if let Some(path) = &args.html {
        let page = match &comparison {
            Some(comparison) => page::comparison(comparison, outcome, per_day, args.per_day.is_some()),
            None => page::report(outcome, args.scale),
        };
        whole &= kept(path, &page);
    }
    shown?;
    Ok(if whole { Exit::Done } else { Exit::InPart })
}

/// Writes a file of results; says so if that fails.
fn kept(path: &Path, text: &str) -> bool {
    let failed = |source| ExportError::File { file: path.to_owned(), source };
    let written = replace_file(path, |out| out.write_all(text.as_bytes()).map_err(failed));
    if let Err(error) = &written {
        say!("etwhy: {error}");
    }
    written.is_ok()
}

fn print(
    args: &Args,
    outcome: &Outcome,
    comparison: Option<&compare::Comparison>,
    text: &str,
) -> anyhow::Result<()> {
    let per_day = args.per_day.unwrap_or(PER_DAY);
    let mut out = out();
    if args.json {
        writeln!(out, "{text}")?;
    } else {
        let mut doc = results::document(outcome, args.scale, width() >= WIDE);
        if let Some(comparison) = comparison {
            doc.heading("Comparison");
            doc.append(compared::text(comparison, per_day, args.per_day.is_some()));
        }
        write!(out, "{}", terminal::text(&doc))?;
    }
    out.flush()?;
    Ok(())
}

/// Seconds to wait.
fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok();
    number
        .filter(|n| (0.0..=3600.0).contains(n))
        .ok_or_else(|| "seconds from 0 to 3600 are needed".to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn files_that_cannot_be_made_are_told_before_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let missing = check_folder_of(&folder.path().join("no/such/file.json")).unwrap_err();
        assert!(missing.to_string().contains("its folder is not there"), "{missing}");
        assert!(check_folder_of(folder.path()).is_err());
        let file = folder.path().join("file.json");
        assert!(check_folder_of(&file).is_ok() && check_folder_of(Path::new("NUL")).is_ok());
        assert!(kept(&file, "text") && !kept(&folder.path().join("no/file"), "text"));
        assert_eq!(std::fs::read_to_string(file).unwrap(), "text");
    }
}
