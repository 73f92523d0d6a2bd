//! Writes a machine, asks the program about it, and judges the answer.

use crate::cause::Kind;
use crate::machine::{Machine, machine};
use crate::report::Report;
use crate::score::{Score, judge};
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Machines that are judged at the same time.
const PARALLEL: usize = 2;

/// How machines are run.
#[derive(Clone, Debug)]
pub struct Runner {
    /// The program.
    pub program: PathBuf,
    /// Share of the buffers that are missing, as `etwhy synth` takes it.
    pub loss: Option<String>,
    /// Where scenario, trace and report are kept.
    pub keep: Option<PathBuf>,
}

/// A machine that was judged.
pub struct Done {
    /// Its seed.
    pub seed: u64,
    /// The machine.
    pub machine: Machine,
    /// What the report is worth.
    pub score: Score,
}

impl Runner {
    /// Judges the machines of these seeds, in this order.
    ///
    /// # Errors
    /// The first machine that could not be written or asked about.
    pub fn all(
        &self,
        seeds: &[u64],
        kind: Option<&'static Kind>,
        watch: &(dyn Fn(&Done) + Sync),
    ) -> Result<Vec<Done>> {
        let next = AtomicUsize::new(0);
        let results: Mutex<Vec<(usize, Result<Done>)>> = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..PARALLEL {
                scope.spawn(|| {
                    while let Some((at, seed)) = {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        seeds.get(at).map(|seed| (at, *seed))
                    } {
                        let done = self.one(seed, kind);
                        if let Ok(done) = &done {
                            watch(done);
                        }
                        if let Ok(mut results) = results.lock() {
                            results.push((at, done));
                        }
                    }
                });
            }
        });
        let mut results = results.into_inner().unwrap_or_default();
        results.sort_by_key(|(at, _)| *at);
        results.into_iter().map(|(_, done)| done).collect()
    }

    /// Judges the machine of a seed.
    ///
    /// # Errors
    /// If it cannot be written or asked about.
    pub fn one(&self, seed: u64, kind: Option<&'static Kind>) -> Result<Done> {
        let mut machine = machine(seed, kind);
        let scratch = tempfile::tempdir().context("no temporary folder")?;
        let folder = self.keep.as_deref().unwrap_or(scratch.path());
        std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot make", folder.display()))?;
        let path = |name: &str| folder.join(name);
        let write = |name: &str, text: &str| {
            std::fs::write(path(name), text).with_context(|| format!("{name}: cannot write"))
        };
        write("machine.toml", &machine.scenario)?;
        let mut synth = Command::new(&self.program);
        synth.arg("synth").arg(path("machine.toml")).arg("-o").arg(path("machine.etl"));
        if let Some(loss) = &self.loss {
            synth.args(["--drop-buffers", loss]);
        }
        output(synth, seed, &[0])?;
        let truth =
            std::fs::read_to_string(path("machine.truth.json")).context("the writer left no truth")?;
        let truth = serde_json::from_str(&truth).context("the truth is not JSON")?;
        machine.causes.iter_mut().for_each(|cause| cause.planted.correct(&truth));
        let mut why = Command::new(&self.program);
        why.arg("why").arg(path("machine.etl")).args(["--json", "--offline", "--threads", "1"]);
        // 1: parts of the trace are missing, which is what `loss` is for.
        let json = output(why, seed, &[0, 1])?;
        write("report.json", &json)?;
        let report = Report::read(&json).with_context(|| format!("seed {seed}"))?;
        let score = judge(&machine.causes, &report, self.loss.is_some());
        Ok(Done { seed, machine, score })
    }
}

fn output(mut command: Command, seed: u64, good: &[i32]) -> Result<String> {
    let result = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("seed {seed}: {command:?} did not start"))?;
    if !result.status.code().is_some_and(|code| good.contains(&code)) {
        bail!("seed {seed}: {command:?}: {}\n{}", result.status, String::from_utf8_lossy(&result.stderr));
    }
    Ok(String::from_utf8_lossy(&result.stdout).into_owned())
}

/// The program next to this one: both are built into the same folder.
///
/// # Errors
/// If it is not there.
pub fn neighbour() -> Result<PathBuf> {
    let own = std::env::current_exe().context("this program has no path")?;
    let name = format!("etwhy{}", std::env::consts::EXE_SUFFIX);
    let found =
        own.ancestors().skip(1).take(2).map(|folder: &Path| folder.join(&name)).find(|path| path.is_file());
    found.with_context(|| {
        format!("no {name} next to {}: `cargo build` makes it, or pass --program", own.display())
    })
}
