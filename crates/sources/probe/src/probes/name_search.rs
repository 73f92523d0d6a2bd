//! Searching linearly for a file name that is free.

use crate::amount::size;
use crate::error::ProbeError;
use crate::probe::{EVERYWHERE, Grows, Parameter, Probe};
use crate::run::Run;
use crate::sample::{Case, Sample};
use crate::summary::Figures;
use crate::words::time;
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::time::Instant;

/// Declaration.
pub static PROBE: Probe = Probe {
    name: "name-search",
    about: "Search for a free file name by trying log.1, log.2, …: what each new file costs when many are there",
    manual: "Makes files one after the other, each time trying names from the first on until one is free, as programs do that number \
             their logs. Each try is an open with \"create new\" that fails. One such file is cheap; all of them together cost the \
             square of their number. The figure is what one new file took, against how many were there.\n\n\
             What fools it: where a security product looks at each try, the step is slower and the law is the same.\n\n\
             Application Verifier named its logs so: a program's start went from 13 ms to 2.5 s after one build.",
    systems: EVERYWHERE,
    parameters: &[Parameter::number(
        "files",
        "Files to make; the work grows with the square",
        "files",
        (2000, 500),
        (100, 20_000),
    )],
    grows: Grows::PerCall,
    n_is: "files that are there",
    contrasts: &[],
    run,
    child: None,
    conclude,
};

/// Points of the curve.
const POINTS: u64 = 40;

fn run(run: &mut Run<'_>) -> Result<(), ProbeError> {
    let files = run.number("files");
    // An empty file takes a block of most file systems' tables at most.
    let scratch = run.scratch(files.saturating_mul(4096))?;
    let folder = scratch.folder("logs")?;
    let step = (files / POINTS).max(1);
    let mut there = 0;
    while there < files {
        let until = (there + step).min(files);
        run.progress("files", there, files);
        run.measure(Case::new("new file").at((there + until) as f64 / 2.0), |run, laps| {
            for _ in there..until {
                run.goes_on()?;
                let start = Instant::now();
                let mut number = 1_u64;
                loop {
                    let path = folder.join(format!("log.{number}"));
                    match OpenOptions::new().write(true).create_new(true).open(&path) {
                        Ok(_) => break,
                        Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
                        Err(error) => return Err(ProbeError::file(path, "create")(error)),
                    }
                }
                laps.push(crate::clock::nanos(start));
            }
            Ok((until - there, 0))
        })?;
        there = until;
    }
    scratch.remove()
}

fn conclude(samples: &[Sample]) -> Vec<String> {
    let figures = Figures::from_samples(samples);
    let sizes = figures.by_size("new file", "");
    let (Some(first), Some(last)) = (sizes.first(), sizes.last()) else { return Vec::new() };
    let all = samples.iter().map(|s| s.wall_ns as f64).sum::<f64>() / crate::words::rounds(samples);
    vec![format!(
        "A new file took {} at first and {} when {} were there; all of them together took {}.",
        time(first.median),
        time(last.median),
        size(last.key.n.unwrap_or(0.0)),
        time(all)
    )]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupt::Interrupt;
    use crate::support::{made, options};

    #[test]
    fn it_measures_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let options = options(folder.path(), &[("files", "100")]);
        let made = made(&PROBE, &options);
        assert_eq!(made.samples.iter().map(|s| s.operations).sum::<u64>(), 100);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(!conclude(&made.samples).is_empty());
    }

    #[test]
    fn ctrl_c_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let options = options(folder.path(), &[("files", "1000")]);
        let interrupt = Interrupt::new();
        let stop = interrupt.clone();
        let made = Run::all_rounds(&PROBE, &options, &interrupt, &mut |_, done, _| {
            if done > 100 {
                stop.set();
            }
        })
        .unwrap();
        assert!(matches!(made.error, Some(ProbeError::Interrupted)));
        assert!(!made.samples.is_empty(), "what was measured is kept");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
