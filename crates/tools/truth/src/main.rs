//! `cargo xtask truth`: how well etwhy names the causes of random machines.
#![forbid(unsafe_code)]

use anyhow::{Context as _, Result, bail};
use etwhy_truth::cause::{DUE, Kind};
use etwhy_truth::run::{Done, Runner, neighbour};
use etwhy_truth::score::Verdict;
use etwhy_truth::table::{Table, figures};
use etwhy_truth::{kinds, random};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

const USAGE: &str = "\
Usage: cargo xtask truth [OPTIONS]

Options:
  --seeds N         How many machines [default: 100]
  --kind KIND       Each machine has a cause of this kind
  --each            N machines of each kind instead
  --loss SHARE      Drop this share of the buffers, such as 10%
  --from-commit     Seeds from the hash of the commit: machines that nobody has seen
  --seed S          Only this machine; with --kind if it was found with it
  --keep FOLDER     Keep scenario, trace and report there; with --seed
  --program PATH    The program to judge [default: etwhy next to this program]
  --json FILE       Write the sums there
  --status          Judge the machines four times, with and without losses, and print the section of docs/status.md
  --quiet           Do not print each wrong answer
  --kinds           List the kinds";

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("truth: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Default)]
struct Options {
    seeds: u64,
    seed: Option<u64>,
    kind: Option<&'static Kind>,
    each: bool,
    loss: Option<String>,
    from_commit: bool,
    keep: Option<PathBuf>,
    program: Option<PathBuf>,
    json: Option<PathBuf>,
    status: bool,
    quiet: bool,
}

fn run(mut arguments: impl Iterator<Item = String>) -> Result<()> {
    let mut options = Options { seeds: 100, ..Options::default() };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{argument} needs a value\n\n{USAGE}"));
        match argument.as_str() {
            "--seeds" => options.seeds = value()?.parse().context("--seeds takes a number")?,
            "--seed" => options.seed = Some(value()?.parse().context("--seed takes a number")?),
            "--kind" => {
                let name = value()?;
                options.kind = Some(
                    kinds::find(&name)
                        .with_context(|| format!("`{name}` is unknown; --kinds lists the kinds"))?,
                );
            }
            "--each" => options.each = true,
            "--loss" => options.loss = Some(value()?),
            "--from-commit" => options.from_commit = true,
            "--keep" => options.keep = Some(value()?.into()),
            "--program" => options.program = Some(value()?.into()),
            "--json" => options.json = Some(value()?.into()),
            "--status" => options.status = true,
            "--quiet" => options.quiet = true,
            "--kinds" => {
                kinds::all().for_each(|kind| println!("{:20} {}", kind.id, kind.answers.join(", ")));
                return Ok(());
            }
            "--help" | "-h" => {
                println!("{USAGE}");
                return Ok(());
            }
            other => bail!("unknown option `{other}`\n\n{USAGE}"),
        }
    }
    if options.keep.is_some() && options.seed.is_none() {
        bail!("--keep takes one machine: add --seed");
    }
    judge(&options)
}

fn judge(options: &Options) -> Result<()> {
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_default();
    let run = if options.from_commit {
        u64::from_str_radix(&commit, 16).context("--from-commit needs a Git repository")?
    } else {
        0
    };
    let seeds: Vec<u64> = match options.seed {
        Some(seed) => vec![seed],
        None => (1..=options.seeds).map(|number| random::seed(run, number)).collect(),
    };
    let program = match &options.program {
        Some(program) => program.clone(),
        None => neighbour()?,
    };
    let date = git(&["show", "-s", "--format=%cs", "HEAD"]).unwrap_or_default();
    let origin = if options.from_commit { ", seeds from the commit" } else { "" };
    let table = |loss: Option<String>| {
        sums(options, &Runner { program: program.clone(), loss, keep: options.keep.clone() }, &seeds)
    };
    if options.status {
        let losses = [None, Some("3%"), Some("10%"), Some("30%")];
        let tables = losses.iter().map(|loss| table(loss.map(str::to_owned))).collect::<Result<Vec<_>>>()?;
        let names = ["intact", "3 % of the buffers missing", "10 %", "30 %"];
        let runs: Vec<(&str, &Table)> = names.into_iter().zip(&tables).collect();
        let machines = tables.first().map_or(0, |table| table.machines);
        println!("{machines} machines, commit {commit} of {date}{origin}:\n\n{}", figures(&runs));
        println!(
            "With nothing missing, by kind of cause:\n\n{}",
            tables.first().map(Table::by_kind).unwrap_or_default()
        );
        return Ok(());
    }
    let table = table(options.loss.clone())?;
    let title = format!(
        "{} machines{}, commit {commit} of {date}{origin}{}:",
        table.machines,
        options.kind.map(|kind| format!(" with {}", kind.id)).unwrap_or_default(),
        options.loss.as_ref().map(|loss| format!(", {loss} of the buffers missing")).unwrap_or_default(),
    );
    println!("{}", table.markdown(&title));
    if let Some(path) = &options.json {
        let text = serde_json::to_string_pretty(&table.json())?;
        std::fs::write(path, text).with_context(|| format!("{}: cannot write", path.display()))?;
    }
    Ok(())
}

/// Judges the machines of these seeds.
fn sums(options: &Options, runner: &Runner, seeds: &[u64]) -> Result<Table> {
    let chosen: Vec<Option<&'static Kind>> =
        if options.each { kinds::all().map(Some).collect() } else { vec![options.kind] };
    let mut table = Table::default();
    for kind in chosen {
        let done = runner.all(seeds, kind, &|done| {
            if !options.quiet && !options.status {
                print(done, kind);
            }
        })?;
        for done in &done {
            table.add(done.seed, &done.machine.causes, &done.score);
        }
    }
    Ok(table)
}

/// Prints what was said of a machine, where it is wrong.
fn print(done: &Done, kind: Option<&Kind>) {
    let replay = kind.map(|kind| format!(" --kind {}", kind.id)).unwrap_or_default();
    let alone = done.machine.causes.len() == 1;
    for (cause, judged) in done.machine.causes.iter().zip(&done.score.causes) {
        let wrong = judged.verdict > Verdict::Named && cause.multiple >= DUE;
        let second = alone && judged.verdict == Verdict::Named;
        let cost = judged.cost_error.is_some_and(|error| error > 0.02);
        if wrong || second || cost {
            println!(
                "--seed {}{replay}: {} by {} at {:.1} times its limit: {:?}{}: {}",
                done.seed,
                cause.kind.id,
                cause.planted.target.text(),
                cause.multiple,
                judged.verdict,
                judged
                    .cost_error
                    .filter(|_| cost)
                    .map(|e| format!(", cost {:.1} % off {:?}", e * 100.0, cause.planted.figure))
                    .unwrap_or_default(),
                judged.said
            );
        }
    }
    let planted: Vec<String> =
        done.machine.causes.iter().map(|cause| format!("{} {:.1}", cause.kind.id, cause.multiple)).collect();
    for (id, culprit, headline) in &done.score.accused {
        println!(
            "--seed {}{replay}: accused by {id}: {culprit}: {headline} [planted: {}]",
            done.seed,
            planted.join(", ")
        );
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
