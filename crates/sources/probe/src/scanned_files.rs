//! What is done with fresh files, and what that means in sentences.

use crate::clock::{Spent, nanos};
use crate::error::ProbeError;
use crate::run::Run;
use crate::sample::{Case, Laps, Sample};
use crate::summary::Figures;
use crate::words::{percents, time};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Something that is done with each file of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The folder is listed.
    List,
    /// Open and close.
    Open,
    /// Open, read 4 KB, close.
    Read4k,
    /// Open, read 64 KB, close.
    Read64k,
}

impl Operation {
    /// The words of the parameter.
    pub const WORDS: &'static [&'static str] = &["list", "open", "read-4k", "read-64k"];

    /// By its word.
    pub fn from_word(word: &str) -> Option<Operation> {
        Some(match word {
            "list" => Operation::List,
            "open" => Operation::Open,
            "read-4k" => Operation::Read4k,
            "read-64k" => Operation::Read64k,
            _ => return None,
        })
    }

    /// As a measure.
    pub fn name(self) -> &'static str {
        match self {
            Operation::List => "list",
            Operation::Open => "open",
            Operation::Read4k => "read 4 KB",
            Operation::Read64k => "read 64 KB",
        }
    }

    /// Does it with all files; gives how many there were and how many were refused.
    ///
    /// # Errors
    /// The system's, except refusals; interrupted.
    pub fn on(
        self,
        run: &mut Run<'_>,
        folder: &Path,
        paths: &[PathBuf],
        laps: &mut Laps,
    ) -> Result<(u64, u64), ProbeError> {
        if self == Operation::List {
            return list(run, folder);
        }
        let wanted = match self {
            Operation::Read4k => 4096,
            Operation::Read64k => 65_536,
            Operation::List | Operation::Open => 0,
        };
        let mut buffer = vec![0_u8; wanted];
        let mut refused = 0;
        for (number, path) in paths.iter().enumerate() {
            run.goes_on()?;
            if number % 64 == 0 {
                run.progress(self.name(), number as u64, paths.len() as u64);
            }
            let start = Instant::now();
            let result = look(path, &mut buffer);
            laps.push(nanos(start));
            match result {
                Ok(()) => {}
                Err(error) if is_refusal(&error) => refused += 1,
                Err(error) => return Err(ProbeError::file(path, "open")(error)),
            }
        }
        Ok((paths.len() as u64, refused))
    }
}

fn look(path: &Path, buffer: &mut [u8]) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut at = 0;
    while let Some(rest) = buffer.get_mut(at..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            Ok(0) => break,
            Ok(read) => at += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn list(run: &mut Run<'_>, folder: &Path) -> Result<(u64, u64), ProbeError> {
    run.goes_on()?;
    let mut there = 0;
    for entry in fs::read_dir(folder).map_err(ProbeError::file(folder, "list"))? {
        entry.map_err(ProbeError::file(folder, "list"))?;
        there += 1;
    }
    Ok((there, 0))
}

/// Whether somebody denied access, or took the file away, as scanners do.
fn is_refusal(error: &io::Error) -> bool {
    // winerror.h: ERROR_VIRUS_INFECTED 225, ERROR_VIRUS_DELETED 226.
    let infected = cfg!(windows) && matches!(error.raw_os_error(), Some(225 | 226));
    infected || matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound)
}

/// The sample of making files, whose laps were timed one by one: what was done between them (random content, writing to the
/// disk) is no part of it.
pub fn created(run: &Run<'_>, case: Case, start_ns: u64, laps: &Laps) -> Sample {
    let wall_ns = laps.sum_ns();
    let spent = Spent { wall_ns, ..Spent::default() };
    let count = laps.count();
    let sample = run.sample(case, start_ns, count, &spent, laps);
    Sample { value: wall_ns as f64 / count.max(1) as f64, unit: "ns".to_owned(), ..sample }
}

/// What it costs here.
pub fn conclude(samples: &[Sample]) -> Vec<String> {
    let mut said = Vec::new();
    let figures = Figures::from_samples(samples);
    let mut measures: Vec<&str> = Vec::new();
    for sample in samples {
        if !measures.contains(&sample.case.measure.as_str()) && !sample.case.measure.starts_with("create") {
            measures.push(&sample.case.measure);
        }
    }
    // The order of the table, whichever round came first.
    measures.sort_by_key(|m| {
        Operation::WORDS
            .iter()
            .position(|w| m.replace([' ', '-'], "").to_lowercase().starts_with(&w.replace('-', "")))
    });
    for measure in measures {
        let of = |variant: &str| figures.mean(measure, variant);
        let (Some(first), Some(second)) = (of("first run"), of("second run")) else { continue };
        let files = samples.iter().find(|s| s.case.measure == measure).map_or(0, |s| s.operations);
        let what = match measure.split(',').next().unwrap_or_default() {
            "list" => format!("Listing a folder of {files} files"),
            "open" => format!("Opening {files} fresh files"),
            other => format!("Opening {files} fresh files to {other} of each"),
        };
        let kind = measure.split_once(", ").map(|(_, kind)| format!(" ({kind})")).unwrap_or_default();
        let mut text = format!(
            "{what}{kind} took {} the first time and {} the second",
            time(first * files as f64),
            time(second * files as f64)
        );
        if measure.starts_with("list") {
            said.push(text + ".");
            continue;
        }
        let middle = |variant: &str| figures.typical(measure, variant).unwrap_or(0.0);
        let (first, second) = (middle("first run"), middle("second run"));
        text.push_str(&format!(". Half of them took at most {} and {}.", time(first), time(second)));
        if of("first run, other folder").is_some() {
            let other = middle("first run, other folder");
            text.push_str(&format!(
                " In the other folder that was {} the first time: here it is {} for each file.",
                time(other),
                difference(first - other)
            ));
        }
        said.push(text);
    }
    said.extend(waiting(samples));
    let refused: u64 = samples.iter().map(|s| s.failures).sum();
    if refused > 0 {
        let all: u64 = samples.iter().filter(|s| s.failures > 0).map(|s| s.operations).sum();
        said.push(format!(
            "{refused} of {all} accesses were refused: somebody denies or removes these files."
        ));
    }
    said
}

/// `0.2 ms more`.
fn difference(ns: f64) -> String {
    if ns >= 0.0 { format!("{} more", time(ns)) } else { format!("{} less", time(-ns)) }
}

/// How much of first opens was waiting.
fn waiting(samples: &[Sample]) -> Option<String> {
    // Shares of the same time: those of other samples would not add up.
    let opens =
        samples.iter().filter(|s| s.case.measure.starts_with("open") && s.case.variant == "first run");
    let parts = opens.filter_map(|s| Some([s.blocked_ns?, s.cpu_ns?, s.queue_ns?]));
    let sum = parts.fold([0_u64; 3], |[a, b, c], [x, y, z]| {
        [a.saturating_add(x), b.saturating_add(y), c.saturating_add(z)]
    });
    let [blocked, cpu, queue] = percents(sum)?;
    Some(format!(
        "Of the time of first opens {blocked} % was waiting for somebody, {cpu} % CPU time of this program, {queue} % waiting for a \
         processor."
    ))
}
