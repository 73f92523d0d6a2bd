//! What a probe gets while it runs.

mod rounds;

use crate::clock::{Moment, Spent, nanos};
use crate::error::ProbeError;
use crate::interrupt::Interrupt;
use crate::sample::{Case, Laps, Sample};
use crate::scratch::Scratch;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Shows how far a probe is: what it does, steps done, steps in all.
pub type Progress<'a> = &'a mut dyn FnMut(&str, u64, u64);

/// What users choose for all probes.
#[derive(Clone, Debug)]
pub struct Options {
    /// Small numbers.
    pub quick: bool,
    /// How often everything is repeated.
    pub rounds: u32,
    /// Where files are made.
    pub folder: PathBuf,
    /// How to start this program so that it does what [`child`](crate::Probe::child) says: program and first arguments. The probe's name and
    /// its own arguments follow.
    pub child: Vec<PathBuf>,
    /// What was set: `name` and `value`.
    pub set: Vec<(String, String)>,
}

/// A run of a probe: its parameters, its files, its clock, its results.
pub struct Run<'a> {
    /// What users chose.
    pub options: &'a Options,
    /// Its probe's name.
    probe: &'static str,
    parameters: BTreeMap<&'static str, String>,
    interrupt: &'a Interrupt,
    progress: Progress<'a>,
    start: Instant,
    round: u32,
    samples: Vec<Sample>,
    notes: Vec<String>,
}

/// What a run gave: samples, what the user should know of them, the parameters as they were.
#[derive(Debug)]
pub struct Made {
    /// What was measured.
    pub samples: Vec<Sample>,
    /// What the user should know: `the page cache was not dropped: that needs root`.
    pub notes: Vec<String>,
    /// Parameters with their values.
    pub parameters: BTreeMap<&'static str, String>,
    /// Why it ended early, if it did.
    pub error: Option<ProbeError>,
    /// When it began: samples count from here.
    pub start: Instant,
}

impl<'a> Run<'a> {
    /// The number that a parameter has.
    pub fn number(&self, name: &str) -> u64 {
        self.parameters.get(name).and_then(|text| text.replace('_', "").parse().ok()).unwrap_or(0)
    }

    /// The text that a parameter has.
    pub fn text(&self, name: &str) -> &str {
        self.parameters.get(name).map_or("", String::as_str)
    }

    /// The words that a parameter has.
    pub fn words(&self, name: &str) -> Vec<String> {
        self.text(name).split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    /// The round, from 0. Probes whose cases disturb each other change their order with it.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// Says that it is not to end yet. Probes ask between operations, at least ten times a second.
    ///
    /// # Errors
    /// [`ProbeError::Interrupted`].
    pub fn goes_on(&self) -> Result<(), ProbeError> {
        if self.interrupt.is_set() { Err(ProbeError::Interrupted) } else { Ok(()) }
    }

    /// The wish to stop, for threads of the probe.
    pub fn interrupt(&self) -> &Interrupt {
        self.interrupt
    }

    /// Shows how far it is.
    pub fn progress(&mut self, doing: &str, done: u64, total: u64) {
        (self.progress)(doing, done, total);
    }

    /// Says something that users should know of the results; once is enough.
    pub fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// A folder for files, which is removed with its owner. `needed` bytes must be free.
    ///
    /// # Errors
    /// If there is no room or no right.
    pub fn scratch(&self, needed: u64) -> Result<Scratch, ProbeError> {
        self.scratch_in(&self.options.folder, needed)
    }

    /// The same in another folder than that of the options.
    ///
    /// # Errors
    /// If there is no room or no right.
    pub fn scratch_in(&self, parent: &Path, needed: u64) -> Result<Scratch, ProbeError> {
        Scratch::new(parent, needed)
    }

    /// This program again, so that it does what [`child`](crate::Probe::child) says.
    pub fn child(&self, arguments: &[&str]) -> Command {
        let mut words = self.options.child.iter();
        let mut command = Command::new(words.next().map_or(Path::new("etwhy"), PathBuf::as_path));
        command.args(words).arg(self.probe).args(arguments);
        command
    }

    /// Measures: `work` does operations one by one on this thread, and gives how many it did and how many failed as they
    /// may. It times single ones with [`Laps::push`] where that costs little beside them.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn measure(
        &mut self,
        case: Case,
        work: impl FnOnce(&mut Run<'a>, &mut Laps) -> Result<(u64, u64), ProbeError>,
    ) -> Result<(), ProbeError> {
        let mut laps = Laps::default();
        let start_ns = nanos(self.start);
        let before = Moment::now();
        let (operations, failures) = work(self, &mut laps)?;
        let spent = before.until_now();
        let value = spent.wall_ns as f64 / operations.max(1) as f64;
        let sample = self.sample(case, start_ns, operations, &spent, &laps);
        self.push(Sample { failures, value, unit: "ns".to_owned(), ..sample });
        Ok(())
    }

    /// A sample of what was measured by other means; `value` and `unit` are still to be filled in.
    pub fn sample(&self, case: Case, start_ns: u64, operations: u64, spent: &Spent, laps: &Laps) -> Sample {
        let [p50_ns, p95_ns, p99_ns, max_ns] = laps.percentiles([0.5, 0.95, 0.99, 1.0]);
        Sample {
            case,
            round: self.round,
            start_ns,
            operations,
            wall_ns: spent.wall_ns,
            cpu_ns: spent.cpu_ns,
            queue_ns: spent.queue_ns,
            blocked_ns: spent.blocked_ns,
            waits: spent.waits,
            p50_ns,
            p95_ns,
            p99_ns,
            max_ns,
            ..Sample::default()
        }
    }

    /// Nanoseconds since the probe's start: [`Sample::start_ns`].
    pub fn since_start(&self) -> u64 {
        nanos(self.start)
    }

    /// Keeps a sample.
    pub fn push(&mut self, sample: Sample) {
        let span_ns = self.since_start().saturating_sub(sample.start_ns);
        self.samples.push(Sample { span_ns, ..sample });
    }
}
