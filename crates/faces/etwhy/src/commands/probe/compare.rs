//! `etwhy probe compare`.

use super::report::positive;
use super::report::{Rows, exit, read};
use crate::exit::Exit;
use crate::report::terminal::{out, text};
use anyhow::{Context as _, bail};
use etwhy_probe::compare::{self, tax::PER_DAY};
use etwhy_probe::show::{compared, page};
use std::io::Write as _;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// Two files of results, before and after; or one with the states of --ab
    #[arg(value_name = "FILE", num_args = 0..=2)]
    files: Vec<PathBuf>,
    /// Several files of the state before, with commas between them
    #[arg(long, value_name = "FILES", value_delimiter = ',', requires = "after", conflicts_with = "files")]
    before: Vec<PathBuf>,
    /// Several files of the state after
    #[arg(long, value_name = "FILES", value_delimiter = ',', requires = "before")]
    after: Vec<PathBuf>,
    /// Operations per day for which costs are shown (default: 10,000)
    #[arg(long, value_name = "N", value_parser = positive)]
    per_day: Option<f64>,
    /// Write one HTML page with charts
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    rows: Rows,
}

pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let name = |path: &PathBuf| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let (comparison, files) = match args.files.as_slice() {
        [one] => {
            let files = read(std::slice::from_ref(one))?;
            let outcome = files.first().map(|(_, outcome)| outcome).context("no file")?;
            let comparison = compare::states(outcome, ["off".into(), "on".into()]);
            (comparison.map_err(|error| anyhow::anyhow!("{}: {error}", one.display()))?, files)
        }
        [before, after] => {
            let (b, a) = (read(std::slice::from_ref(before))?, read(std::slice::from_ref(after))?);
            let labels = if name(before) == name(after) {
                ["before".into(), "after".into()]
            } else {
                [name(before), name(after)]
            };
            (compare::files(&b, &a, labels).map_err(anyhow::Error::msg)?, b.into_iter().chain(a).collect())
        }
        _ if !args.before.is_empty() => {
            let (b, a) = (read(&args.before)?, read(&args.after)?);
            let labels = ["before".into(), "after".into()];
            (compare::files(&b, &a, labels).map_err(anyhow::Error::msg)?, b.into_iter().chain(a).collect())
        }
        _ => bail!(
            "what is to be compared? Give two files, or one that was made with --ab, or --before and --after"
        ),
    };
    let (per_day, given) = (args.per_day.unwrap_or(PER_DAY), args.per_day.is_some());
    if let Some(path) = &args.html {
        let outcome = files.last().map(|(_, outcome)| outcome).context("no file")?;
        etwhy_export::write_whole(path, page::comparison(&comparison, outcome, per_day, given).as_bytes())
            .with_context(|| path.display().to_string())?;
    }
    if !args.rows.write(&files, Some(&comparison), None)? {
        let mut out = out();
        write!(out, "{}", text(&compared::text(&comparison, per_day, given)))?;
        out.flush()?;
    }
    Ok(exit(&files))
}
